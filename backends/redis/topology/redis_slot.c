/* Half a byte at a time: 16 entries stay in a cache line, and a key is short. */
#include "redis/topology/redis_slot.h"

#include <stdint.h>
#include <string.h>

/* Of the polynomial 0x1021, for each value of the upper four bits. */
static const uint16_t halves[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};

static unsigned crc16(const char *bytes, size_t length)
{
    unsigned crc = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned byte = (unsigned char)bytes[i];
        crc = (crc << 4 ^ halves[(crc >> 12 ^ byte >> 4) & 15]) & 0xffff;
        crc = (crc << 4 ^ halves[(crc >> 12 ^ byte) & 15]) & 0xffff;
    }
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
