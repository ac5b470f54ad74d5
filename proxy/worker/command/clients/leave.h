/* Whether the user who sent a CLIENT command may have it answered here: by what the cache says to
 * it, or to one like it that does nothing.
 */
#ifndef NESTGUARD_LEAVE_H
#define NESTGUARD_LEAVE_H

#include "base/span.h"

/* `is_answer`: it is what the command answers (resp/reply.h). A server that does not know these
 * words of CLIENT gives leave, too: who may not ask is refused before they are looked at. */
bool leave_is_given(struct span reply, bool is_answer);

/* The id that a client of the cache would have last of all, in decimal: nobody's. */
extern const char leave_nobody[];

#endif
