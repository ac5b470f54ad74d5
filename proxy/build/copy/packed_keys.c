/* Numbers and UUIDs as the server sends them in binary, printed as it prints them: the filter must
 * hash the same bytes that applications write. Cheaper by much than having the server print each
 * row and send it by itself.
 */
#include "build/copy/packed_keys.h"

#include "base/hex.h"

enum { INTEGER_BYTES = 8, UUID_BYTES = 16, UUID_TEXT = 36 };

static size_t bytes_of(enum column_packing packing)
{
    return packing == PACKS_UUID ? UUID_BYTES : INTEGER_BYTES;
}

/* Written from its end: what is in front of the first digit stays unused. */
static struct span print_integer(const char *bytes, char text[PACKED_TEXT_MAX])
{
    uint64_t number = 0;
    for (size_t i = 0; i < INTEGER_BYTES; i++)
        number = number << 8 | (unsigned char)bytes[i];
    bool negative = number >> 63;
    if (negative)
        number = -number;
    char *end = text + PACKED_TEXT_MAX, *at = end;
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    if (negative)
        *--at = '-';
    return (struct span){at, (size_t)(end - at)};
}

static struct span print_uuid(const char *bytes, char text[PACKED_TEXT_MAX])
{
    char *at = text;
    for (size_t i = 0; i < UUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = hex_digit_lower((unsigned char)bytes[i] >> 4);
        *at++ = hex_digit_lower((unsigned char)bytes[i]);
    }
    return (struct span){text, UUID_TEXT};
}

/* All keys have one width, so that nothing but their bytes is sent: neither lengths nor NULLs,
 * which the statement leaves out. */
void packed_keys_begin(struct packed_keys *keys, const enum column_packing *packing, size_t columns,
                       struct span value)
{
    keys->packing = packing;
    keys->columns = columns;
    keys->width = 0;
    for (size_t i = 0; i < columns; i++)
        keys->width += bytes_of(packing[i]);
    keys->rest = value;
}

bool packed_keys_next(struct packed_keys *keys, struct span *texts)
{
    if (keys->rest.length < keys->width)
        return false;
    for (size_t i = 0; i < keys->columns; i++) {
        texts[i] = keys->packing[i] == PACKS_UUID ? print_uuid(keys->rest.at, keys->texts[i])
                                                  : print_integer(keys->rest.at, keys->texts[i]);
        keys->rest.at += bytes_of(keys->packing[i]);
        keys->rest.length -= bytes_of(keys->packing[i]);
    }
    return true;
}
