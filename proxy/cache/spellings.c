/* Whoever asks may be an application with a habit, or an attacker who tries leading zeros: the
 * numbers look alike, and only an example tells them apart.
 */
#include "cache/spellings.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "base/memory.h"
#include "http/http_target.h"

#include <stdio.h>
#include <stdlib.h>

enum { PERIOD_MS = 60 * 1000 };

struct account {
    char *name; /* the keyspace's */
    counter *count;
    struct log_pace pace; /* of the log's lines */
    struct spelling latest;
};

struct spellings {
    size_t keyspaces;
    struct account accounts[];
};

struct spellings *spellings_create(const struct config *config, struct load_counters *counters)
{
    size_t count = config->keyspace_count;
    struct spellings *spellings =
        xcalloc(1, sizeof *spellings + count * sizeof *spellings->accounts);
    spellings->keyspaces = count;
    for (size_t i = 0; i < count; i++) {
        spellings->accounts[i].name = xstrdup(config->keyspaces[i].name);
        spellings->accounts[i].count = &counters[i].other_spellings;
        spellings->accounts[i].pace.period_ms = PERIOD_MS;
    }
    return spellings;
}

void spellings_destroy(struct spellings *spellings)
{
    for (size_t i = 0; spellings && i < spellings->keyspaces; i++)
        free(spellings->accounts[i].name);
    free(spellings);
}

/* Keys that the database was asked for hold no zero byte. */
static void copy(char *to, size_t size, struct span key)
{
    snprintf(to, size, "%.*s", key.length < size ? (int)key.length : (int)size, key.at);
}

/* Escaped as in the control port's paths, for a key may be any bytes. */
static void complain(struct account *account, struct span asked, struct span own)
{
    if (!log_pace_may(&account->pace, clock_ms(), NULL))
        return;
    char *asked_text = http_target_escape(asked), *own_text = http_target_escape(own);
    log_warning("keyspace %s: %.300s was asked for, another spelling of %.300s, which has a row: "
                "only the row's own spelling is its key, any other is absent",
                account->name, asked_text, own_text);
    free(asked_text);
    free(own_text);
}

void spellings_add(struct spellings *spellings, struct key asked, struct span own)
{
    if (!spellings)
        return;
    struct account *account = &spellings->accounts[asked.keyspace];
    counter_add(account->count, 1);
    copy(account->latest.asked, sizeof account->latest.asked, asked.text);
    copy(account->latest.own, sizeof account->latest.own, own);
    complain(account, asked.text, own);
}

const struct spelling *spellings_latest(const struct spellings *spellings, size_t keyspace)
{
    return &spellings->accounts[keyspace].latest;
}
