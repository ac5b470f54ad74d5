/* What the parts of the protocol's implementation share: resp.c (commands), resp_inline.c (their
 * quoted form), resp_frame.c (replies), resp_write.c. */
#ifndef NESTGUARD_RESP_INTERNAL_H
#define NESTGUARD_RESP_INTERNAL_H

#include "resp.h"

/* Appends one argument. The list grows by what was really read: a header that announces a million
 * arguments costs its sender as many before it costs us the memory. */
void resp_arguments_push(struct resp_arguments *arguments, const char *at, size_t length);

/* Splits an inline command into arguments as Redis does and unquotes them in place. Returns NULL,
 * or what is wrong with the line. */
const char *resp_split_inline(char *line, size_t length, const struct resp_limits *limits,
                              struct resp_arguments *arguments);

/* Reads a number and its CR LF. RESP_DONE: *at is behind them; the number has at most 18 digits, so
 * that sums and doubles of a few of them do not overflow. RESP_MORE: a number may begin here.
 * RESP_BAD: anything else, also a sign without a number, and leading zeros, which Redis rejects. */
static inline enum resp_status resp_read_number(const char **at, const char *end, int64_t *number)
{
    const char *first = *at;
    bool negative = first < end && *first == '-';
    first += negative;
    const char *digit = first, *limit = end - first > 18 ? first + 18 : end;
    int64_t value = 0;
    for (; digit < limit && (unsigned char)(*digit - '0') <= 9; digit++) {
        value = value * 10 + (*digit - '0');
    }
    if (digit == end) {
        return RESP_MORE;
    }
    if (*digit != '\r' || digit == first || (*first == '0' && (negative || digit - first > 1))) {
        return RESP_BAD;
    }
    if (digit + 1 == end) {
        return RESP_MORE;
    }
    *number = negative ? -value : value;
    *at = digit + 2;
    return digit[1] == '\n' ? RESP_DONE : RESP_BAD;
}

#endif
