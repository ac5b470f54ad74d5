/* Replies of any bytes, framed in one go, byte by byte, and against a plain recursive reading.
 * Build with -DFUZZ=ON and clang. */
#include "resp/resp.h"

#include <stdint.h>
#include <stdlib.h>

#define CHECK(condition) ((condition) ? (void)0 : abort())

/* Some servers put a push between the values of a reply. It is none of them, which only the framer
 * knows; and strstr() stops at a zero. */
static bool reads_plainly(const char *reply, size_t length)
{
    return !memchr(reply, '\0', length) && !strstr(reply, "\n>");
}

/* A reply's end, found the obvious way: for replies that are known to be whole. */
static const char *end_of(const char *at)
{
    char marker = *at;
    const char *line = strstr(at, "\r\n") + 2;
    long long number = strtoll(at + 1, NULL, 10);
    if (at[1] == '?' && strchr("$*%~>|", marker)) {
        while (*line != '.' && !(*line == ';' && line[1] == '0')) {
            line = *line == ';' ? strstr(line, "\r\n") + 4 + strtoll(line + 1, NULL, 10)
                                : end_of(line);
        }
        return strstr(line, "\r\n") + 2;
    }
    if (strchr("$!=", marker)) {
        return number < 0 ? line : line + number + 2;
    }
    if (strchr("*%~>|", marker)) {
        long long values = strchr("%|", marker) ? number * 2 : number;
        for (values += marker == '|'; values > 0; values--) {
            line = end_of(line);
        }
    }
    return line;
}

static void check_elements(const char *reply, size_t length)
{
    const char *at, *end = reply + length;
    int64_t count = resp_array_open((struct span){reply, length}, &at);
    for (int64_t i = 0; i < count; i++) {
        struct span element = resp_array_next(&at, end);
        CHECK(element.length > 0 && at <= end && element.at + element.length == at);
    }
    CHECK(at == end);
}

static enum resp_status in_pieces(const char *input, size_t length, size_t *taken)
{
    struct resp_frame frame = {0};
    enum resp_status status = RESP_MORE;
    for (size_t have = 0; have <= length && status == RESP_MORE; have++) {
        char *piece = malloc(have ? have : 1);
        CHECK(piece);
        memcpy(piece, input, have);
        status = resp_frame_reply(&frame, piece, have, taken);
        CHECK(status == RESP_BAD || (frame.scanned <= have && frame.open >= 0));
        CHECK(status != RESP_DONE || *taken == have);
        free(piece);
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *input = (const char *)bytes;
    size_t taken = 0, taken_in_pieces = 0;
    struct resp_frame frame = {0};
    enum resp_status status = resp_frame_reply(&frame, input, size, &taken);
    CHECK(in_pieces(input, size, &taken_in_pieces) == status);
    if (status == RESP_DONE) {
        CHECK(taken > 0 && taken <= size && taken == taken_in_pieces);
        CHECK(frame.scanned == 0 && !frame.begun && frame.depth == 0 && frame.body == 0);
        char *reply = malloc(taken + 1);
        CHECK(reply);
        memcpy(reply, input, taken);
        reply[taken] = '\0';
        bool plain = reads_plainly(reply, taken);
        CHECK(!plain || end_of(reply) == reply + taken);
        if (plain && strchr("*~>$", *reply) && reply[1] != '?') {
            check_elements(reply, taken);
        }
        free(reply);
    }
    return 0;
}
