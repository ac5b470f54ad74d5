/*   each worker ─ counters ────────────────────────────▶ rejects a second ─▶ is it an attack?
 *        └─ ledgers: an empty one goes, a full one comes ─▶ who, and for which keys
 *
 * Counters are read where they are, without a message, so that an attack is noticed though a worker
 * has no time to answer. Ledgers are asked for again only when all have come back.
 */
#include "keeper/parts/accounting.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"

#include <stdlib.h>

enum { MARK_MS = 1000 };

/* ---- the log's word ---- */

static void log_begin(struct accounting *accounting)
{
    log_warning("an attack begins: %.0f lookups a second are rejected",
                traffic_rate_of_all(accounting->traffic).now);
    ledger_destroy(accounting->suspects);
    accounting->suspects = ledger_create();
}

static void forget_suspects(struct accounting *accounting)
{
    ledger_destroy(accounting->suspects);
    accounting->suspects = NULL;
}

/* By what workers have told since it began: of what they told before it knows nothing, and whoever
 * was rejected most then may have no part in it. */
static void log_suspect(struct accounting *accounting)
{
    struct ledger_suspect first;
    if (!ledger_suspect(accounting->suspects, BURDEN_rejects, &first))
        return;
    const struct party *party = &first.party;
    if (first.is_most)
        log_warning("the most of them (%.0f %%) are for %s, name \"%s\", user %s; "
                    "`nestguard ctl attack` says more",
                    100 * first.part, party->address, party->name, party->user);
    else
        log_warning("the most of them (%.0f %%) are for %s, by many names or users; "
                    "`nestguard ctl attack` says more",
                    100 * first.part, party->address);
    forget_suspects(accounting);
}

static void log_end(struct accounting *accounting)
{
    const struct attack *attack = traffic_attack(accounting->traffic);
    forget_suspects(accounting); /* whoever is rejected from now on is none */
    log_warning(
        "the attack is over after %.0f s: %llu lookups were rejected, %.0f a second at most",
        (double)(attack->until - attack->since) / 1000, (unsigned long long)attack->rejects,
        attack->peak);
}

/* ---- once a second ---- */

static void ask_workers(struct accounting *accounting)
{
    const struct outlet *outlet = accounting->outlet;
    for (unsigned i = 0; i < outlet->count; i++) {
        struct ledger_message *message = xcalloc(1, sizeof *message);
        message->message = (struct message){.kind = MESSAGE_LEDGER, .sender = outlet->sender};
        message->ledger = ledger_create();
        mailbox_post(outlet->to[i], &message->message);
        accounting->under_way++;
    }
}

static uint64_t rejects_of(const struct accounting *accounting, struct worker *const *workers,
                           size_t keyspace)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < accounting->outlet->count; i++)
        sum += counter_read(&workers[i]->serving.keyspaces[keyspace].rejected);
    return sum;
}

static void count_rejects(struct accounting *accounting, struct worker *const *workers)
{
    for (size_t keyspace = 0; keyspace < accounting->keyspaces; keyspace++)
        accounting->rejects[keyspace] = rejects_of(accounting, workers, keyspace);
}

uint64_t accounting_fresh_rejects(const struct accounting *accounting,
                                  struct worker *const *workers, uint64_t now, uint64_t *ms)
{
    uint64_t sum = 0;
    for (size_t keyspace = 0; keyspace < accounting->keyspaces; keyspace++)
        sum += rejects_of(accounting, workers, keyspace) - accounting->rejects[keyspace];
    *ms = now - accounting->marked;
    return sum;
}

/* A worker that has not answered the last time yet has more to do. */
void accounting_check_time(struct accounting *accounting, struct worker *const *workers,
                           unsigned threshold, uint64_t now)
{
    struct traffic *traffic = accounting->traffic;
    if (now - accounting->marked < MARK_MS)
        return;
    accounting->marked = now;
    count_rejects(accounting, workers);
    enum attack_news news = traffic_mark(traffic, accounting->rejects, threshold, now);
    if (news == ATTACK_BEGINS)
        log_begin(accounting);
    else if (news == ATTACK_IS_OVER)
        log_end(accounting);
    if (!accounting->under_way)
        ask_workers(accounting);
}

void accounting_take_back(struct accounting *accounting, struct ledger_message *message)
{
    traffic_take(accounting->traffic, message->ledger, clock_ms());
    if (accounting->suspects)
        ledger_merge(accounting->suspects, message->ledger);
    ledger_destroy(message->ledger);
    free(message);
    accounting->under_way--;
    if (accounting->suspects && !accounting->under_way)
        log_suspect(accounting);
}

/* ---- life ---- */

void accounting_init(struct accounting *accounting, const struct outlet *outlet, size_t keyspaces)
{
    *accounting = (struct accounting){.traffic = traffic_create(keyspaces, clock_ms()),
                                      .keyspaces = keyspaces,
                                      .outlet = outlet,
                                      .marked = clock_ms(),
                                      .rejects = xcalloc(keyspaces, sizeof(uint64_t))};
}

void accounting_finish(struct accounting *accounting)
{
    traffic_destroy(accounting->traffic);
    ledger_destroy(accounting->suspects);
    free(accounting->rejects);
}
