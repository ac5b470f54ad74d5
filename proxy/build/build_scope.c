#include "build/build_scope.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The copy shares all texts with the whole configuration: only `retired` differs in it. */
void build_scope_init(struct build_scope *scope, const struct config *config, bool wanted,
                      bool *guarded)
{
    size_t size = config->keyspace_count * sizeof *config->keyspaces;
    *scope =
        (struct build_scope){.whole = config, .own = *config, .wanted = wanted, .guarded = guarded};
    scope->config = &scope->own;
    scope->own.keyspaces = memcpy(xmalloc(size), config->keyspaces, size);
    scope->faults = xcalloc(config->keyspace_count, sizeof *scope->faults);
}

void build_scope_finish(struct build_scope *scope)
{
    for (size_t i = 0; scope->faults && i < scope->own.keyspace_count; i++)
        free(scope->faults[i]);
    free(scope->faults);
    free(scope->own.keyspaces);
    free(scope->guarded);
}

/* Of these classes the server says so of itself, the connection or the moment (PostgreSQL
 * documentation, appendix A). */
static bool is_of_a_table(const char *sqlstate)
{
    static const char *const others[] = {"08", "25", "40", "53", "55", "57"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(sqlstate, others[i], 2) == 0)
            return false;
    return true;
}

bool build_scope_is_ones_fault(int status, const char *sqlstate)
{
    if (status == -EPROTO)
        return is_of_a_table(sqlstate);
    return status == -ENOSPC || status == -ENOMEM || status == -E2BIG;
}

/* The table of the header: `gains` is its first column, `loses` its middle row. */
static bool is_worth_it_without(const struct build_scope *scope, size_t keyspace)
{
    const struct config *config = scope->config;
    bool has_others = false, gains = false;
    for (size_t i = 0; i < config->keyspace_count; i++) {
        bool is_left = i != keyspace && keyspace_has_rows(&config->keyspaces[i]);
        has_others |= is_left;
        gains |= is_left && !scope->guarded[i];
    }
    bool loses = config->sync == SYNC_REPLICATION && scope->guarded[keyspace];
    return gains || (has_others && scope->wanted && !loses);
}

/* What guards on has no fault that anybody would notice. */
bool build_scope_leave_out(struct build_scope *scope, const struct keyspace *keyspace,
                           const char *why)
{
    size_t number = (size_t)(keyspace - scope->own.keyspaces);
    if (scope->own.keyspaces[number].retired)
        return false;
    bool worth_it = is_worth_it_without(scope, number);
    if (worth_it || !scope->guarded[number]) {
        free(scope->faults[number]);
        scope->faults[number] = xstrdup(why);
    }
    scope->own.keyspaces[number].retired |= worth_it;
    return worth_it;
}

char **build_scope_take_faults(struct build_scope *scope)
{
    char **faults = scope->faults;
    scope->faults = NULL;
    return faults;
}
