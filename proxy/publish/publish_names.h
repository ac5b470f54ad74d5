/* What a published filter is called in the cache. */
#ifndef NESTGUARD_PUBLISH_NAMES_H
#define NESTGUARD_PUBLISH_NAMES_H

#include "config/config.h"

enum { PUBLISH_OWNER_SIZE = 17 }; /* 16 hex digits */

struct publish_names {
    char *bitmap[PUBLISH_LAYERS_MAX];   /* NAME; of one that grows NAME-0, NAME-1, ... */
    char *building[PUBLISH_LAYERS_MAX]; /* until it is whole: nobody else's */
    unsigned count;                     /* of these two */
    char *info, *lease, *cursor;        /* cursor: of one that grows */
};

/* Of whom `owner` tells apart from all other guards. */
void publish_names_init(struct publish_names *names, const struct publish *publish,
                        const char *owner);
void publish_names_finish(struct publish_names *names);

#endif
