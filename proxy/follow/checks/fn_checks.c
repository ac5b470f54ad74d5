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
 * the log before others see it. commit_visibility.h knows of those when the question is sent, so
 * such a round proves nothing either. That may go on for as long as the commit waits for a
 * synchronous standby, and this guard may be the one, with the check between it and its first
 * confirmation: therefore that outcome is told, and has its own name.
 *
 * So one round would do. A confirmed check costs a generation: three must agree.
 */
#include "follow/checks/fn_checks.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum {
    UNSEEN_MAX = 3, /* rounds in which the row may have been one that is gone */
    STRIKES = 3,    /* undisturbed rounds that found a row and no key in the filter */
    ROUNDS_MAX = 10 /* a row that changes in so many of them is left alone */
};

enum state {
    FORETOLD,  /* the outcome was known without asking; it waits, for fn_checks_add() must return */
    ASKED,     /* the database is */
    ANSWERED,  /* there is a row: now the filter must know what was committed by then */
    ENDED,     /* `outcome` is to be told */
    ABANDONED, /* told or dropped; here only until its query has ended */
};

struct fn_check {
    struct fn_checks *fn_checks; /* NULL: destroyed */
    enum state state;
    bool querying;                 /* an answer is still to come */
    struct generation *generation; /* one reference; none when abandoned */
    struct key key;                /* its text lies behind */
    uint64_t hash;                 /* the generation's */
    uint64_t answered;             /* clock_ms() when the answer had come */
    bool changed;                  /* since the question of this round was sent */
    unsigned rounds, strikes, unseen;
    enum fn_check_outcome outcome; /* of those FORETOLD and ENDED */
    struct span other;             /* with FN_CHECK_OTHER_SPELLING, which is told at once */
    fn_check_cb done;
    void *arg;
};

struct fn_checks {
    struct fn_checks_options options;
    unsigned count;
    struct fn_check *all[]; /* in no order */
};

struct fn_checks *fn_checks_create(const struct fn_checks_options *options)
{
    struct fn_checks *fn_checks =
        xcalloc(1, sizeof *fn_checks + options->max_at_once * sizeof *fn_checks->all);
    fn_checks->options = *options;
    return fn_checks;
}

static bool is_of(const struct fn_check *fn_check, const struct generation *generation)
{
    return fn_check->state != ABANDONED && fn_check->generation == generation;
}

static bool is_possible(const struct fn_check *fn_check)
{
    return !generation_covers(fn_check->generation, (size_t)fn_check->key.keyspace) ||
           filter_contains(fn_check->generation->filters[fn_check->key.keyspace], fn_check->hash);
}

/* For each state, the states that may follow it, a bit each. It begins as FORETOLD. */
static void set_state(struct fn_check *fn_check, enum state state)
{
    static const unsigned allowed[] = {
        [FORETOLD] = 1u << FORETOLD | 1u << ASKED | 1u << ENDED | 1u << ABANDONED,
        [ASKED] = 1u << ANSWERED | 1u << ENDED | 1u << ABANDONED,
        [ANSWERED] = 1u << ASKED | 1u << ENDED | 1u << ABANDONED,
        [ENDED] = 1u << ABANDONED,
        [ABANDONED] = 0,
    };
    assert(allowed[fn_check->state] & 1u << state);
    (void)allowed;
    fn_check->state = state;
}

/* ---- leaving ---- */

/* Out of the list, which has its place free again. */
static void take_out(struct fn_check *fn_check)
{
    struct fn_checks *fn_checks = fn_check->fn_checks;
    unsigned i = 0;
    while (fn_checks->all[i] != fn_check)
        i++;
    fn_checks->all[i] = fn_checks->all[--fn_checks->count];
}

/* A check whose query is under way keeps its place, so that queries stay bounded, too. */
static void abandon(struct fn_check *fn_check)
{
    set_state(fn_check, ABANDONED);
    generation_release(fn_check->generation);
    fn_check->generation = NULL;
    if (!fn_check->querying)
        take_out(fn_check);
}

static void drop(struct fn_check *fn_check)
{
    abandon(fn_check);
    if (!fn_check->querying)
        free(fn_check);
}

/* The callback may add another check in its place, or cancel others. */
static void tell(struct fn_check *fn_check)
{
    abandon(fn_check);
    fn_check->done(fn_check->arg, fn_check->key, fn_check->outcome, fn_check->other);
    if (!fn_check->querying)
        free(fn_check);
}

static struct fn_check *find_ended(const struct fn_checks *fn_checks)
{
    for (unsigned i = 0; i < fn_checks->count; i++)
        if (fn_checks->all[i]->state == ENDED)
            return fn_checks->all[i];
    return NULL;
}

/* They are looked for anew each time: a callback may have changed the list. */
static void tell_ended(struct fn_checks *fn_checks)
{
    struct fn_check *fn_check;
    while ((fn_check = find_ended(fn_checks)))
        tell(fn_check);
}

static void end(struct fn_check *fn_check, enum fn_check_outcome outcome)
{
    set_state(fn_check, ENDED);
    fn_check->outcome = outcome;
}

/* ---- a round ---- */

static enum fn_check_outcome outcome_without_row(const struct row_result *result)
{
    if (result->outcome != LOAD_ABSENT)
        return FN_CHECK_UNDECIDED;
    return result->other_spelling.at ? FN_CHECK_OTHER_SPELLING : FN_CHECK_CLEARED;
}

