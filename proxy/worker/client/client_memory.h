/* The memory of clients: one ceiling for those of all workers. What each takes is looked at from
 * time to time, and when much has come. While it is too much in all, the host that takes most, over
 * however many connections, loses the one that takes most of its clients, whichever worker has it:
 * each worker looks to its own, and knows of the heaviest host of each of the others.
 */
#ifndef NESTGUARD_CLIENT_MEMORY_H
#define NESTGUARD_CLIENT_MEMORY_H

#include "worker/client/client.h"

enum { CLIENT_MEMORY_WORKERS = 256 };

/* What a worker shows of the host whose clients take most there. Not of one moment. */
struct heaviest_host {
    _Atomic uint64_t origin;
    _Atomic size_t bytes;   /* 0: there is none */
    _Atomic size_t largest; /* of these, of one client */
};

/* Of all workers. Zeroed: nobody takes anything. */
struct client_memory {
    _Atomic size_t total;
    struct heaviest_host heaviest[CLIENT_MEMORY_WORKERS];
};

/* Input that waits, commands under way or held back, with their lookups, and replies that wait or
 * are gathered; encrypted, too. */
size_t client_memory_of(const struct client *client);

/* Looks at all clients, and cuts off whom it must. */
void client_memory_check(struct clients *clients);

/* The same in pieces, once in a while: it begins, each client is looked at, and it ends, while no
 * command is being served. What was needed for a peak, and is not any more, goes back to the system
 * then. */
void client_memory_begin(struct clients *clients);
void client_memory_look(struct client *client);
void client_memory_settle(struct clients *clients);

/* So much has come from clients, or for them: looks, if it is enough to matter. */
static inline void client_memory_came(struct clients *clients, size_t bytes)
{
    enum { MUCH = 8 * 1024 * 1024 };
    clients->memory_came += bytes;
    if (clients->memory_came >= MUCH)
        client_memory_check(clients);
}

#endif
