/* Loads that wait for their turn at the database: a line for each client, served in rounds, so that
 * whoever asks for much waits for itself and not others for it. Clients from one place share its
 * turns: who opens a thousand connections there has no more of them than who opens one elsewhere.
 *
 *   fresh ─▶ origin                      origins that have just begun go first, for one round
 *   seasoned ─▶ origin ─▶ origin         then all in turn
 *                  │ credit
 *                  ├ fresh ─▶ line       and so do the lines of an origin
 *                  └ seasoned ─▶ line ─▶ line
 *                                  │ credit
 *                                  └ request ─▶ request ─▶ request      in the order of asking
 *
 * Deficit round robin (Shreedhar and Varghese 1995) with a list for those that begin (Hoeiland-
 * Joergensen et al., RFC 8290, section 4.2), of whom only so many in a row go before others: there
 * may be new ones without end. A line that runs empty stays for the rest of its round: who asks
 * again and again, one at a time, is no beginner each time. A load costs a fixed sum, and its
 * value's bytes when they are known.
 */
#ifndef NESTGUARD_LOADS_QUEUE_H
#define NESTGUARD_LOADS_QUEUE_H

#include "base/keymap.h"
#include "guard/messages.h"

enum {
    LOAD_COST = 1024,         /* of a query, in bytes that cost as much */
    LOAD_DEBT = 64 * 1024 * 4 /* the most that values can make a client wait for */
};

struct load_place;

struct load_places {
    struct load_place *first, *last;
};

/* Who take turns. */
struct load_round {
    struct load_places fresh, seasoned;
    unsigned beginners; /* who had their turns before others, in a row */
};

struct load_queue {
    struct keymap by_asker, by_origin;
    struct load_round origins;
    size_t count, bytes; /* of the requests that wait */
};

void load_queue_init(struct load_queue *queue);
void load_queue_finish(struct load_queue *queue); /* nobody waits */

/* In its client's line, in the order of asking; a client keeps its origin. */
void load_queue_push(struct load_queue *queue, struct load_request *request);

/* Whose turn it is, taken out; NULL: nobody waits. */
struct load_request *load_queue_next(struct load_queue *queue);

/* Takes out one that waits. */
void load_queue_remove(struct load_queue *queue, struct load_request *request);

/* The load that was asked for brought so many bytes; its client has no line any more, maybe. */
void load_queue_charge(struct load_queue *queue, const struct load_request *request, size_t bytes);

/* The same of so many that nobody is let off: a client without a line has one until it has paid, or
 * nobody else waits. Else who asks for one at a time would be as one who has just come, each time.
 */
void load_queue_bill(struct load_queue *queue, const struct load_request *request, size_t bytes);

/* Until no more than so many bytes wait: calls `act` for the youngest of the lines with the most
 * bytes, of the origins with the most, which must take it out. Lines and origins that have an
 * eighth more or less than each other count as having the same. */
void load_queue_shrink(struct load_queue *queue, size_t bytes,
                       void (*act)(void *arg, struct load_request *request), void *arg);

/* Calls `act` for each that asked at that time or before, which must take it out. */
void load_queue_each_overdue(struct load_queue *queue, uint64_t time,
                             void (*act)(void *arg, struct load_request *request), void *arg);

#endif
