/* A lock is good enough: it is taken for a moment, and by nobody who serves a lookup. */
#include "cache/vouched.h"

#include "base/log/log.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    STRANGERS = 64, /* of more the oldest are forgotten, and get another minute */
    DOUBT_MS = 60000,
    LEFT_MS = 2000 /* whoever is connected to a stranger asks more often than that */
};

/* For a server, or against it: who is to sweep it. */
struct voucher {
    const void *by;
    bool doubts;
    uint64_t first, last; /* of its doubts, since it vouched: the version of then */
    char run_id[RUN_ID_SIZE];
};

/* One that was asked for and that nobody vouches for. */
struct stranger {
    char run_id[RUN_ID_SIZE]; /* "": this place is free */
    uint64_t since, asked;    /* clock_ms(): at first, and last */
    bool is_told;             /* the log knows that it is believed */
};

struct vouched {
    uv_mutex_t lock;
    _Atomic uint64_t version; /* changed under the lock */
    bool is_settled;
    struct voucher *vouchers; /* one for each server; there are few */
    size_t count;
    struct stranger strangers[STRANGERS];
    unsigned next; /* of the strangers' places */
};

struct vouched *vouched_create(void)
{
    struct vouched *vouched = xcalloc(1, sizeof *vouched);
    uv_mutex_init(&vouched->lock);
    return vouched;
}

void vouched_destroy(struct vouched *vouched)
{
    if (!vouched)
        return;
    uv_mutex_destroy(&vouched->lock);
    free(vouched->vouchers);
    free(vouched);
}

static bool is_same(const char *one, const char *other)
{
    return strncmp(one, other, RUN_ID_SIZE - 1) == 0;
}

static void copy_id(char to[RUN_ID_SIZE], const char *run_id)
{
    strncpy(to, run_id, RUN_ID_SIZE - 1);
    to[RUN_ID_SIZE - 1] = '\0';
}

/* ---- vouchers ---- */

/* Returns what it was; a zeroed one: it said nothing. */
static struct voucher drop(struct vouched *vouched, const void *by)
{
    struct voucher before = {0};
    for (size_t i = 0; i < vouched->count && !before.by; i++)
        if (vouched->vouchers[i].by == by) {
            before = vouched->vouchers[i];
            vouched->vouchers[i] = vouched->vouchers[--vouched->count];
        }
    return before;
}

static struct voucher *add(struct vouched *vouched, const void *by, const char *run_id)
{
    vouched->vouchers =
        xrealloc(vouched->vouchers, (vouched->count + 1) * sizeof *vouched->vouchers);
    struct voucher *voucher = &vouched->vouchers[vouched->count++];
    *voucher = (struct voucher){.by = by};
    copy_id(voucher->run_id, run_id);
    return voucher;
}

static struct stranger *find_stranger(struct vouched *vouched, const char *run_id)
{
    for (unsigned i = 0; i < STRANGERS; i++)
        if (is_same(vouched->strangers[i].run_id, run_id))
            return &vouched->strangers[i];
    return NULL;
}

/* A doubt outweighs everybody's word: who comes to the same server by another connection, as when
 * its password changes, has no reason to doubt it, and knows nothing of what it forgot. */
static bool is_vouched_for(const struct vouched *vouched, const char *run_id)
{
    bool is = false;
    for (size_t i = 0; i < vouched->count; i++) {
        const struct voucher *voucher = &vouched->vouchers[i];
        if (!is_same(voucher->run_id, run_id))
            continue;
        if (voucher->doubts)
            return false;
        is = true;
    }
    return is;
}

/* One that is vouched for is no stranger any more: should it be doubted later, that is a doubt of
 * its own. */
static void forget_stranger(struct vouched *vouched, const char *run_id)
{
    struct stranger *stranger = find_stranger(vouched, run_id);
    if (stranger && is_vouched_for(vouched, run_id))
        *stranger = (struct stranger){0};
}

/* Whoever began to doubt it later, and vouches now, has swept all of it meanwhile. So nothing is
 * left of what others doubted it for before that; as when its password has changed, and who doubted
 * it cannot come to it any more. */
