/* See get.h. */
#include "get.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int digits_of(uint64_t id)
{
    int digits = 1;
    while (id /= 10)
        digits++;
    return digits;
}

static uint64_t range_size(const struct id_range *range)
{
    return range->last - range->first + 1;
}

bool id_range_parse(const char *text, struct id_range *range)
{
    int end = 0;
    if (sscanf(text, "%" SCNu64 ":%" SCNu64 "%n", &range->first, &range->last, &end) != 2)
        return false;
    return !text[end] && range->first <= range->last && range_size(range) <= UINT32_MAX &&
           digits_of(range->first) == digits_of(range->last);
}

uint64_t id_range_random(const struct id_range *range, uint64_t *state)
{
    uint64_t x = *state; /* Marsaglia, "Xorshift RNGs", 2003 */
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return range->first + ((x >> 32) * range_size(range) >> 32);
}

uint64_t id_range_at(const struct id_range *range, uint64_t turn)
{
    const uint64_t step = 2654435761u; /* prime and larger than a range: each member comes once */
    uint64_t size = range_size(range);
    return range->first + (turn % size) * (step % size) % size;
}

bool get_request_init(struct get_request *request, const char *prefix, const struct id_range *range)
{
    int digits = digits_of(range->first);
    int length = snprintf(request->bytes, sizeof request->bytes,
                          "*2\r\n$3\r\nGET\r\n$%zu\r\n%s%" PRIu64 "\r\n",
                          strlen(prefix) + (size_t)digits, prefix, range->first);
    if (length < 0 || (size_t)length >= sizeof request->bytes)
        return false;
    request->length = (size_t)length;
    request->digits = (size_t)digits;
    request->digits_at = request->length - request->digits - 2;
    return true;
}

bool member_request_init(struct get_request *request, const struct id_range *range)
{
    int digits = digits_of(range->first);
    int length = snprintf(request->bytes, sizeof request->bytes, "$%d\r\n%" PRIu64 "\r\n", digits,
                          range->first);
    request->length = (size_t)length;
    request->digits = (size_t)digits;
    request->digits_at = request->length - request->digits - 2;
    return true;
}

size_t members_head(char head[MEMBERS_HEAD_MOST], const char *filter, unsigned items)
{
    return (size_t)snprintf(head, MEMBERS_HEAD_MOST,
                            "*%u\r\n$10\r\nBF.MEXISTS\r\n$%zu\r\n%.40s\r\n", items + 2,
                            strlen(filter), filter);
}

void get_request_put_id(const struct get_request *request, char *bytes, uint64_t id)
{
    char *digits = bytes + request->digits_at;
    for (size_t i = request->digits; i-- > 0; id /= 10)
        digits[i] = (char)('0' + id % 10);
}

/* A reply of one line that ends at `line_end`, or the bulk string that the line announces. */
static enum reply take_bulk(const char *p, const char *line_end, const char *end, const char **next)
{
    if (p[1] == '-') {
        *next = line_end;
        return REPLY_NIL;
    }
    size_t length = strtoul(p + 1, NULL, 10);
    if ((size_t)(end - line_end) < length + 2)
        return REPLY_PARTIAL;
    *next = line_end + length + 2;
    return length ? REPLY_VALUE : REPLY_EMPTY;
}

enum reply reply_take(const char *p, const char *end, const char **next)
{
    static const char nil[] = "$-1\r\n";
    if (p < end && *p == '*') {
        const char *first = memchr(p, '\n', (size_t)(end - p));
        return first ? reply_take(first + 1, end, next) : REPLY_PARTIAL;
    }
    if ((size_t)(end - p) >= sizeof nil - 1 && !memcmp(p, nil, sizeof nil - 1)) {
        *next = p + sizeof nil - 1; /* the most frequent by far, so it should cost little */
        return REPLY_NIL;
    }
    const char *line_end = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    if (!line_end)
        return REPLY_PARTIAL;
    line_end++;
    if (*p == '$')
        return take_bulk(p, line_end, end, next);
    *next = line_end;
    if (*p == '_')
        return REPLY_NIL;
    if (*p == ':')
        return p[1] == '0' ? REPLY_NIL : REPLY_VALUE;
    return *p == '-' ? REPLY_ERROR : REPLY_STATUS;
}
