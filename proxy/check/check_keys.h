/* Keys to try what the cache's user may do with: such as nobody has, and those that there are. */
#ifndef NESTGUARD_CHECK_KEYS_H
#define NESTGUARD_CHECK_KEYS_H

#include "config/config.h"

enum { CHECK_KEYS_MAX = 50 };

/* New strings. */
struct check_keys {
    const struct keyspace *keyspace;
    bool are_published;
    char *at[CHECK_KEYS_MAX];
    size_t count;
};

enum invented_key {
    INVENTED_DIGITS, /* a value of most columns' types, and in most patterns */
    INVENTED_LETTERS,
    INVENTED_PUBLISHED, /* begins as those of what the keyspace publishes */
    INVENTED_KINDS
};

/* A new string, so long that no row has it. */
char *check_keys_invent(const struct keyspace *keyspace, enum invented_key kind);

/* Of some rows that are there now: none where the database does not tell, which is told by those
 * who look at that. */
void check_keys_of_rows(struct check_keys *keys, const struct config *config,
                        const struct keyspace *keyspace);

/* Of what the keyspace publishes. */
void check_keys_published(struct check_keys *keys, const struct keyspace *keyspace);

void check_keys_finish(struct check_keys *keys);

#endif
