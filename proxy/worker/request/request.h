/* One command of a client, parsed and looked up in the table of commands; and its way to the cache.
 */
#ifndef NESTGUARD_REQUEST_H
#define NESTGUARD_REQUEST_H

#include "resp/command.h"
#include "resp/resp.h"
#include "worker/client/client.h"

struct request {
    const struct command *command;
    const struct span *arguments; /* in the worker's list, until it moves or the batch ends */
    size_t first, count;          /* where they begin in it */
    struct span raw;              /* as sent */
    bool is_inline;
    int keyspace; /* of its first key, when that is all that the command looks up; or NOT_GUARDED */
    bool held;    /* of a guarded one: whether its filter may hold it */
};

/* A web page that makes a browser talk to this port must not get a command through: its request
 * line and headers look like inline commands. */
bool request_is_http(const struct request *request);

/* Redis finds a command by the hash of its whole name, and then compares up to a zero byte: what is
 * behind that may be chosen so that AUTH is found, which here is known as nothing. */
bool request_hides_its_name(const struct request *request);

/* Sends the command to the cache as request number `index` of the slot, one of this client's. */
void request_to_cache(const struct request *request, struct client *client, struct reply_slot *slot,
                      unsigned index);

/* In place of a command inside MULTI the cache gets one without arguments, so that it gives the
 * transaction up. */
void request_spoil(struct client *client, struct reply_slot *slot, unsigned index);

/* Sends the command to the cache as it is; its reply is the client's. */
void request_forward(const struct request *request, struct client *client);

/* The same of a command that reads a guarded key: of a row's, it fails where the server may have
 * forgotten a deletion, whenever that is found out (upstream_is_doubted()). */
void request_forward_read(const struct request *request, struct client *client);

/* The same of one that may write as well, and tells of a row whatever its keys are. */
void request_forward_telling(const struct request *request, struct client *client);

/* Only the slot, for bytes that are sent otherwise. */
struct reply_slot *request_open(struct client *client);

/* The same, with a reply that the kind takes. The slot may be gone once the reply has come. */
struct reply_slot *request_forward_as(const struct request *request, struct client *client,
                                      const struct reply_slot_kind *kind);

/* A reply_slot_kind's on_cache and on_cache_failure: the client gets the reply as it came, or an
 * error. */
void request_take_reply(struct reply_slot *slot, unsigned index, struct span reply);
void request_take_failure(struct reply_slot *slot, unsigned index, const char *why);

/* The same of one that something is concluded from: only `is_expected` (resp/reply.h) is a yes, and
 * is returned. What is no error either is not passed on: the client is told of that, or, where the
 * command changes its connection, which may be in any state now, goes as well. */
#define REQUEST_STRANGE "NESTGUARD cache error: its reply is none that this command has"
bool request_take_answer(struct reply_slot *slot, struct span reply, bool is_expected);
bool request_take_change(struct reply_slot *slot, struct span reply, bool is_expected);

/* The slot's command asks for more than there is memory for: its reply is an error, and answered.
 */
void request_refuse_memory(struct reply_slot *slot);

/* Appends the command as it goes to the cache. */
void request_write(const struct request *request, struct buffer *out);

#endif
