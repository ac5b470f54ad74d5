/* A transaction's changes are gone through in their order, in slices between which the loop serves
 * others:
 *
 *   committed, some are due ─▶ `adding`: those keys are put in ─▶ rewound ─┐
 *   committed, none is ────────────────────────────────────────────────────┴▶ carry_out() each
 *   rolled back ────────────────────────────────────────────────────────────▶ take_back() each
 *
 * All insertions come before anything is told or removed, so that whoever hears of a change finds
 * its key in the filter. reached() comes last: only then may the commit be confirmed.
 */
#include "follow/follower_internal.h"

enum {
    SLICE_NS = 2000000, /* of the loop's time for the end of a transaction, at a stretch */
    CLOCK_EVERY = 64    /* changes from one look at the clock to the next */
};

static const enum cause causes[] = {
    [CHANGE_INSERTED] = CAUSE_INSERTED, [CHANGE_DUE] = CAUSE_INSERTED,
    [CHANGE_UPDATED] = CAUSE_UPDATED,   [CHANGE_DELETED] = CAUSE_DELETED,
    [CHANGE_LEFT] = CAUSE_UPDATED, /* there may be a row, with any value */
    [CHANGE_UNTOLD] = CAUSE_UNTOLD,     [CHANGE_TRUNCATED] = CAUSE_TRUNCATED,
    [CHANGE_DEPENDED] = CAUSE_DEPENDED};

static void tell(const struct follower *follower, const struct change *change)
{
    bool has_key = change->kind < CHANGE_UNTOLD;
    struct key_change told = {.cause = causes[change->kind],
                              .key = {.keyspace = change->keyspace},
                              .xid = transaction_xid(follower->ending.transaction),
                              .generation = follower->generation};
    if (has_key)
        told.key = key_make(change->keyspace, change->key);
    follower->changes.tell(follower->changes.arg, &told);
}

/* Every insertion of the transaction is in the filter already: so a key that it deletes and inserts
 * again has an entry more than rows until the deletion is carried out, and is never absent. What
 * another transaction has in the filter by then only adds to that. */
static int carry_out(struct follower *follower, const struct change *change)
{
    int status = change->kind == CHANGE_DELETED ? follower_remove(follower, change) : 0;
    if (change->kind == CHANGE_TRUNCATED || change->kind == CHANGE_LEFT)
        departing_add_whole(&follower->generation->departing, change->keyspace);
    tell(follower, change); /* and purge: see guard/departing.h */
    if (change->kind == CHANGE_LEFT)
        follower->left[change->keyspace] = true;
    return status;
}

/* Their filters hold keys that may have no row any more. */
static void tell_left(struct follower *follower)
{
    for (size_t i = 0; i < follower->config->keyspace_count; i++) {
        struct key_change told = {.cause = CAUSE_LEFT,
                                  .key = {.keyspace = (int)i},
                                  .xid = transaction_xid(follower->ending.transaction),
                                  .generation = follower->generation};
        if (follower->left[i])
            follower->changes.tell(follower->changes.arg, &told);
        follower->left[i] = false;
    }
}

/* Of what is rolled back nothing was done but the insertions. No row goes with them: that needs
 * nobody's word. */
static int take_back(struct follower *follower, const struct change *change)
{
    return change->kind == CHANGE_INSERTED
               ? follower_take_out(follower, change->keyspace, follower_hash(follower, change->key))
               : 0;
}

/* The server takes what it told a committed transaction for told to all, as far as it did not tell
 * anything else since. */
static void share_descriptions(struct follower *follower, struct transaction *of)
{
    struct row_shape *known = transaction_shapes(follower->whole);
    const struct row_shape *told = transaction_shapes(of);
    for (size_t i = 0; i < follower->followed_count; i++)
        if (told[i].described > known[i].described)
            known[i] = told[i];
}

static void forget_streamed(struct follower *follower, struct transaction *transaction)
{
    size_t i = 0;
    while (follower->streamed[i] != transaction)
        i++;
    follower->streamed[i] = follower->streamed[--follower->streamed_count];
    transaction_destroy(transaction);
}

/* Everything the transaction did is done. */
static void finish_ending(struct follower *follower)
{
    tell_left(follower);
    struct ending ending = follower->ending;
    follower->ending = (struct ending){0};
    if (ending.transaction != follower->whole) {
        if (ending.committed)
            share_descriptions(follower, ending.transaction);
        forget_streamed(follower, ending.transaction);
    }
    if (!ending.committed)
        return;
    follower->counts.transactions++;
    follower->counts.last_commit_lsn = ending.lsn;
    follower->counts.last_commit_us = ending.time_us;
    follower->events.reached(follower->arg, ending.end_lsn);
    follower_ask_for_word(follower);
}