/* Nobody waits for it any more. */
static void drop_answer(struct fn_check *fn_check)
{
    if (fn_check->fn_checks)
        take_out(fn_check);
    free(fn_check);
}

static void on_row(void *arg, const struct row_result *result)
{
    struct fn_check *fn_check = arg;
    fn_check->querying = false;
    blob_release(result->value);
    if (fn_check->state == ABANDONED) {
        drop_answer(fn_check);
        return;
    }
    if (result->outcome == LOAD_ROW) {
        set_state(fn_check, ANSWERED);
        fn_check->answered = clock_ms();
        return;
    }
    fn_check->other = result->other_spelling;
    end(fn_check, outcome_without_row(result));
    tell(fn_check);
}

/* The filter lacks the key at this moment. */
static void ask(struct fn_check *fn_check)
{
    set_state(fn_check, ASKED);
    fn_check->querying = true;
    fn_check->changed = visibility_has(fn_check->fn_checks->options.visibility, fn_check->key);
    fn_check->unseen += fn_check->changed;
    fn_check->rounds++;
    rows_find(fn_check->fn_checks->options.rows, fn_check->key, on_row, fn_check);
}

static void judge(struct fn_check *fn_check)
{
    fn_check->strikes += !fn_check->changed;
    if (is_possible(fn_check))
        end(fn_check, FN_CHECK_CLEARED);
    else if (fn_check->strikes == STRIKES)
        end(fn_check, FN_CHECK_CONFIRMED);
    else if (fn_check->unseen == UNSEEN_MAX)
        end(fn_check, FN_CHECK_UNSEEN);
    else if (fn_check->rounds == ROUNDS_MAX)
        end(fn_check, FN_CHECK_UNDECIDED);
    else
        ask(fn_check);
}

void fn_checks_known(struct fn_checks *fn_checks, const struct generation *generation,
                     uint64_t known)
{
    for (unsigned i = 0; i < fn_checks->count; i++) {
        struct fn_check *fn_check = fn_checks->all[i];
        if (!is_of(fn_check, generation))
            continue;
        if (fn_check->state == FORETOLD)
            end(fn_check, fn_check->outcome);
        else if (fn_check->state == ANSWERED && known > fn_check->answered)
            judge(fn_check);
    }
    tell_ended(fn_checks);
}

void fn_checks_changed(struct fn_checks *fn_checks, const struct generation *generation,
                       struct key key)
{
    for (unsigned i = 0; i < fn_checks->count; i++) {
        struct fn_check *fn_check = fn_checks->all[i];
        if (is_of(fn_check, generation) && key_equals(fn_check->key, key))
            fn_check->changed = true;
    }
}

/* ---- coming ---- */

static struct fn_check *fn_check_create(struct fn_checks *fn_checks, struct generation *generation,
                                        struct key key)
{
    struct fn_check *fn_check = xcalloc(1, sizeof *fn_check + key.text.length);
    fn_check->fn_checks = fn_checks;
    fn_check->generation = generation;
    fn_check->hash = filter_hash(&generation->seed, key.text.at, key.text.length);
    fn_check->key = key_copy(key, (char *)(fn_check + 1));
    generation->references++;
    return fn_check;
}

static void foretell(struct fn_check *fn_check, enum fn_check_outcome outcome)
{
    set_state(fn_check, FORETOLD);
    fn_check->outcome = outcome;
}

/* The filter may have come to know the key since somebody checked it. */
static void begin(struct fn_check *fn_check)
{
    enum load_outcome outcome = rows_foretell(fn_check->fn_checks->options.rows, fn_check->key);
    if (outcome == LOAD_ABSENT || is_possible(fn_check))
        foretell(fn_check, FN_CHECK_CLEARED);
    else if (outcome != LOAD_ROW)
        foretell(fn_check, FN_CHECK_UNDECIDED);
    else
        ask(fn_check);
}

bool fn_checks_add(struct fn_checks *fn_checks, struct generation *generation, struct key key,
                   fn_check_cb done, void *arg)
{
    if (fn_checks->count == fn_checks->options.max_at_once)
        return false;
    struct fn_check *fn_check = fn_check_create(fn_checks, generation, key);
    fn_check->done = done;
    fn_check->arg = arg;
    fn_checks->all[fn_checks->count++] = fn_check;
    begin(fn_check);
    return true;
}

/* ---- giving up ---- */

void fn_checks_forget(struct fn_checks *fn_checks, const struct generation *generation)
{
    for (unsigned i = 0; i < fn_checks->count; i++)
        if (is_of(fn_checks->all[i], generation) && fn_checks->all[i]->state != ENDED)
            end(fn_checks->all[i], FN_CHECK_UNDECIDED);
    tell_ended(fn_checks);
}

/* From the end, for what leaves the list is replaced by its last. */
void fn_checks_cancel(struct fn_checks *fn_checks, const void *arg)
{
    for (unsigned i = fn_checks->count; i-- > 0;)
        if (fn_checks->all[i]->state != ABANDONED && fn_checks->all[i]->arg == arg)
            drop(fn_checks->all[i]);
}

void fn_checks_destroy(struct fn_checks *fn_checks)
{
    if (!fn_checks)
        return;
    for (unsigned i = fn_checks->count; i-- > 0;)
        if (fn_checks->all[i]->state != ABANDONED)
            drop(fn_checks->all[i]);
    for (unsigned i = 0; i < fn_checks->count; i++)
        fn_checks->all[i]->fn_checks = NULL; /* the answer frees it */
    free(fn_checks);
}
