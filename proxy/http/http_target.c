/* Targets are decoded here, not by libmicrohttpd: it decodes in place into a C string, which %00
 * would cut. */
#include "http/http_target.h"

#include "base/hex.h"
#include "base/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>

/* Decodes text into out, which has room for as many bytes; returns how many it wrote, or -EINVAL.
 */
static ptrdiff_t unescape(char *out, struct span text, const char **error)
{
    char *at = out;

    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] != '%') {
            *at++ = text.at[i];
            continue;
        }
        int byte = i + 2 < text.length ? hex_byte(text.at + i + 1) : -1;
        if (byte < 0) {
            *error = "bad percent escape: a '%' is followed by two hexadecimal digits (%25 is '%' "
                     "itself)";
            return -EINVAL;
        }
        *at++ = (char)byte;
        i += 2;
    }
    return at - out;
}

/* Appends the decoded word and a NUL at *at. In a query, forms write a blank as '+'. */
static int append_word(char **at, struct span word, const char **error)
{
    char *start = *at;
    ptrdiff_t length;

    for (size_t i = 0; i < word.length; i++)
        start[i] = word.at[i] == '+' ? ' ' : word.at[i];
    /* In place: what is written never overtakes what is read. */
    length = unescape(start, (struct span){start, word.length}, error);
    if (length < 0)
        return -EINVAL;
    if (memchr(start, '\0', (size_t)length)) {
        *error = "%00 in the query";
        return -EINVAL;
    }
    start[length] = '\0';
    *at = start + length + 1;
    return 0;
}

/* Writes each pair of "a=b&c" at *at. */
static int append_pairs(char **at, const char *query, const char **error)
{
    while (*query) {
        size_t length = strcspn(query, "&");
        size_t name = strcspn(query, "=&");
        struct span value = {query + name, 0};

        if (name < length)
            value = (struct span){query + name + 1, length - name - 1};
        if (length > 0 && (append_word(at, (struct span){query, name}, error) < 0 ||
                           append_word(at, value, error) < 0))
            return -EINVAL;
        query += length + (query[length] == '&');
    }
    return 0;
}

/* The path-and-query of an absolute target; proxies send those, and every server must take them. */
const char *http_target_local(const char *text)
{
    if (strncasecmp(text, "http://", 7) != 0)
        return text;
    text += 7;
    return text + strcspn(text, "/?");
}

/* Bytes beyond ASCII pass: keys may hold them, and clients often send them as they are. */
static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

int http_target_parse(struct http_target *out, const char *text, const char **error)
{
    const char *path = http_target_local(text);
    size_t length = strcspn(path, "?");
    const char *query = path[length] == '?' ? path + length + 1 : path + length;
    char *own, *at;
    ptrdiff_t decoded;

    *out = (struct http_target){0};
    if (!is_printable(text)) {
        *error = "blanks and control characters must be percent-escaped";
        return -EINVAL;
    }
    if (*path != '/') {
        *error = "the target must be a path that begins with '/'";
        return -EINVAL;
    }
    /* "a&b&c" decodes into two strings a name: a NUL for the '&' and one for the missing '='. */
    own = malloc(length + 2 * strlen(query) + 4);
    if (!own) {
        *error = "no memory for the request's target";
        return -ENOMEM;
    }
    decoded = unescape(own, (struct span){path, length}, error);
    if (decoded < 0)
        goto fail;
    at = own + decoded;
    out->path = (struct span){own, (size_t)decoded};
    out->query.at = at;
    if (append_pairs(&at, query, error) < 0)
        goto fail;
    out->query.length = (size_t)(at - out->query.at);
    out->own = own;
    return 0;
fail:
    free(own);
    *out = (struct http_target){0};
    return -EINVAL;
}

void http_target_finish(struct http_target *target)
{
    free(target->own);
    *target = (struct http_target){0};
}

const char *http_target_query(const struct http_target *target, const char *name)
{
    const char *at = target->query.at;
    const char *end = at ? at + target->query.length : at;

    while (at < end) {
        const char *value = at + strlen(at) + 1;

        if (strcmp(at, name) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

/* RFC 3986 §2.3, whatever the locale says. */
static bool is_unreserved(unsigned char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '_' || byte == '.' || byte == '~';
}

char *http_target_escape(struct span key)
{
    char *text = xmalloc(key.length * 3 + 1), *at = text;

    for (size_t i = 0; i < key.length; i++) {
        unsigned char byte = (unsigned char)key.at[i];

        if (is_unreserved(byte)) {
            *at++ = (char)byte;
            continue;
        }
        *at++ = '%';
        *at++ = hex_digit_upper(byte >> 4);
        *at++ = hex_digit_upper(byte);
    }
    *at = '\0';
    return text;
}