static int unreadable(struct follower *follower, int status)
{
    return follower_fault(follower,
                          "a large transaction cannot be read back from the guard's $TMPDIR or "
                          "/tmp, from a temporary file: %s",
                          strerror(-status));
}

static int end_change(struct follower *follower, const struct change *change, bool stays)
{
    if (!follower->ending.adding)
        return stays ? carry_out(follower, change) : take_back(follower, change);
    if (!stays || change->kind != CHANGE_DUE)
        return 0;
    return follower_put_in(follower, change->keyspace, change->key);
}

static int rewind_ending(struct follower *follower)
{
    int status = transaction_rewind(follower->ending.transaction);
    return status < 0 ? unreadable(follower, status) : status;
}

/* 1; 0 when that was the last. */
static int end_next_change(struct follower *follower)
{
    struct change change;
    bool stays;
    int status = transaction_next(follower->ending.transaction, &change, &stays);
    if (status < 0)
        return unreadable(follower, status);
    if (status > 0) {
        status = end_change(follower, &change, stays);
        return status ? status : 1;
    }
    if (!follower->ending.adding)
        return 0;
    follower->ending.adding = false;
    status = rewind_ending(follower);
    return status ? status : 1;
}

/* One slice: 0 when that was the last of it, 1 when some is left. The keeper's loop has loads to
 * serve, too: what is left comes in its next turns. */
static int work(struct follower *follower, int (*next)(struct follower *follower))
{
    uint64_t until = 0;
    int status = 1;
    for (unsigned i = 1; status > 0 && !follower->closed; i++) {
        status = next(follower);
        if (i % CLOCK_EVERY == 0) {
            uint64_t now = uv_hrtime();
            if (!until)
                until = now + SLICE_NS;
            if (now >= until)
                break;
        }
    }
    return status;
}

static int work_on_ending(struct follower *follower)
{
    int status = work(follower, end_next_change);
    if (status == 0)
        finish_ending(follower);
    return status < 0 ? status : 0;
}

static int work_on_removals(struct follower *follower)
{
    int status = work(follower, follower_next_removal);
    if (status == 0)
        follower_ask_for_word(follower);
    return status < 0 ? status : 0;
}

static void on_idle(uv_idle_t *idle);

/* While a transaction's end is carried out the stream waits: changes keep the log's order, and no
 * position is reached before what was committed ahead of it. Removals need no order. */
void follower_settle(struct follower *follower)
{
    if (follower->closed || follower->ended)
        return;
    bool ends = follower->ending.transaction != NULL;
    bool crowded = follower_is_crowded(follower);
    bool hold = ends || crowded;
    if (crowded && !ends)
        follower->events.unvouched(follower->arg, true);
    if (hold != follower->held)
        pg_stream_pause(follower->stream, hold);
    follower->held = hold;
    if (ends || removals_are_under_way(follower->removals))
        uv_idle_start(&follower->idle, on_idle);
    else
        uv_idle_stop(&follower->idle);
}

void follower_end(struct follower *follower)
{
    if (follower->closed || follower->ended)
        return;
    follower->ended = true;
    uv_idle_stop(&follower->idle);
    follower->events.fault(follower->arg, follower->why);
}

static void on_idle(uv_idle_t *idle)
{
    struct follower *follower = idle->data;
    int status = follower->ending.transaction ? work_on_ending(follower) : 0;
    if (!status && removals_are_under_way(follower->removals))
        status = work_on_removals(follower);
    if (status)
        follower_end(follower);
    else
        follower_settle(follower);
}

int follower_begin_ending(struct follower *follower, struct transaction *transaction,
                          bool committed, const struct pgoutput_event *event)
{
    follower->ending = (struct ending){.transaction = transaction,
                                       .committed = committed,
                                       .adding = committed && transaction_has_due(transaction),
                                       .lsn = event->lsn,
                                       .end_lsn = event->end_lsn,
                                       .time_us = event->time_us};
    transaction_end(transaction, committed);
    int status = rewind_ending(follower);
    if (!status)
        status = work_on_ending(follower);
    if (!status)
        follower_settle(follower);
    return status;
}
