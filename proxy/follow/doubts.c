/* Why what is confirmed is a fault, and not the filter being behind or ahead of the database:
 *
 *   filter lacks the key ─▶ question ─▶ answer: a row ─▶ known > answer: filter lacks the key
 *   └────────────────── no change of the key in the log meanwhile ──────────────────┘
 *
 * Behind: the row was committed before the answer came, so before `known`, and its insertion is in
 * the filter by the time of the second look. (clock_ms() drops the part of a millisecond: of two
 * equal times the earlier one is not known, therefore > and not >=.)
 *
 * Ahead: the filter may have taken the row out again since, or may have gone through any number of
 * insertions and removals. But the log tells each of them, so without one between the two looks the
 * filter was the same all the while, and so was the truth that it stands for: the row was in the
 * database before the first look, and still was at the second. A round with a change proves
 * nothing and is asked again.
 *
 * What is left is a deletion that the log had told before the first look, or that lay before the
 * snapshot that the filter was built from, while the database still showed the row: a commit is in
 * the log before others see it. unseen.h knows of those when the question is sent, so such a round
 * proves nothing either. That may go on for as long as the commit waits for a synchronous standby,
 * and this guard may be the one, with the doubt between it and its first confirmation: therefore
 * that outcome is told, and has its own name.
 *
 * So one round would do. A confirmed doubt costs a generation: three must agree.
 */
#include "follow/doubts.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>

enum {
    UNSEEN_MAX = 3, /* rounds in which the row may have been one that is gone */
    STRIKES = 3,    /* undisturbed rounds that found a row and no key in the filter */
    ROUNDS_MAX = 10 /* a row that changes in so many of them is left alone */
};

enum state {
    FORETOLD,  /* the outcome was known without asking; it waits, for doubts_add() must return */
    ASKED,     /* the database is */
    ANSWERED,  /* there is a row: now the filter must know what was committed by then */
    ENDED,     /* `outcome` is to be told */
    ABANDONED, /* told or dropped; here only until its query has ended */
};

struct doubt {
    struct doubts *doubts; /* NULL: destroyed */
    enum state state;
    bool querying;                 /* an answer is still to come */
    struct generation *generation; /* one reference; none when abandoned */
    struct key key;                /* its text lies behind */
    uint64_t hash;                 /* the generation's */
    uint64_t answered;             /* clock_ms() when the answer had come */
    bool changed;                  /* since the question of this round was sent */
    unsigned rounds, strikes, unseen;
    enum doubt_outcome outcome; /* of those FORETOLD and ENDED */
    struct span other;          /* with DOUBT_OTHER_SPELLING, which is told at once */
    doubt_cb done;
    void *arg;
};

struct doubts {
    struct doubts_options options;
    unsigned count;
    struct doubt *all[]; /* in no order */
};

struct doubts *doubts_create(const struct doubts_options *options)
{
    struct doubts *doubts = xcalloc(1, sizeof *doubts + options->max_at_once * sizeof *doubts->all);
    doubts->options = *options;
    return doubts;
}

static bool is_of(const struct doubt *doubt, const struct generation *generation)
{
    return doubt->state != ABANDONED && doubt->generation == generation;
}

static bool is_possible(const struct doubt *doubt)
{
    return filter_contains(doubt->generation->filters[doubt->key.keyspace], doubt->hash);
}

/* ---- leaving ---- */

/* Out of the list, which has its place free again. */
static void take_out(struct doubt *doubt)
{
    struct doubts *doubts = doubt->doubts;
    unsigned i = 0;
    while (doubts->all[i] != doubt)
        i++;
    doubts->all[i] = doubts->all[--doubts->count];
}

/* A doubt whose query is under way keeps its place, so that queries stay bounded, too. */
static void abandon(struct doubt *doubt)
{
    doubt->state = ABANDONED;
    generation_release(doubt->generation);
    doubt->generation = NULL;
    if (!doubt->querying)
        take_out(doubt);
}

static void drop(struct doubt *doubt)
{
    abandon(doubt);
    if (!doubt->querying)
        free(doubt);
}

/* The callback may add another doubt in its place, or cancel others. */
static void tell(struct doubt *doubt)
{
    abandon(doubt);
    doubt->done(doubt->arg, doubt->key, doubt->outcome, doubt->other);
    if (!doubt->querying)
        free(doubt);
}

static struct doubt *find_ended(const struct doubts *doubts)
{
    for (unsigned i = 0; i < doubts->count; i++)
        if (doubts->all[i]->state == ENDED)
            return doubts->all[i];
    return NULL;
}

/* They are looked for anew each time: a callback may have changed the list. */
static void tell_ended(struct doubts *doubts)
{
    struct doubt *doubt;
    while ((doubt = find_ended(doubts)))
        tell(doubt);
}

static void end(struct doubt *doubt, enum doubt_outcome outcome)
{
    doubt->state = ENDED;
    doubt->outcome = outcome;
}

/* ---- a round ---- */

