/* A broken table has every load refused, thousands a second: of these the log gets a few, and the
 * account keeps one for each keyspace.
 */
#include "cache/refusals.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

struct refusals {
    const struct config *config;
    struct log_pace pace;        /* of the log's lines, of all keyspaces */
    struct refused_load *latest; /* of each keyspace of `config` */
};

/* For keyspaces that are new; what the others have stays, and may move. */
static void open_accounts(struct refusals *refusals, size_t from)
{
    size_t count = refusals->config->keyspace_count;
    refusals->latest = xrealloc(refusals->latest, count * sizeof *refusals->latest);
    for (size_t i = from; i < count; i++)
        refusals->latest[i] = (struct refused_load){0};
}

struct refusals *refusals_create(const struct config *config)
{
    struct refusals *refusals = xcalloc(1, sizeof *refusals);
    refusals->config = config;
    open_accounts(refusals, 0);
    return refusals;
}

void refusals_use_config(struct refusals *refusals, const struct config *config)
{
    size_t from = refusals->config->keyspace_count;
    refusals->config = config;
    open_accounts(refusals, from);
}

void refusals_destroy(struct refusals *refusals)
{
    if (refusals)
        free(refusals->latest);
    free(refusals);
}

static void complain(struct refusals *refusals, size_t keyspace, const char *error)
{
    if (!log_pace_may(&refusals->pace, clock_ms(), NULL))
        return;
    log_error("keyspace %s: the database refused a load: %s (`nestguard check` says what it lacks)",
              refusals->config->keyspaces[keyspace].name, error);
}

void refusals_add(struct refusals *refusals, size_t keyspace, const char *error)
{
    struct refused_load *latest = &refusals->latest[keyspace];
    latest->count++;
    latest->time = clock_ms();
    snprintf(latest->text, sizeof latest->text, "%s", error);
    complain(refusals, keyspace, error);
}

void refusals_end(struct refusals *refusals, size_t keyspace)
{
    refusals->latest[keyspace].count = 0;
}

const struct refused_load *refusals_latest(const struct refusals *refusals, size_t keyspace)
{
    return &refusals->latest[keyspace];
}
