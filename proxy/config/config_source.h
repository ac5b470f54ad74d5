/* Where in the file things stand, so that a mistake found late still names its line. Lives while a
 * configuration is being loaded. */
#ifndef NESTGUARD_CONFIG_SOURCE_H
#define NESTGUARD_CONFIG_SOURCE_H

#include "config/config.h"
#include "config/settings.h"

struct mention {
    int line;  /* 0: not in the file */
    bool good; /* its value could be read */
};

struct config_source {
    const char *file;                          /* its path, the beginning of each place */
    struct problems *problems;                 /* where mistakes go */
    struct mention settings[SETTINGS_MAX];     /* by the row's place in config_settings */
    struct mention (*keyspaces)[SETTINGS_MAX]; /* one a keyspace, as in keyspace_settings */
};

/* Adds an error whose place is file:line. */
void config_report(const struct config_source *source, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same of a warning: the file is taken all the same. */
void config_warn(const struct config_source *source, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What settings mean together: reports every contradiction between those that could be read. */
void config_check(struct config *config, const struct config_source *source);

/* Whether all that it takes to ask the cache could be read, and leads to a cache. */
bool config_cache_is_known(const struct config *config, const struct config_source *source);

/* Leaves of a configuration with mistakes what was understood: config_load_draft(). */
void config_make_draft(struct config *config, const struct config_source *source);

/* Of one keyspace, whose `publish` could be read and stands in this line; a part of the above. */
void config_check_publish(const struct config *config, const struct config_source *source,
                          size_t keyspace, int line);

/* Warns of what stands in the file and has no effect, or more than was meant. */
void config_check_effect(const struct config *config, const struct config_source *source);

/* Whether a cluster has all that is called after the key in the key's own slot. */
bool config_has_hash_tag(const char *key);

#endif
