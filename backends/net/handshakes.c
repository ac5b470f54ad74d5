#include "net/handshakes.h"

enum { HANDSHAKES_NS = 250 * 1000 }; /* of a millisecond */

/* Each thread has one loop. `hosts` are all that have somebody who waits, in a circle, from the one
 * that is next; the line of dials is not among them. */
static _Thread_local struct {
    uint64_t ms, taken_ns;
    struct handshake_line *hosts, dials;
    bool after_host; /* the last turn was one of theirs; then it is a dial's, when one waits */
} state;

static bool has_time(const uv_loop_t *loop)
{
    uint64_t now = uv_now(loop);
    if (state.ms != now) {
        state.ms = now;
        state.taken_ns = 0;
    }
    return state.taken_ns < HANDSHAKES_NS;
}

void handshake_took(uint64_t nanoseconds)
{
    state.taken_ns += nanoseconds;
}

/* ---- the round ---- */

/* As the last, in front of the one whose turn it is: who has just had one, and comes back, passes
 * nobody. */
static void enter_round(struct handshake_line *line)
{
    struct handshake_line *next = state.hosts ? state.hosts : line;
    line->after = next;
    line->before = state.hosts ? next->before : line;
    line->before->after = next->before = line;
    state.hosts = next;
}

static void leave_round(struct handshake_line *line)
{
    line->before->after = line->after;
    line->after->before = line->before;
    if (state.hosts == line)
        state.hosts = line->after == line ? NULL : line->after;
}

static struct handshake *next_waiting(void)
{
    const struct handshake_line *hosts = state.hosts, *dials = &state.dials;
    if (dials->first && (state.after_host || !hosts))
        return dials->first;
    return hosts ? hosts->first : NULL;
}

/* ---- lines ---- */

static struct handshake_line *line_of(const struct handshake *handshake)
{
    return handshake->line ? handshake->line : &state.dials;
}

void handshake_line_up(struct handshake *handshake)
{
    struct handshake_line *line = line_of(handshake);
    if (!line->first && line != &state.dials)
        enter_round(line);
    handshake->ahead = line->last;
    handshake->behind = NULL;
    handshake->waits = true;
    *(line->last ? &line->last->behind : &line->first) = handshake;
    line->last = handshake;
}

void handshake_leave_line(struct handshake *handshake)
{
    struct handshake_line *line = line_of(handshake);
    if (!handshake->waits)
        return;
    *(handshake->ahead ? &handshake->ahead->behind : &line->first) = handshake->behind;
    *(handshake->behind ? &handshake->behind->ahead : &line->last) = handshake->ahead;
    handshake->waits = false;
    if (!line->first && line != &state.dials)
        leave_round(line);
}

/* The turn passes on before the line may leave the round. */
bool handshake_take_turn(struct handshake *handshake, const uv_loop_t *loop)
{
    if (next_waiting() != (handshake->waits ? handshake : NULL) || !has_time(loop))
        return false;
    if (!handshake->waits)
        return true;
    state.after_host = handshake->line != NULL;
    if (handshake->line)
        state.hosts = handshake->line->after;
    handshake_leave_line(handshake);
    return true;
}
