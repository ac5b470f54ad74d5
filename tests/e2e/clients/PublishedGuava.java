/* Reads the bits that a guard has published into Guava's own BloomFilter, and asks that. Arguments: the
 * file with the bitmap, the strategy's number in Guava's serial form (0: 32, 1: 64 bits), k, items. */
import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnels;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

public class PublishedGuava {
    public static void main(String[] arguments) throws Exception {
        byte[] bitmap = Files.readAllBytes(Path.of(arguments[0]));
        int longs = (bitmap.length - 1) / 8;
        ByteArrayOutputStream serial = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(serial);
        out.writeByte(Integer.parseInt(arguments[1]));
        out.writeByte(Integer.parseInt(arguments[2]));
        out.writeInt(longs);
        for (int word = 0; word < longs; word++) {
            long bits = 0; /* Guava counts from the lowest bit of a long, Redis from the highest of a byte */
            for (int bit = 0; bit < 64; bit++)
                if ((bitmap[word * 8 + bit / 8] & 0x80 >> bit % 8) != 0)
                    bits |= 1L << bit;
            out.writeLong(bits);
        }
        BloomFilter<CharSequence> filter = BloomFilter.readFrom(
            new ByteArrayInputStream(serial.toByteArray()), Funnels.stringFunnel(StandardCharsets.UTF_8));
        for (int i = 3; i < arguments.length; i++)
            System.out.println(arguments[i] + " " + filter.mightContain(arguments[i]));
    }
}
