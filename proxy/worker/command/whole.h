/* A command that becomes several, to several nodes, and whose replies become one again.
 *
 *   DEL a b c ─▶ DEL a ─▶ node 1 ─┐
 *                DEL b ─▶ node 2 ─┼─▶ the whole: summed up, or the first error
 *                DEL c ─▶ node 1 ─┘
 *
 * Each part is a command like any other, so that a write is a hint and a deletion is told of; only
 * its reply goes to the whole's slot, which stands before them in the client's queue.
 */
#ifndef NESTGUARD_WHOLE_H
#define NESTGUARD_WHOLE_H

#include "resp/command_way.h"
#include "worker/request/request.h"

struct whole {
    struct client *client;
    struct reply_slot *slot;
    bool muted; /* the client is */
};

/* What the client asks between the two is a part. */
struct whole whole_begin(struct client *client, enum command_join join);
void whole_end(struct whole *whole);

/* To every primary. */
void whole_to_all(struct client *client, const struct request *request, enum command_join join);

/* Key by key. */
void whole_by_keys(struct client *client, const struct request *request,
                   const struct command_way *way);

/* SCAN: its cursor says which node, and where there. */
void whole_scan(struct client *client, const struct request *request);

#endif
