/* One worker's word stands for all: they ask the same servers the same. */
#include "keeper/parts/replica_watch.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "keeper/parts/outage.h"

#include <stdlib.h>
#include <string.h>

/* One that lags for a moment, or was found a moment ago, is no news. */
enum { PAUSE_MS = 1000, ROOM = 256, AWAY_MS = 2000, LOG_PACE_MS = 10 * 1000 };

static void use(struct replica_watch *watch, struct replica_word *words, size_t count)
{
    free(watch->words);
    watch->words = words;
    watch->count = count;
}

/* ---- since when one is not read from ---- */

static bool is_same(const struct replica_word *one, const struct replica_word *other)
{
    return strcmp(one->address, other->address) == 0 && strcmp(one->primary, other->primary) == 0;
}

/* As the words before tell of it, or from now on. */
static uint64_t since_of(const struct replica_watch *watch, const struct replica_word *word,
                         uint64_t now)
{
    for (size_t i = 0; i < watch->count; i++)
        if (is_same(&watch->words[i], word))
            return watch->words[i].since ? watch->words[i].since : now;
    return now;
}

static void set_since(const struct replica_watch *watch, struct replica_word *words, size_t count,
                      uint64_t now)
{
    for (size_t i = 0; i < count; i++)
        words[i].since = words[i].is_read ? 0 : since_of(watch, &words[i], now);
}

/* ---- the log's word ---- */

static void note_log(struct replica_watch *watch, uint64_t now)
{
    struct outage away = {0};
    for (size_t i = 0; i < watch->count; i++) {
        const struct replica_word *word = &watch->words[i];
        if (word->since && now - word->since >= AWAY_MS)
            outage_add(&away, word->address, NULL, word->why);
    }
    log_state_set(&watch->log, away.count > 0, "%s", outage_text(&away));
}

static void tell_log(struct replica_watch *watch, uint64_t now)
{
    watch->log.pace.period_ms = LOG_PACE_MS;
    if (!log_state_may_tell(&watch->log, now))
        return;
    if (watch->log.is_bad)
        log_warning("cache: replicas that are not read from: %s", watch->log.text);
    else
        log_info("cache: all replicas that are known are read from");
}

/* ---- asked ---- */

void replica_watch_check_time(struct replica_watch *watch, bool wanted, uint64_t now)
{
    const struct outlet *outlet = watch->outlet;
    if (!wanted) {
        use(watch, NULL, 0);
        watch->log = (struct log_state){0};
    }
    if (!wanted || watch->under_way || !outlet->count || now - watch->asked < PAUSE_MS)
        return;
    struct replicas_message *message = xcalloc(1, sizeof *message);
    message->message = (struct message){.kind = MESSAGE_REPLICAS, .sender = outlet->sender};
    message->room = ROOM;
    message->words = xcalloc(ROOM, sizeof *message->words);
    watch->asked = now;
    watch->under_way = true;
    mailbox_post(outlet->to[0], &message->message);
}

void replica_watch_take_back(struct replica_watch *watch, struct replicas_message *message)
{
    uint64_t now = clock_ms();
    watch->under_way = false;
    set_since(watch, message->words, message->count, now);
    use(watch, message->words, message->count);
    note_log(watch, now);
    tell_log(watch, now);
    free(message);
}

void replica_watch_finish(struct replica_watch *watch)
{
    use(watch, NULL, 0);
}
