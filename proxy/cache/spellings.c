/* Whoever asks may be an application with a habit, or an attacker who tries leading zeros: the
 * numbers look alike, and only an example tells them apart.
 */
#include "cache/spellings.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "base/memory.h"
#include "base/text/shown.h"

#include <stdio.h>
#include <stdlib.h>

enum { PERIOD_MS = 60 * 1000 };

struct account {
    struct log_pace pace; /* of the log's lines */
    struct spelling latest;
};

struct spellings {
    const struct config *config;
    struct load_counters *counters;
    struct account *accounts; /* of each keyspace of `config` */
};

/* For keyspaces that are new; the accounts of the others stay, and may move. */
static void open_accounts(struct spellings *spellings, size_t from)
{
    size_t count = spellings->config->keyspace_count;
    spellings->accounts = xrealloc(spellings->accounts, count * sizeof *spellings->accounts);
    for (size_t i = from; i < count; i++)
        spellings->accounts[i] = (struct account){.pace.period_ms = PERIOD_MS};
}

struct spellings *spellings_create(const struct config *config, struct load_counters *counters)
{
    struct spellings *spellings = xcalloc(1, sizeof *spellings);
    spellings->config = config;
    spellings->counters = counters;
    open_accounts(spellings, 0);
    return spellings;
}

void spellings_use_config(struct spellings *spellings, const struct config *config)
{
    size_t from = spellings->config->keyspace_count;
    spellings->config = config;
    open_accounts(spellings, from);
}

void spellings_destroy(struct spellings *spellings)
{
    if (spellings)
        free(spellings->accounts);
    free(spellings);
}

/* Keys that the database was asked for hold no zero byte. */
static void copy(char *to, size_t size, struct span key)
{
    snprintf(to, size, "%.*s", key.length < size ? (int)key.length : (int)size, key.at);
}

static void complain(struct account *account, const char *keyspace, struct span asked,
                     struct span own)
{
    if (!log_pace_may(&account->pace, clock_ms(), NULL))
        return;
    char *asked_text = text_shown(asked), *own_text = text_shown(own);
    log_warning("keyspace %s: %.300s was asked for, another spelling of %.300s, which has a row: "
                "only the row's own spelling is its key, any other is absent",
                keyspace, asked_text, own_text);
    free(asked_text);
    free(own_text);
}

void spellings_add(struct spellings *spellings, struct key asked, struct span own)
{
    if (!spellings)
        return;
    struct account *account = &spellings->accounts[asked.keyspace];
    counter_add(&spellings->counters[asked.keyspace].other_spellings, 1);
    copy(account->latest.asked, sizeof account->latest.asked, asked.text);
    copy(account->latest.own, sizeof account->latest.own, own);
    complain(account, spellings->config->keyspaces[asked.keyspace].name, asked.text, own);
}

const struct spelling *spellings_latest(const struct spellings *spellings, size_t keyspace)
{
    return &spellings->accounts[keyspace].latest;
}
