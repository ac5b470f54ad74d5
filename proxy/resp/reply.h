/* What a reply is. Whoever takes a reply for more than bytes to pass on, for a yes, a state, a
 * right, asks here whether it is what that command answers: not being an error says nothing. A
 * server that debugs a script or monitors, or a command of a module that answers twice, has others
 * come in its place.
 *
 * Of whole replies, in either protocol; an empty span is none of these.
 */
#ifndef NESTGUARD_REPLY_H
#define NESTGUARD_REPLY_H

#include "base/span.h"

/* "-ERR ...", or RESP3's "!21 ...". */
static inline bool reply_is_error(struct span reply)
{
    return reply.length && (reply.at[0] == '-' || reply.at[0] == '!');
}

static inline bool reply_is_ok(struct span reply)
{
    return span_is(reply, "+OK\r\n");
}

static inline bool reply_is_queued(struct span reply)
{
    return span_is(reply, "+QUEUED\r\n");
}

static inline bool reply_is_nil(struct span reply)
{
    return reply.length <= 5 && (span_is(reply, "$-1\r\n") || span_is(reply, "_\r\n"));
}

/* ":12". */
bool reply_is_number(struct span reply);

/* A bulk string or RESP3's verbatim one, and no nil. */
bool reply_is_text(struct span reply);

/* A list, which is no nil either, of any number of elements or of so many. */
bool reply_is_list(struct span reply);
bool reply_is_list_of(struct span reply, size_t count);

/* What HELLO tells of the server: a map in RESP3, a list in RESP2, and the protocol that this is
 * among it. */
bool reply_is_hello(struct span reply);

#endif
