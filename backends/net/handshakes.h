/* Whose TLS handshake goes on when. Handshakes are dear, and whoever can connect may begin one: all
 * of a loop's together get so much of each of its milliseconds, and who is late in it waits for the
 * next, in a line.
 */
#ifndef NESTGUARD_HANDSHAKES_H
#define NESTGUARD_HANDSHAKES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Zeroed: in no line. */
struct handshake {
    struct handshake *ahead, *behind;
    bool in_line;
};

/* On the loop's thread, as all of these: it is this one's turn, and there is time for it. */
bool handshake_may_go_on(const struct handshake *handshake, const uv_loop_t *loop);

/* So long it took just now. */
void handshake_took(uint64_t nanoseconds);

void handshake_line_up(struct handshake *handshake);
void handshake_leave_line(struct handshake *handshake); /* if it is there */

#endif
