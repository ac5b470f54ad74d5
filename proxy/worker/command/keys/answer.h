/* What a lookup's answers read like, in RESP: of a key without a row, of a row that was loaded, of
 * a load that failed; and what the cache's own replies mean. Nothing here decides or waits. A
 * failure always reads as an error, never as nil.
 */
#ifndef NESTGUARD_ANSWER_H
#define NESTGUARD_ANSWER_H

#include "worker/reply/reply_slot.h"

enum { ANSWER_WORDS = 128 }; /* bytes, with the closing zero; longer words are cut */

/* A nil in the protocol of whoever asked. */
const char *answer_nil(const struct reply_slot *slot);

/* A cache that is starting, busy with a script, or cut off from its master or its cluster has no
 * answer to give: as good as down. All other errors are answers. */
bool answer_is_cache_failure(struct span reply);

/* Of an error reply, without its dash and line end: the cache tells best what it is at. What
 * another reply holds may be for somebody else: of that only that it is none. Returns `words`. */
const char *answer_error_words(struct span reply, char words[ANSWER_WORDS]);

/* What a lookup of an absent key gets, by the keyspace's `on_absent`; `plain` is the command's own
 * answer for a missing key. `takes_value`: the command is one that may get `absent_value`. */
void answer_write_absent(struct buffer *out, const struct keyspace *keyspace, const char *plain,
                         bool takes_value);

/* An error for every outcome but LOAD_ROW and LOAD_ABSENT. */
void answer_write_load_error(struct buffer *out, enum load_outcome outcome);

/* The answer of a GET or of one key of an MGET, by what the load came to; `value` is looked at with
 * LOAD_ROW only, and stays the caller's. Without memory for it the client goes
 * (reply_slot_starve()). */
void answer_write_loaded(const struct lookup *lookup, struct buffer *out, enum load_outcome outcome,
                         const struct blob *value);

#endif
