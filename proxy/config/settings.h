/* Every setting there is: one const table for the file's top level, one for a keyspace, one for
 * what a keyspace publishes. What the loader accepts, what --help prints, what SIGHUP may change
 * and what the sample file must mention all derive from these rows.
 */
#ifndef NESTGUARD_SETTINGS_H
#define NESTGUARD_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum setting_type {
    SETTING_COUNT,     /* unsigned */
    SETTING_DURATION,  /* uint64_t, milliseconds */
    SETTING_SIZE,      /* size_t, bytes */
    SETTING_SHARE,     /* double */
    SETTING_FLAG,      /* bool */
    SETTING_CHOICE,    /* an enum; its values are the places in `choices` */
    SETTING_TEXT,      /* char *; `least` and `most` bound its length */
    SETTING_NAME,      /* char *, letters that need no quoting anywhere */
    SETTING_SECRET,    /* char * that no message shows */
    SETTING_DATABASE,  /* char *, libpq's connection string; may hold a password */
    SETTING_CACHE,     /* struct cache_url; may hold a password */
    SETTING_CONTROL,   /* struct config: has_control, control */
    SETTING_LISTEN,    /* struct config: listen, listens; takes a list */
    SETTING_KEYSPACES, /* struct config: keyspaces, keyspace_count; read by the loader itself */
    SETTING_KEY,       /* struct key_template */
    SETTING_TABLE,     /* struct keyspace: table_text, table_schema, table_name */
    SETTING_VALUE, /* struct keyspace: value, value_is_json, value_expression, columns; takes a list
                    */
    SETTING_DEPENDS, /* struct dependencies; takes a list */
    SETTING_PUBLISH, /* struct publish; a mapping of publish_settings, read by the loader itself */
};

/* One row. What it leaves out is no bound, no default, not required, and may change at any time. */
struct setting {
    const char *name; /* as the file has it: a contract */
    enum setting_type type;
    size_t offset; /* of the member in struct config, keyspace or publish */
    bool required;
    bool fixed;    /* cannot change while the guard runs; of no keyspace's */
    bool moves;    /* another value has connections to the cache opened anew; of no keyspace's */
    bool remakes;  /* of a keyspace: with another value it is another keyspace */
    bool revalues; /* of a keyspace: what was cached before is as another value would not be */
    const char *standard;  /* the default, as one would write it; NULL: none */
    const char *otherwise; /* what happens without it, where no default says so */
    const char *least;     /* bounds, as one would write them; both or none */
    const char *most;
    const char *const *choices; /* of SETTING_CHOICE, ends with NULL */
    const char *help;           /* for --help, the manual, and whoever left it out */
};

enum { SETTINGS_MAX = 72 }; /* rows of one table, at most */

/* Each ends with a row without a name. */
extern const struct setting config_settings[];
extern const struct setting keyspace_settings[];
extern const struct setting publish_settings[];

/* The row's place in its table, or -1. */
int setting_index(const struct setting *table, const char *name);

/* The row whose name is most like this one, or NULL when none is near enough to be meant. */
const struct setting *setting_similar(const struct setting *table, const char *name);

/* How its type is called for a person: "duration". */
const char *setting_type_name(enum setting_type type);

/* "duration, 10ms to 1h; default 1s"; "; [restart]" where a change needs one */
void setting_print_type(const struct setting *setting, FILE *out);

/* Whether its value must not appear in messages. */
bool setting_is_secret(const struct setting *setting);

#endif
