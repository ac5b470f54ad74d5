/* The values that rows of the settings' tables describe: read from text, compared, freed. `base` is
 * the struct config, keyspace or publish that holds the member. */
#ifndef NESTGUARD_SETTING_VALUE_H
#define NESTGUARD_SETTING_VALUE_H

#include "config/settings.h"

struct setting_error {
    char text[400]; /* what is wrong and what is allowed; never the value itself */
};

/* Reads a value and checks it against the row's bounds. 0, or -EINVAL and *error. For
 * SETTING_LISTEN it adds one address; every other member must be zero before. */
int setting_read(const struct setting *setting, void *base, const char *text,
                 struct setting_error *error);

/* The same for one item of a list: an address of SETTING_LISTEN, a column of SETTING_VALUE. */
int setting_read_item(const struct setting *setting, void *base, const char *text,
                      struct setting_error *error);

/* Whether the member means the same in both `a` and `b`, each of them such a base: what is written
 * differently may be equal. SETTING_KEYSPACES always is: its rows are compared one by one. */
bool setting_equal(const struct setting *setting, const void *a, const void *b);

/* Whether two texts for libpq, or NULL, have the same for this keyword of its. */
bool setting_same_in_conninfo(const char *a, const char *b, const char *keyword);

/* A new string: the value as one would write it, or what holds without one. A secret, and what is
 * secret in a URL, is only said to be there: "(hidden)". */
char *setting_text(const struct setting *setting, const void *base);

/* Whether there is a value: given, or by default. */
bool setting_is_there(const struct setting *setting, const void *base);

/* A new string, as setting_text() of a value that is there, with `hidden` in the place of what is
 * secret. */
char *setting_text_hiding(const struct setting *setting, const void *base, const char *hidden);

/* Copies the member; what `to` held before must be finished. SETTING_KEYSPACES is left to the
 * caller. */
void setting_copy(const struct setting *setting, void *to, const void *from);

/* Frees what the member holds; a second time does nothing. SETTING_KEYSPACES is left to the caller.
 */
void setting_finish(const struct setting *setting, void *base);

#endif
