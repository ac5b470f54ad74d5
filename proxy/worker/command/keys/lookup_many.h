/* Lookups of many keys by one command, each with a course of its own:
 *
 *   MGET     one request to the cache for all keys that pass; each lookup keeps its part of the
 *            reply until all are there
 *   EXISTS   one request for each key that passes, because the cache gives only a sum; the reply is
 *            their sum, or the first error
 *
 * Of a command with more than LOOKUPS_AT_ONCE keys so many are decided upon and asked for at a
 * time, in turn with other clients: a piece. Before that it is looked through for a guarded key,
 * likewise: without any it goes to the cache as it came, as one command. Its client has nothing
 * else under way meanwhile: what it asked before is answered, and what it asks next is not looked
 * at. So, between two pieces,
 *
 *   - nothing of the client's can overtake anything, whichever connection is its own by then;
 *   - a generation, a hint or an entry that comes holds for the keys that follow, as if each had
 *     been asked for by a command of its own: no key is decided upon by what another piece saw;
 *   - the client may go: the slot is left to the next piece, which frees it and asks for no more.
 *
 * The keys stay in the memory that they were read into, and so does the reply until it is joined,
 * in pieces, too. Together such commands may take an eighth of max_client_memory, or one alone as
 * much as it likes; past that a command is served at once. In any case such an MGET is several to
 * the cache, and no snapshot: of a transaction that is done meanwhile it may see a part.
 */
#ifndef NESTGUARD_LOOKUP_MANY_H
#define NESTGUARD_LOOKUP_MANY_H

#include "worker/request/request.h"

/* Whether the command is one of these, and one of its keys is guarded. Without any it is the
 * cache's alone, and its reply need not be taken apart. */
bool lookup_many_is_guarded(const struct client *client, const struct request *request);

/* Whether it is served in pieces, and something of the client's is to be answered or let go of
 * before. */
bool lookup_many_must_wait(const struct client *client, const struct request *request);

/* Dispatches such a command, or looks for a guarded key first, in pieces; false: it is none, and
 * nothing has been done. Keys without memory for them are an error to the client. */
bool lookup_many_dispatch(struct client *client, const struct request *request);

/* In a cluster: an MGET or EXISTS whose keys are on several nodes, guarded or not. */
void lookup_each(struct client *client, const struct request *request);

#endif
