/* jansson's own check for UTF-8 decides: what it takes is as it was sent, and only what it refuses
 * is written out.
 */
#include "http/json_bytes.h"

#include "base/buffer.h"
#include "base/utf8.h"

#include <string.h>

json_t *json_bytes(const void *bytes, size_t length)
{
    json_t *whole = json_stringn(bytes, length);
    if (whole)
        return whole;
    struct buffer shown = {0};
    if (!buffer_try_reserve(&shown, length * 4 + 1)) /* "\\xNN"; keys are as long as clients like */
        return json_string("(no memory to show it)");
    for (const char *at = bytes, *end = at + length; at < end;) {
        size_t took = utf8_character(at, (size_t)(end - at));
        if (took)
            buffer_append(&shown, at, took);
        else
            buffer_printf(&shown, "\\x%02x", (unsigned char)*at);
        at += took ? took : 1;
    }
    whole = json_stringn(buffer_span(&shown).at, buffer_span(&shown).length);
    buffer_finish(&shown);
    return whole;
}

json_t *json_text(const char *text)
{
    return text ? json_bytes(text, strlen(text)) : json_null();
}
