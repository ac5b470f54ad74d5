#include "net/handshakes.h"

enum { HANDSHAKES_NS = 250 * 1000 }; /* of a millisecond */

/* Each thread has one loop. */
static _Thread_local struct {
    uint64_t ms, taken_ns;
    struct handshake *first, *last;
} line;

static bool has_time(const uv_loop_t *loop)
{
    uint64_t now = uv_now(loop);
    if (line.ms != now) {
        line.ms = now;
        line.taken_ns = 0;
    }
    return line.taken_ns < HANDSHAKES_NS;
}

bool handshake_may_go_on(const struct handshake *handshake, const uv_loop_t *loop)
{
    bool is_next = handshake->in_line ? line.first == handshake : !line.first;
    return is_next && has_time(loop);
}

void handshake_took(uint64_t nanoseconds)
{
    line.taken_ns += nanoseconds;
}

void handshake_line_up(struct handshake *handshake)
{
    *handshake = (struct handshake){.ahead = line.last, .in_line = true};
    *(line.last ? &line.last->behind : &line.first) = handshake;
    line.last = handshake;
}

void handshake_leave_line(struct handshake *handshake)
{
    if (!handshake->in_line)
        return;
    *(handshake->ahead ? &handshake->ahead->behind : &line.first) = handshake->behind;
    *(handshake->behind ? &handshake->behind->ahead : &line.last) = handshake->ahead;
    handshake->in_line = false;
}
