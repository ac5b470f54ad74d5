/* Loads that wait for their turn at the database: a line for each client, served in rounds, so that
 * whoever asks for much waits for itself and not others for it.
 *
 *   fresh ─▶ line ─▶ line               lines that have just begun go first, for one round's worth
 *   seasoned ─▶ line ─▶ line ─▶ line    then all in turn
 *                 │ credit
 *                 └ request ─▶ request ─▶ request      in the order of asking
 *
 * Deficit round robin (Shreedhar and Varghese 1995) with a list for lines that begin (Hoeiland-
 * Joergensen et al., RFC 8290, section 4.2). A line that runs empty stays for the rest of its
 * round: who asks again and again, one at a time, is no beginner each time. A load costs a fixed
 * sum, and its value's bytes when they are known.
 */
#ifndef NESTGUARD_LOADS_QUEUE_H
#define NESTGUARD_LOADS_QUEUE_H

#include "guard/messages.h"

enum {
    LOAD_COST = 1024,         /* of a query, in bytes that cost as much */
    LOAD_DEBT = 64 * 1024 * 4 /* the most that values can make a client wait for */
};

struct load_lines {
    struct load_line *first, *last;
};

struct load_queue {
    struct keymap by_client;
    struct load_lines fresh, seasoned;
    size_t count, bytes; /* of the requests that wait */
};

void load_queue_init(struct load_queue *queue);
void load_queue_finish(struct load_queue *queue); /* nobody waits */

/* At the end of its client's line. */
void load_queue_push(struct load_queue *queue, struct load_request *request);

/* Whose turn it is, taken out; NULL: nobody waits. */
struct load_request *load_queue_next(struct load_queue *queue);

/* Takes out one that waits. */
void load_queue_remove(struct load_queue *queue, struct load_request *request);

/* A load of the client's brought so many bytes; it has no line any more, maybe. */
void load_queue_charge(struct load_queue *queue, const void *client, size_t bytes);

/* The youngest of the line with the most bytes, which stays; NULL: nobody waits. */
struct load_request *load_queue_fattest(const struct load_queue *queue);

/* Calls `act` for each that came at that time or before, which must take it out. */
void load_queue_each_overdue(struct load_queue *queue, uint64_t time,
                             void (*act)(void *arg, struct load_request *request), void *arg);

#endif
