/* Of which keys of a write or deletion the keeper must know, and whether there is room for them
 * (hint_share.h). */
#ifndef NESTGUARD_WRITE_FOUND_H
#define NESTGUARD_WRITE_FOUND_H

#include "guard/guard.h"
#include "worker/client/client.h"
#include "worker/client/queued_writes.h"
#include "worker/request/request.h"

/* By this worker's view and entries; see guard.h. */
enum write_needs write_needs(const struct serving *serving, struct key key, enum worth worth);

/* Keys that a command names, each `step` behind the one before. */
struct named {
    const struct span *keys;
    size_t count, step;
    bool deleted;
    bool waits; /* it may be long before they are written: what is known of them then counts */
};

/* Of a request whose number of arguments its command allows. */
struct named named_by(const struct request *request);

/* Appends those from `first` up to `end` that must be noted: an array of struct made_key, of which
 * those are to have places that need a hint. */
void write_find_some(const struct serving *serving, const struct named *named, size_t first,
                     size_t end, enum worth worth, struct buffer *found);

/* Takes places of the shares of client and host for those found, or says that there are not
 * enough. */
bool write_is_granted(struct client *client, const struct named *named, const struct buffer *found);

/* Whether a user of the cache's own is refused a write whose keys there would be no room for if all
 * that are guarded were new. A refusal that is said before the cache is asked must not tell him
 * which are: he may not be allowed to know. */
bool write_exceeds_user(const struct client *client, const struct named *named);

/* Takes them in any case, for a write that cannot be refused. */
void write_grant(struct client *client, size_t places);

/* Both of all named keys. No command is refused because of keys that the filter holds, or that have
 * a hint: where there is no room for all, these go without. -ENOSPC: nor is there for the others.
 */
int write_find_noted(struct client *client, const struct named *named, struct buffer *found);

static inline const struct made_key *found_keys(const struct buffer *found)
{
    return (const struct made_key *)(const void *)buffer_span(found).at;
}

static inline size_t found_count(const struct buffer *found)
{
    return buffer_length(found) / sizeof(struct made_key);
}

/* EXEC: of the keys that its transaction is to write these are left that must be noted by now, and
 * their write has begun. False: there is no room for them any more, and nothing was done. */
bool write_find_queued(struct client *client);

/* Of the table of overrides: a key that has its hint there takes no more. */
size_t found_places(const struct buffer *found);

#endif
