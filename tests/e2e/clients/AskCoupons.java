/* Asks deploy/applications.md's class of codes. Arguments: the port of Redis, codes. */
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

public class AskCoupons {
    private final Socket socket;
    private final DataInputStream in;

    private AskCoupons(int port) throws IOException {
        socket = new Socket("127.0.0.1", port);
        in = new DataInputStream(socket.getInputStream());
    }

    private void send(List<String> words) throws IOException {
        StringBuilder text = new StringBuilder("*" + words.size() + "\r\n");
        for (String word : words)
            text.append("$" + word.getBytes(StandardCharsets.UTF_8).length + "\r\n" + word + "\r\n");
        socket.getOutputStream().write(text.toString().getBytes(StandardCharsets.UTF_8));
    }

    @SuppressWarnings("deprecation")
    private Object read() throws IOException {
        String line = in.readLine();
        int count = line.charAt(0) == '$' || line.charAt(0) == '*' ? Integer.parseInt(line.substring(1)) : 0;
        switch (line.charAt(0)) {
        case '$':
            if (count < 0)
                return null;
            byte[] bytes = new byte[count + 2];
            in.readFully(bytes);
            return new String(bytes, 0, count, StandardCharsets.UTF_8);
        case '*':
            List<Object> all = new ArrayList<>();
            for (int i = 0; i < count; i++)
                all.add(read());
            return all;
        case ':':
            return Long.parseLong(line.substring(1));
        case '+':
            return line.substring(1);
        default:
            throw new IOException(line);
        }
    }

    @SuppressWarnings("unchecked")
    private List<Object> transaction(List<List<String>> commands) {
        try {
            send(List.of("MULTI"));
            for (List<String> command : commands)
                send(command);
            send(List.of("EXEC"));
            for (int i = 0; i <= commands.size(); i++)
                read();
            return (List<Object>) read();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Coupons coupons = new Coupons(new AskCoupons(Integer.parseInt(arguments[0]))::transaction);
        for (int i = 1; i < arguments.length; i++)
            System.out.println(arguments[i] + " " + coupons.isAbsent(arguments[i]));
    }
}
