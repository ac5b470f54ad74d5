/* What stands behind CLIENT LIST, CLIENT KILL and CLIENT TRACKING. */
#ifndef NESTGUARD_CLIENT_WORDS_H
#define NESTGUARD_CLIENT_WORDS_H

#include "worker/client/roster.h"
#include "worker/request/request.h"

/* 0: this is no number above that, or too large a one. */
uint64_t client_words_id(struct span text);

/* For a filter: an empty one, too, which nobody has. Of one that is longer than any, only so much
 * that it stays so. */
char *client_words_text(struct span text);

/* Adds to the filter, which is to be finished in any case. False: the words are wrong, and the
 * error is in `out`, as Redis says it. */
bool client_words_list(struct client_filter *filter, const struct request *request,
                       struct buffer *out);
/* With filters. That of SKIPME no is `but`, with which the filter begins. */
bool client_words_kill(struct client_filter *filter, const struct request *request,
                       struct buffer *out);

/* Of a CLIENT TRACKING, which is noted: how it is to be, but not its bytes, and the id behind
 * REDIRECT. Returns which argument that id is; 0: there is none, or not a good one. */
size_t client_words_tracking(const struct request *request, struct pinned *pinned);

#endif
