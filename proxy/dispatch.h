/* From bytes to decisions: what becomes of each command of a client. */
#ifndef NESTGUARD_DISPATCH_H
#define NESTGUARD_DISPATCH_H

#include "client.h"
#include "command.h"
#include "resp.h"

enum { BATCH_COMMANDS = 64 };

/* One command of a batch. */
struct request {
    const struct command *command;
    const struct span *arguments;
    size_t count;
    struct span raw; /* as sent */
    bool is_inline;
    int keyspace; /* of its first key, when that is all that the command looks up; or NOT_GUARDED */
    uint64_t hash;
};

/* Parses up to BATCH_COMMANDS commands, hashes and prefetches their guarded keys, then dispatches
 * them in order. Returns how many bytes it has done with; 0: not one whole command is there
 * (client->need says how many bytes to wait for) or the client is closing. */
size_t dispatch_batch(struct client *client, char *input, size_t length);

/* Commands that the guard answers by itself (local.c): AUTH, HELLO, SELECT, CLIENT, QUIT. */
void dispatch_local(struct client *client, const struct request *request);

/* Sends the command to the cache as request number `index` of the slot. */
void dispatch_to_cache(struct slot *slot, unsigned index, const struct request *request);

/* Sends the command to the cache as it is; its reply is the client's. */
void dispatch_forward(struct client *client, const struct request *request);

#endif
