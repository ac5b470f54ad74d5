/* Whose TLS handshake goes on when. Handshakes are dear, and whoever can connect may begin one: all
 * of a loop's together get so much of each of its milliseconds, and who is late in it waits.
 *
 *   hosts:  a ─▶ b ─▶ c ─▶ a …     each with a line of its own, in order of arrival
 *   dials:  one line beside them
 *
 * Each host in the round has one step, so that a crowd from one is in nobody's way but its own; and
 * every other step is a dial's, so that neither crowds keep the guard from its cache nor dials
 * clients from the guard.
 */
#ifndef NESTGUARD_HANDSHAKES_H
#define NESTGUARD_HANDSHAKES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Zeroed but for `line`, its host's or NULL for that of dials: it does not wait. While it does, the
 * line must be there. */
struct handshake {
    struct handshake_line *line;
    struct handshake *ahead, *behind;
    bool waits;
};

/* Of one host, those that wait. Zeroed: none. */
struct handshake_line {
    struct handshake *first, *last;
    struct handshake_line *before, *after; /* in the round, while there is a first */
};

/* On the loop's thread, as all of these: whether it goes on now, because there is time for a step
 * and it is its turn, or nobody waits. It does not wait any more then, and the turn is the next
 * one's. */
bool handshake_take_turn(struct handshake *handshake, const uv_loop_t *loop);

/* So long it took just now. */
void handshake_took(uint64_t nanoseconds);

void handshake_line_up(struct handshake *handshake);
void handshake_leave_line(struct handshake *handshake); /* if it is there */

#endif
