/* Each lookup that passes asks for a slot: four bytes at a time (Kounavis and Berry, "A systematic
 * approach to building high performance software-based CRC generators", 2005), by what the
 * polynomial 0x1021 leaves of a byte that stands so far before the end. It leaves of a sum the sum
 * of what it leaves of its bits, lowest first.
 */
#include "redis/topology/redis_slot.h"

#include <stdint.h>
#include <string.h>

#define BIT(x, number, left) ((x) >> (number)&1 ? (left) : 0)
#define SUM(x, a, b, c, d, e, f, g, h)                                                             \
    (BIT(x, 0, a) ^ BIT(x, 1, b) ^ BIT(x, 2, c) ^ BIT(x, 3, d) ^ BIT(x, 4, e) ^ BIT(x, 5, f) ^     \
     BIT(x, 6, g) ^ BIT(x, 7, h))
#define LAST(x) SUM(x, 0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188)
#define SECOND(x) SUM(x, 0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98)
#define THIRD(x) SUM(x, 0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a)
#define FOURTH(x) SUM(x, 0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38)

#define FOUR(of, x) of(x), of((x) + 1), of((x) + 2), of((x) + 3)
#define ROW(of, x) FOUR(of, x), FOUR(of, (x) + 4), FOUR(of, (x) + 8), FOUR(of, (x) + 12)
#define QUARTER(of, x) ROW(of, x), ROW(of, (x) + 16), ROW(of, (x) + 32), ROW(of, (x) + 48)
#define TABLE(of)                                                                                  \
    {                                                                                              \
        QUARTER(of, 0), QUARTER(of, 64), QUARTER(of, 128), QUARTER(of, 192)                        \
    }

static const uint16_t last[256] = TABLE(LAST), second[256] = TABLE(SECOND),
                      third[256] = TABLE(THIRD), fourth[256] = TABLE(FOURTH);

static unsigned crc16(const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes;
    unsigned crc = 0;
    for (; length >= 4; length -= 4, at += 4)
        crc = fourth[crc >> 8 ^ at[0]] ^ third[(crc & 0xff) ^ at[1]] ^ second[at[2]] ^ last[at[3]];
    for (; length; length--, at++)
        crc = (crc << 8 & 0xff00) ^ last[crc >> 8 ^ *at];
    return crc;
}

unsigned redis_slot_of(const char *key, size_t length)
{
    const char *open = length ? memchr(key, '{', length) : NULL;
    const char *rest = open ? open + 1 : NULL;
    const char *close = rest ? memchr(rest, '}', length - (size_t)(rest - key)) : NULL;
    if (close && close > rest)
        return crc16(rest, (size_t)(close - rest)) % REDIS_SLOTS;
    return crc16(key, length) % REDIS_SLOTS;
}
