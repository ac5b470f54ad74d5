/*   type ─ number of pairs ─ name ─ value ─ name ─ value ... ─ version ─ checksum
 *
 * The plain form, which every version reads and turns into the one that it likes best. The version
 * is the oldest that has a checksum: a server refuses what is newer than itself, nothing else.
 */
#include "redis/protocol/redis_dump.h"

#include "net/allocate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    TYPE_HASH = 4,
    VERSION = 6, /* of Redis 2.6 */
    LENGTH_ROOM = 9,
    END_ROOM = 2 + 8
};

/* CRC-64 with the polynomial of Jones, reflected, four bits at a time: for each value of them. */
static const uint64_t checksum_of_nibble[16] = {
    0x0000000000000000, 0x7d08ff3b88be6f81, 0xfa11fe77117cdf02, 0x8719014c99c2b083,
    0xdf7adabd7a6e2d6f, 0xa2722586f2d042ee, 0x256b24ca6b12f26d, 0x5863dbf1e3ac9dec,
    0x95ac9329ac4bc9b5, 0xe8a46c1224f5a634, 0x6fbd6d5ebd3716b7, 0x12b5926535897936,
    0x4ad64994d625e4da, 0x37deb6af5e9b8b5b, 0xb0c7b7e3c7593bd8, 0xcdcf48d84fe75459};

static uint64_t checksum(const char *bytes, size_t length)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        sum ^= (unsigned char)bytes[i];
        sum = checksum_of_nibble[sum & 15] ^ sum >> 4;
        sum = checksum_of_nibble[sum & 15] ^ sum >> 4;
    }
    return sum;
}

/* Of so many bytes, the most significant one first or last. */
static char *put_number(char *out, uint64_t number, unsigned bytes, bool last_first)
{
    for (unsigned i = 0; i < bytes; i++)
        *out++ = (char)(number >> 8 * (last_first ? i : bytes - 1 - i));
    return out;
}

/* Its first two bits say how many follow. */
static char *put_length(char *out, uint64_t length)
{
    if (length < 1 << 6)
        return put_number(out, length, 1, false);
    if (length < 1 << 14)
        return put_number(out, length | 1 << 14, 2, false);
    *out++ = (char)(length <= UINT32_MAX ? 0x80 : 0x81);
    return put_number(out, length, length <= UINT32_MAX ? 4 : 8, false);
}

static char *put_text(char *out, struct redis_bytes text)
{
    out = put_length(out, text.length);
    if (text.length)
        memcpy(out, text.at, text.length);
    return out + text.length;
}

char *redis_dump_hash(struct redis_hash hash, size_t *length)
{
    size_t room = 1 + LENGTH_ROOM + END_ROOM;
    for (size_t i = 0; i < 2 * hash.pairs; i++)
        room += LENGTH_ROOM + hash.words[i].length;
    char *dump = allocated(malloc(room)), *at = dump;
    *at++ = TYPE_HASH;
    at = put_length(at, hash.pairs);
    for (size_t i = 0; i < 2 * hash.pairs; i++)
        at = put_text(at, hash.words[i]);
    at = put_number(at, VERSION, 2, true);
    at = put_number(at, checksum(dump, (size_t)(at - dump)), 8, true);
    *length = (size_t)(at - dump);
    return dump;
}
