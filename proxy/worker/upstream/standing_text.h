/* From the reply to INFO replication to the text that redis_standing.h reads. */
#ifndef NESTGUARD_STANDING_TEXT_H
#define NESTGUARD_STANDING_TEXT_H

#include "base/span.h"

/* The caller frees it. NULL: it is no such reply, or none of a sane size. */
char *standing_text(struct span reply);

#endif