static void end_doubts_before(struct vouched *vouched, const struct voucher *swept)
{
    for (size_t i = 0; i < vouched->count; i++) {
        struct voucher *voucher = &vouched->vouchers[i];
        if (is_same(voucher->run_id, swept->run_id) && voucher->last < swept->first)
            voucher->doubts = false;
    }
}

static void take_word(struct vouched *vouched, const struct voucher *before,
                      struct voucher *voucher, bool doubts)
{
    bool doubted = before->doubts && is_same(before->run_id, voucher->run_id);
    voucher->doubts = doubts;
    voucher->last = vouched->version;
    voucher->first = doubted ? before->first : vouched->version;
    if (doubted && !doubts)
        end_doubts_before(vouched, before);
}

static void say(struct vouched *vouched, const void *by, const char *run_id, bool doubts)
{
    if (!vouched)
        return;
    uv_mutex_lock(&vouched->lock);
    struct voucher before = drop(vouched, by);
    if (run_id && run_id[0]) {
        take_word(vouched, &before, add(vouched, by, run_id), doubts);
        forget_stranger(vouched, run_id);
    }
    vouched->version++;
    uv_mutex_unlock(&vouched->lock);
}

void vouched_set(struct vouched *vouched, const void *by, const char *run_id)
{
    say(vouched, by, run_id, false);
}

void vouched_doubt(struct vouched *vouched, const void *by, const char *run_id)
{
    say(vouched, by, run_id, true);
}

void vouched_settle(struct vouched *vouched)
{
    uv_mutex_lock(&vouched->lock);
    vouched->is_settled = true;
    vouched->version++;
    uv_mutex_unlock(&vouched->lock);
}

static bool is_doubted(const struct vouched *vouched, const char *run_id)
{
    for (size_t i = 0; i < vouched->count; i++)
        if (vouched->vouchers[i].doubts && is_same(vouched->vouchers[i].run_id, run_id))
            return true;
    return false;
}

bool vouched_is_doubted(struct vouched *vouched, const char *run_id)
{
    if (!vouched || !run_id[0])
        return false;
    uv_mutex_lock(&vouched->lock);
    bool is = is_doubted(vouched, run_id);
    uv_mutex_unlock(&vouched->lock);
    return is;
}

/* ---- who asks ---- */

uint64_t vouched_version(const struct vouched *vouched)
{
    return vouched ? vouched->version : 0;
}

static struct stranger *add_stranger(struct vouched *vouched, const char *run_id)
{
    struct stranger *stranger = &vouched->strangers[vouched->next++ % STRANGERS];
    copy_id(stranger->run_id, run_id);
    stranger->asked = 0;
    return stranger;
}

/* One that all have left may have missed deletions since: should they come back, that is a doubt of
 * its own. Each thread has read the clock before it had the lock. */
static struct stranger *meet_stranger(struct vouched *vouched, const char *run_id, uint64_t now)
{
    struct stranger *stranger = find_stranger(vouched, run_id);
    if (!stranger)
        stranger = add_stranger(vouched, run_id);
    if (!stranger->asked || now > stranger->asked + LEFT_MS) {
        stranger->since = now;
        stranger->is_told = false;
    }
    if (now > stranger->asked)
        stranger->asked = now;
    return stranger;
}

static bool is_doubted_too_long(struct vouched *vouched, const char *run_id, uint64_t now)
{
    struct stranger *stranger = meet_stranger(vouched, run_id, now);
    bool is_late = now >= stranger->since + DOUBT_MS;
    if (is_late && !stranger->is_told)
        log_warning("cache: lookups are asked of the server %.8s... again, though it was not seen "
                    "to be swept: it may hold stale values",
                    run_id);
    stranger->is_told |= is_late;
    vouched->version += is_late; /* so that it is asked for as long as anybody is connected to it */
    return is_late;
}

bool vouched_believes(struct vouched *vouched, const char *run_id, uint64_t now)
{
    if (!vouched || !run_id[0])
        return true;
    uv_mutex_lock(&vouched->lock);
    bool is_known = is_doubted(vouched, run_id) || vouched->is_settled;
    bool believes =
        !is_known || is_vouched_for(vouched, run_id) || is_doubted_too_long(vouched, run_id, now);
    uv_mutex_unlock(&vouched->lock);
    return believes;
}
