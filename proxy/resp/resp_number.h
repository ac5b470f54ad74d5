/* Numbers as the protocol writes them: the lengths and counts of its headers. For whoever takes a
 * command or a reply apart by pieces.
 */
#ifndef NESTGUARD_RESP_NUMBER_H
#define NESTGUARD_RESP_NUMBER_H

#include "resp/resp.h"

/* Any number, for resp_read_number(). */
enum resp_status resp_read_long_number(const char **at, const char *end, int64_t *number);

/* Reads a number and its CR LF. RESP_DONE: *at is behind them; the number has at most 18 digits, so
 * that sums and doubles of a few of them do not overflow. RESP_MORE: a number may begin here.
 * RESP_BAD: anything else, also a sign without a number, and leading zeros, which Redis rejects. */
static inline enum resp_status resp_read_number(const char **at, const char *end, int64_t *number)
{
    /* Nearly every length has one digit or two. */
    const char *digit = *at;
    if (end - digit < 4) {
        return resp_read_long_number(at, end, number);
    }
    unsigned first = (unsigned char)(digit[0] - '0'), second = (unsigned char)(digit[1] - '0');
    if (first <= 9 && digit[1] == '\r' && digit[2] == '\n') {
        *number = first;
        *at = digit + 3;
        return RESP_DONE;
    }
    if (first - 1 < 9 && second <= 9 && digit[2] == '\r' && digit[3] == '\n') {
        *number = first * 10 + second;
        *at = digit + 4;
        return RESP_DONE;
    }
    return resp_read_long_number(at, end, number);
}

#endif
