/* What a running guard cannot take over from a changed file. */
#include "config.h"

#include "setting_value.h"

#include <string.h>

static const char *const until = "cannot change while the guard runs; restart it for the new value";

static size_t compare_settings(const struct config *running, const struct config *wanted,
                               struct problems *problems)
{
    size_t found = 0;
    for (const struct setting *row = config_settings; row->name; row++) {
        if (row->fixed && !setting_equal(row, running, wanted)) {
            problems_add(problems, PROBLEM_WARNING, "reload", NULL, "%s %s", row->name, until);
            found++;
        }
    }
    return found;
}

static bool same_keyspaces(const struct config *a, const struct config *b)
{
    if (a->keyspace_count != b->keyspace_count)
        return false;
    for (size_t i = 0; i < a->keyspace_count; i++)
        if (strcmp(a->keyspaces[i].name, b->keyspaces[i].name) != 0)
            return false;
    return true;
}

static size_t compare_keyspace(const struct keyspace *running, const struct keyspace *wanted,
                               struct problems *problems)
{
    size_t found = 0;
    for (const struct setting *row = keyspace_settings; row->name; row++) {
        if (row->fixed && !setting_equal(row, running, wanted)) {
            problems_add(problems, PROBLEM_WARNING, "reload", NULL, "%s of keyspace %s %s",
                         row->name, running->name, until);
            found++;
        }
    }
    return found;
}

size_t config_fixed_differences(const struct config *running, const struct config *wanted,
                                struct problems *problems)
{
    size_t found = compare_settings(running, wanted, problems);
    if (!same_keyspaces(running, wanted)) {
        problems_add(
            problems, PROBLEM_WARNING, "reload", NULL,
            "keyspaces cannot be added, removed, renamed or put in another order while the "
            "guard runs; restart it for the new list");
        return found + 1;
    }
    for (size_t i = 0; i < running->keyspace_count; i++)
        found += compare_keyspace(&running->keyspaces[i], &wanted->keyspaces[i], problems);
    return found;
}
