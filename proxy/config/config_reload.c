/* What a running guard cannot take over from a changed file. */
#include "config/config.h"

#include "base/memory.h"
#include "config/file_limits.h"
#include "config/setting_value.h"
#include "net/tls.h"

#include <stdlib.h>
#include <string.h>

static const char *const until = "cannot change while the guard runs; restart it for the new value";

/* Each difference is named, so that whoever edited the file knows what took no effect. */
static size_t compare_settings(const struct config *running, const struct config *wanted,
                               struct problems *problems)
{
    size_t found = 0;
    for (const struct setting *row = config_settings; row->name; row++) {
        if (row->fixed && !setting_equal(row, running, wanted)) {
            problems_add(problems, PROBLEM_WARNING, wanted->file, NULL, "%s %s", row->name, until);
            found++;
        }
    }
    return found;
}

/* Names and order: counters, filters and the pool's statements are found by a keyspace's number. */
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
                               const char *file, struct problems *problems)
{
    size_t found = 0;
    for (const struct setting *row = keyspace_settings; row->name; row++) {
        if (row->fixed && !setting_equal(row, running, wanted)) {
            problems_add(problems, PROBLEM_WARNING, file, NULL, "%s of keyspace %s %s", row->name,
                         running->name, until);
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
        problems_add(problems, PROBLEM_WARNING, wanted->file, NULL,
                     "keyspaces cannot be added, removed, renamed or put in another order while "
                     "the guard runs; restart it for the new list; no setting of any keyspace was "
                     "taken");
        return found + 1;
    }
    for (size_t i = 0; i < running->keyspace_count; i++)
        found +=
            compare_keyspace(&running->keyspaces[i], &wanted->keyspaces[i], wanted->file, problems);
    return found;
}

/* Replaces one member by a copy of what runs. */
static void keep(const struct setting *row, void *wanted, const void *running)
{
    setting_finish(row, wanted);
    setting_copy(row, wanted, running);
}

/* Its SQL is made from settings that cannot change, and so is made anew from the kept ones. */
static void keep_keyspace(struct keyspace *wanted, const struct keyspace *running)
{
    for (const struct setting *row = keyspace_settings; row->name; row++)
        if (row->fixed)
            keep(row, wanted, running);
    if (!wanted->value && !wanted->value_is_json)
        wanted->on_miss = MISS_PASS; /* there is nothing to load, and empty values must not be */
}

/* The list of the running configuration, with all that its keyspaces are. */
static void keep_keyspaces(struct config *wanted, const struct config *running)
{
    for (size_t i = 0; i < wanted->keyspace_count; i++)
        for (const struct setting *row = keyspace_settings; row->name; row++)
            setting_finish(row, &wanted->keyspaces[i]);
    free(wanted->keyspaces);
    wanted->keyspace_count = running->keyspace_count;
    wanted->keyspaces = xcalloc(running->keyspace_count, sizeof *wanted->keyspaces);
    for (size_t i = 0; i < running->keyspace_count; i++) {
        for (const struct setting *row = keyspace_settings; row->name; row++)
            setting_copy(row, &wanted->keyspaces[i], &running->keyspaces[i]);
        wanted->keyspaces[i].line = running->keyspaces[i].line;
    }
}

static void keep_context(struct ssl_ctx_st **wanted, struct ssl_ctx_st *running)
{
    tls_context_release(*wanted);
    *wanted = running;
    if (running)
        tls_context_hold(running);
}

void config_keep_fixed(struct config *wanted, const struct config *running)
{
    for (const struct setting *row = config_settings; row->name; row++)
        if (row->fixed)
            keep(row, wanted, running);
    keep_context(&wanted->cache_tls, running->cache_tls); /* made of settings that cannot change */
    if (!wanted->clients_tls) /* the addresses that want it are still open */
        keep_context(&wanted->clients_tls, running->clients_tls);
    if (!same_keyspaces(running, wanted))
        keep_keyspaces(wanted, running);
    for (size_t i = 0; i < running->keyspace_count; i++)
        keep_keyspace(&wanted->keyspaces[i], &running->keyspaces[i]);
    wanted->limits = file_limits_of(wanted, running->limits.files);
}
