/* What a file that is read again changes in a guard that runs. */
#ifndef NESTGUARD_CONFIG_RELOAD_H
#define NESTGUARD_CONFIG_RELOAD_H

#include "config/config.h"

enum change_kind { CHANGE_SETTING, CHANGE_ADDED, CHANGE_REMOVED }; /* of a keyspace: the others */

struct setting_change {
    enum change_kind kind;
    char *keyspace; /* its name; NULL: it is one of the whole file */
    char *what;     /* "load_budget", "ttl of keyspace items", "keyspace items" */
    char *before,
        *after; /* setting_text() of it, of a keyspace its key; "": it was, or is, not there
                 */
    bool taken; /* else it needs a restart, or `why` not */
    char *why;  /* NULL: it is taken, or needs a restart */
};

/* First the settings of the whole file, then keyspaces. Zeroed it is empty. */
struct setting_changes {
    struct setting_change *at;
    size_t count;
    char *cache_stays; /* why connections to the cache stay as they are; NULL: they need not */
};

/* Frees the texts; it is empty again. */
void setting_changes_finish(struct setting_changes *changes);

/* Whether the two lead to the cache by other ways: another address, user, database or certificate.
 */
bool config_moves_cache(const struct config *running, const struct config *wanted);

/* Makes of a configuration that was just loaded the one that follows the running one, and tells the
 * difference: what cannot change while the guard runs stays as it is, and so does the number of
 * each keyspace. A keyspace that is not wanted any more, or has other rows or keys, is retired;
 * what is new gets the next numbers. -ENOSPC when there are no more numbers; -ENOTSUP when it has
 * rows, and the running one no database; -EINVAL when its keyspaces cannot be had with the `sync`
 * that stays: then `wanted` may only be destroyed. */
int config_follow(struct config *wanted, const struct config *running,
                  struct setting_changes *changes);

/* Whether `now` has another `database` than `before`, which may be NULL: there was none. */
bool config_moves_database(const struct config *before, const struct config *now);

/* Whether it has this one as well, with the same rows under the same keys, and the same values. */
bool config_has_keyspace(const struct config *config, const struct keyspace *keyspace);

/* Whether the two describe values of this keyspace alike, and their time in the cache. */
bool config_same_values(const struct keyspace *one, const struct keyspace *other);

/* Whether the two publish the same in the same place, or both nothing. */
bool config_same_publish(const struct publish *one, const struct publish *other);

#endif