static enum doubt_outcome outcome_without_row(const struct row_result *result)
{
    if (result->outcome != LOAD_ABSENT)
        return DOUBT_UNDECIDED;
    return result->other_spelling.at ? DOUBT_OTHER_SPELLING : DOUBT_CLEARED;
}

/* Nobody waits for it any more. */
static void drop_answer(struct doubt *doubt)
{
    if (doubt->doubts)
        take_out(doubt);
    free(doubt);
}

static void on_row(void *arg, const struct row_result *result)
{
    struct doubt *doubt = arg;
    doubt->querying = false;
    blob_release(result->value);
    if (doubt->state == ABANDONED) {
        drop_answer(doubt);
        return;
    }
    if (result->outcome == LOAD_ROW) {
        doubt->state = ANSWERED;
        doubt->answered = clock_ms();
        return;
    }
    doubt->other = result->other_spelling;
    end(doubt, outcome_without_row(result));
    tell(doubt);
}

/* The filter lacks the key at this moment. */
static void ask(struct doubt *doubt)
{
    doubt->state = ASKED;
    doubt->querying = true;
    doubt->changed = unseen_has(doubt->doubts->options.unseen, doubt->key);
    doubt->unseen += doubt->changed;
    doubt->rounds++;
    rows_load(doubt->doubts->options.rows, doubt->key, on_row, doubt);
}

static void judge(struct doubt *doubt)
{
    doubt->strikes += !doubt->changed;
    if (is_possible(doubt))
        end(doubt, DOUBT_CLEARED);
    else if (doubt->strikes == STRIKES)
        end(doubt, DOUBT_CONFIRMED);
    else if (doubt->unseen == UNSEEN_MAX)
        end(doubt, DOUBT_UNSEEN);
    else if (doubt->rounds == ROUNDS_MAX)
        end(doubt, DOUBT_UNDECIDED);
    else
        ask(doubt);
}

void doubts_known(struct doubts *doubts, const struct generation *generation, uint64_t known)
{
    for (unsigned i = 0; i < doubts->count; i++) {
        struct doubt *doubt = doubts->all[i];
        if (!is_of(doubt, generation))
            continue;
        if (doubt->state == FORETOLD)
            end(doubt, doubt->outcome);
        else if (doubt->state == ANSWERED && known > doubt->answered)
            judge(doubt);
    }
    tell_ended(doubts);
}

void doubts_changed(struct doubts *doubts, const struct generation *generation, struct key key)
{
    for (unsigned i = 0; i < doubts->count; i++) {
        struct doubt *doubt = doubts->all[i];
        if (is_of(doubt, generation) && key_equals(doubt->key, key))
            doubt->changed = true;
    }
}

/* ---- coming ---- */

static struct doubt *doubt_create(struct doubts *doubts, struct generation *generation,
                                  struct key key)
{
    struct doubt *doubt = xcalloc(1, sizeof *doubt + key.text.length);
    doubt->doubts = doubts;
    doubt->generation = generation;
    doubt->hash = filter_hash(&generation->seed, key.text.at, key.text.length);
    doubt->key = key_copy(key, (char *)(doubt + 1));
    generation->references++;
    return doubt;
}

static void foretell(struct doubt *doubt, enum doubt_outcome outcome)
{
    doubt->state = FORETOLD;
    doubt->outcome = outcome;
}

/* The filter may have come to know the key since somebody doubted it. */
static void begin(struct doubt *doubt)
{
    enum load_outcome outcome = rows_foretell(doubt->doubts->options.rows, doubt->key);
    if (outcome == LOAD_ABSENT || is_possible(doubt))
        foretell(doubt, DOUBT_CLEARED);
    else if (outcome != LOAD_ROW)
        foretell(doubt, DOUBT_UNDECIDED);
    else
        ask(doubt);
}

bool doubts_add(struct doubts *doubts, struct generation *generation, struct key key, doubt_cb done,
                void *arg)
{
    if (doubts->count == doubts->options.max_at_once)
        return false;
    struct doubt *doubt = doubt_create(doubts, generation, key);
    doubt->done = done;
    doubt->arg = arg;
    doubts->all[doubts->count++] = doubt;
    begin(doubt);
    return true;
}

/* ---- giving up ---- */

void doubts_forget(struct doubts *doubts, const struct generation *generation)
{
    for (unsigned i = 0; i < doubts->count; i++)
        if (is_of(doubts->all[i], generation))
            end(doubts->all[i], DOUBT_UNDECIDED);
    tell_ended(doubts);
}

/* From the end, for what leaves the list is replaced by its last. */
void doubts_cancel(struct doubts *doubts, const void *arg)
{
    for (unsigned i = doubts->count; i-- > 0;)
        if (doubts->all[i]->state != ABANDONED && doubts->all[i]->arg == arg)
            drop(doubts->all[i]);
}

void doubts_destroy(struct doubts *doubts)
{
    if (!doubts)
        return;
    for (unsigned i = doubts->count; i-- > 0;)
        if (doubts->all[i]->state != ABANDONED)
            drop(doubts->all[i]);
    for (unsigned i = 0; i < doubts->count; i++)
        doubts->all[i]->doubts = NULL; /* the answer frees it */
    free(doubts);
}
