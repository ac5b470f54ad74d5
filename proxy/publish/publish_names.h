/* What a published filter is called in the cache. */
#ifndef NESTGUARD_PUBLISH_NAMES_H
#define NESTGUARD_PUBLISH_NAMES_H

#include "config/config.h"

enum { PUBLISH_OWNER_SIZE = 17 }; /* 16 hex digits */

struct publish_names {
    char *bitmap[PUBLISH_LAYERS_MAX];   /* NAME; of one that grows NAME-0, NAME-1, ... */
    char *building[PUBLISH_LAYERS_MAX]; /* until it is whole: nobody else's; NULL: not yet named */
    unsigned count;                     /* of these two */
    char *info, *lease, *cursor;        /* cursor: of one that grows */
};

void publish_names_init(struct publish_names *names, const struct publish *publish);
/* Names under which nothing was built before, for another attempt: whatever of an earlier one is
 * still on its way to the cache cannot take what is half written for whole. */
void publish_names_build(struct publish_names *names, const char *owner, uint64_t attempt);
void publish_names_finish(struct publish_names *names);

#endif
