#include "base/text/shown.h"

#include "base/hex.h"
#include "base/memory.h"

enum { MOST = 4 }; /* bytes that one may take: \xNN */

char *text_shown(struct span bytes)
{
    char *text = xmalloc(bytes.length * MOST + 3), *at = text;
    *at++ = '"';
    for (size_t i = 0; i < bytes.length; i++) {
        unsigned char byte = (unsigned char)bytes.at[i];
        bool is_plain = byte >= ' ' && byte < 0x7f;
        if (byte == '"' || byte == '\\' || !is_plain)
            *at++ = '\\';
        if (!is_plain) {
            *at++ = 'x';
            *at++ = hex_digit_lower(byte >> 4);
        }
        *at++ = is_plain ? (char)byte : hex_digit_lower(byte);
    }
    *at++ = '"';
    *at = '\0';
    return text;
}
