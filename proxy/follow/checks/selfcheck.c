/* First every table is sampled, then whatever the filter lacked is looked into, as many keys at
 * once as fn_checks.h takes:
 *
 *   begin ─▶ SAMPLE ─▶ few rows: SEEK ─┬─ another keyspace ─▶ SAMPLE
 *                                      └─ examine ─▶ on_fn_check ─┬─ confirmed ─▶ finish: failed
 *                                            ▲                    ├─ the last one ─▶ finish
 *                                            └────────────────────┘
 *
 * A sampled key that the filter lacks is nothing unusual: its row may have been inserted a moment
 * ago, or deleted by a commit that is not visible yet (FN_CHECK_UNSEEN). The latter may last until
 * the generation serves, for it may be its confirmation that the commit waits for: it must not keep
 * the check from passing.
 */
#include "follow/checks/selfcheck.h"

#include "base/memory.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    KEY_SHOWN_MAX = 200, /* bytes of a key in the text of a failure */
    FEW_ROWS = 20,       /* of a keyspace in the sampled pages: more are sought by its condition */
    FIRST_NORMAL_XID = 3
};

static const char INSUFFICIENT_PRIVILEGE[] = "42501", NOT_SUPPORTED[] = "0A000";

/* A key that the filter lacked. The sample's limits bound how many there are. */
struct suspect {
    struct suspect *next;
    struct key key; /* its text lies behind */
};

struct selfcheck {
    struct selfcheck_options options;
    size_t keyspace; /* being sampled; when all are: their number */
    enum selfcheck_question question;
    bool asking; /* it is under way */
    bool cancelled;
    bool timed_out;
    uint64_t unproven, known; /* keys of this keyspace whose rows prove nothing; those of them that
                                 the filter has */
    struct pg_error error;    /* of the last question that was not answered */
    struct buffer key;
    struct buffer hashes; /* of the keys of this keyspace that were looked up: one uint64_t each */
    struct suspect *suspects;
    size_t examined; /* checks that have not ended */
    char *why;       /* of the keyspace whose outcome is the last so far */
    enum selfcheck_outcome worst;
    size_t worst_keyspace;
    struct selfcheck_account accounts[]; /* of each keyspace */
};

/* ---- the end ---- */

static void drop_suspect(struct selfcheck *check)
{
    struct suspect *suspect = check->suspects;
    check->suspects = suspect->next;
    free(suspect);
}

static void drop_suspects(struct selfcheck *check)
{
    while (check->suspects)
        drop_suspect(check);
}

static void selfcheck_free(struct selfcheck *check)
{
    drop_suspects(check);
    buffer_finish(&check->key);
    buffer_finish(&check->hashes);
    generation_release(check->options.generation);
    free(check->why);
    free(check);
}

void selfcheck_cancel(struct selfcheck *check)
{
    if (!check)
        return;
    fn_checks_cancel(check->options.fn_checks, check);
    check->cancelled = true;
    generation_release(check->options.generation);
    check->options.generation = NULL;
    if (!check->asking)
        selfcheck_free(check);
}

/* Nothing is asked of the pool any more. */
static void finish(struct selfcheck *check)
{
    struct selfcheck_result result = {.outcome = check->worst,
                                      .why = check->why ? check->why : "",
                                      .keyspace = check->worst_keyspace,
                                      .count = check->options.config->keyspace_count,
                                      .keyspaces = check->accounts,
                                      .timed_out = check->timed_out};
    fn_checks_cancel(check->options.fn_checks, check);
    check->options.done(check->options.arg, &result);
    selfcheck_free(check);
}

/* `why` is given away; NULL where nothing is to be said. Of equal outcomes the first one's stays.
 */
static void decide(struct selfcheck *check, size_t keyspace, enum selfcheck_outcome outcome,
                   char *why)
{
    if (outcome > check->accounts[keyspace].outcome)
        check->accounts[keyspace].outcome = outcome;
    if (outcome <= check->worst) {
        free(why);
        return;
    }
    free(check->why);
    check->why = why;
    check->worst = outcome;
    check->worst_keyspace = keyspace;
}

static const char *name_of(const struct selfcheck *check, size_t keyspace)
{
    return check->options.config->keyspaces[keyspace].name;
}

/* Rows may hold any bytes; a log is read on terminals. */
static void fail(struct selfcheck *check, struct key failed)
{
    struct span key = failed.text;
    char shown[KEY_SHOWN_MAX + 1];
    size_t length = key.length > KEY_SHOWN_MAX ? utf8_cut(key.at, KEY_SHOWN_MAX) : key.length;
    for (size_t i = 0; i < length; i++)
        shown[i] = (unsigned char)key.at[i] < ' ' || key.at[i] == 0x7f ? '?' : key.at[i];
    shown[length] = '\0';
    decide(check, (size_t)failed.keyspace, SELFCHECK_FAILED,
           xasprintf("keyspace %s: the database has a row of key %s%s, the filter has not",
                     name_of(check, (size_t)failed.keyspace), shown,
                     length < key.length ? "..." : ""));
    finish(check);
}

/* ---- looking into what the filter lacked ---- */

static bool is_possible(const struct selfcheck *check, int keyspace, uint64_t hash)
{
    return !generation_covers(check->options.generation, (size_t)keyspace) ||
           filter_contains(check->options.generation->filters[keyspace], hash);
}

static uint64_t hash_of(const struct selfcheck *check, struct span key)
{
    return filter_hash(&check->options.generation->seed, key.at, key.length);
}

static void on_fn_check(void *arg, struct key key, enum fn_check_outcome outcome,
                        struct span other);

/* false: not taken. */
static bool look_into(struct selfcheck *check, const struct suspect *suspect)
{
    if (is_possible(check, suspect->key.keyspace, hash_of(check, suspect->key.text)))
        return true; /* by now */
    if (!fn_checks_add(check->options.fn_checks, check->options.generation, suspect->key,
                       on_fn_check, check))
        return false;
    check->examined++;
    return true;
}

static void leave_undecided(struct selfcheck *check, int keyspace)
{
    decide(check, (size_t)keyspace, SELFCHECK_UNDECIDED,
           xasprintf("keyspace %s: whether rows that the filter lacks are there could not be found "
                     "out",
                     name_of(check, (size_t)keyspace)));
}

/* What finds no place waits until one of those under way has ended. When there are none, others
 * take all places, and nobody would say when one is free. */
static void examine(struct selfcheck *check)
{
    while (check->suspects && look_into(check, check->suspects))
        drop_suspect(check);
    if (check->examined)
        return;
    if (check->suspects)
        leave_undecided(check, check->suspects->key.keyspace);
    finish(check);
}

/* What one could not learn, the next ones will not either. A row that spells its key otherwise by
 * now has changed since it was sampled. */
static void on_fn_check(void *arg, struct key key, enum fn_check_outcome outcome, struct span other)
{
    struct selfcheck *check = arg;
    (void)other;
    check->examined--;
    if (outcome == FN_CHECK_CONFIRMED) {
        fail(check, key);
        return;
    }
    if (outcome == FN_CHECK_UNDECIDED) {
        leave_undecided(check, key.keyspace);
        drop_suspects(check);
    }
    examine(check);
}

/* ---- sampling ---- */

static void suspect_key(struct selfcheck *check, struct span text)
{
    struct suspect *suspect = xmalloc(sizeof *suspect + text.length);
    struct key key = key_make((int)check->keyspace, text);
    *suspect = (struct suspect){check->suspects, key_copy(key, (char *)(suspect + 1))};
    check->suspects = suspect;
}

/* Whether it is a row that the filter must have. */
static bool must_be_known(const struct selfcheck *check, const PGresult *result, int row)
{
    const struct snapshot *snapshot = check->options.snapshot;
    int column = (int)check->options.config->keyspaces[check->keyspace].key.columns;
    if (!snapshot)
        return true;
    if (PQgetisnull(result, row, column))
        return false;
    uint32_t xmin = (uint32_t)strtoul(PQgetvalue(result, row, column), NULL, 10);
    return xmin && (xmin < FIRST_NORMAL_XID || xid_precedes(xmin, snapshot->xmin));
}

/* The parts of a sample overlap. */
static bool was_looked_at(const struct selfcheck *check, uint64_t hash)
{
    struct span hashes = buffer_span(&check->hashes);
    for (size_t at = 0; at < hashes.length; at += sizeof hash)
        if (!memcmp(hashes.at + at, &hash, sizeof hash))
            return true;
    return false;
}

static void count_row(struct selfcheck *check, bool possible, bool proves)
{
    if (!proves) {
        check->unproven++;
        check->known += possible;
        return;
    }
    check->accounts[check->keyspace].rows++;
    if (!possible)
        suspect_key(check, buffer_span(&check->key));
}

/* The key is put together as the builder does it: lookups hash the same bytes. */
static void look_at_row(struct selfcheck *check, const PGresult *result, int row)
{
    const struct key_template *template = &check->options.config->keyspaces[check->keyspace].key;
    struct span texts[KEY_COLUMNS_MAX];
    for (size_t c = 0; c < template->columns; c++)
        texts[c] = (struct span){PQgetvalue(result, row, (int)c),
                                 (size_t)PQgetlength(result, row, (int)c)};
    buffer_clear(&check->key);
    key_template_render(template, texts, &check->key);
    uint64_t hash = hash_of(check, buffer_span(&check->key));
    if (was_looked_at(check, hash))
        return;
    buffer_append(&check->hashes, &hash, sizeof hash);
    count_row(check, is_possible(check, (int)check->keyspace, hash),
              must_be_known(check, result, row));
}

/* That a view is none to take samples of the database says. */
static enum selfcheck_question first_question(const struct selfcheck *check)
{
    return check->options.config->keyspaces[check->keyspace].query ? SELFCHECK_ROWS
                                                                   : SELFCHECK_SAMPLE;
}

static void ask(struct selfcheck *check, enum selfcheck_question question);

/* Of what is not looked up by the generation nothing has to be known. */
static void skip_uncovered(struct selfcheck *check)
{
    while (check->keyspace < check->options.config->keyspace_count &&
           !generation_covers(check->options.generation, check->keyspace))
        check->keyspace++;
}

static void sample_next(struct selfcheck *check)
{
    check->keyspace++;
    skip_uncovered(check);
    check->unproven = check->known = 0;
    check->error.text[0] = '\0';
    buffer_clear(&check->hashes);
    if (check->keyspace < check->options.config->keyspace_count)
        ask(check, first_question(check));
    else
        examine(check);
}

static void settle(struct selfcheck *check, enum selfcheck_outcome outcome)
{
    const char *name = name_of(check, check->keyspace);
    char *why = NULL;
    if (outcome == SELFCHECK_NO_ROW)
        why = xasprintf("keyspace %s: the self-check saw no row: %s", name,
                        check->error.text[0] ? check->error.text : "the database did not answer");
    if (outcome == SELFCHECK_UNPROVEN)
        why = xasprintf("keyspace %s: the self-check saw no row that was there when the filter was "
                        "built",
                        name);
    decide(check, check->keyspace, outcome, why);
    sample_next(check);
}

/* Where all rows are newer than the generation they were updated since, or all of them were put in
 * the place of others: then the filter takes a few for known, by chance. */
static void judge_by_most(struct selfcheck *check)
{
    struct selfcheck_account *account = &check->accounts[check->keyspace];
    if (!account->rows && 2 * check->known > check->unproven)
        account->rows = check->known;
}

/* The pages were looked at and, unless they were enough, the rows by their condition. */
static void conclude(struct selfcheck *check, bool answered)
{
    judge_by_most(check);
    if (check->accounts[check->keyspace].rows)
        settle(check, SELFCHECK_PASSED);
    else if (check->unproven)
        settle(check, SELFCHECK_UNPROVEN);
    else if (answered)
        settle(check, SELFCHECK_EMPTY);
    else
        settle(check, SELFCHECK_NO_ROW);
}

static void take_rows(struct selfcheck *check, const struct pg_answer *answer)
{
    if (answer->outcome == PG_DONE) {
        for (int row = 0; row < PQntuples(answer->result); row++)
            look_at_row(check, answer->result, row);
        return;
    }
    check->error = answer->error;
    check->timed_out |= answer->outcome == PG_TIMEOUT;
}

static bool is_refused_with(const struct pg_answer *answer, const char *sqlstate)
{
    return answer->outcome == PG_REFUSED && strcmp(answer->error.sqlstate, sqlstate) == 0;
}

/* A table that cannot be read does not keep the others from being looked at. Of a view no sample
 * can be taken. */
static void on_answer(void *arg, const struct pg_answer *answer)
{
    struct selfcheck *check = arg;
    bool answered = answer->outcome == PG_DONE;
    check->asking = false;
    if (check->cancelled) {
        selfcheck_free(check);
        return;
    }
    take_rows(check, answer);
    if (check->question == SELFCHECK_SAMPLE && is_refused_with(answer, INSUFFICIENT_PRIVILEGE))
        ask(check, SELFCHECK_PLAIN);
    else if (check->question == SELFCHECK_SAMPLE && is_refused_with(answer, NOT_SUPPORTED))
        ask(check, SELFCHECK_ROWS);
    else if (check->question == SELFCHECK_SAMPLE &&
             check->accounts[check->keyspace].rows < FEW_ROWS)
        ask(check, SELFCHECK_SEEK);
    else
        conclude(check, answered);
}

static void ask(struct selfcheck *check, enum selfcheck_question question)
{
    check->asking = true;
    check->question = question;
    pg_pool_submit(check->options.pool, check->keyspace * SELFCHECK_QUESTIONS + question, NULL,
                   on_answer, check);
}

struct selfcheck *selfcheck_begin(const struct selfcheck_options *options)
{
    struct selfcheck *check =
        xcalloc(1, sizeof *check + options->config->keyspace_count * sizeof *check->accounts);
    check->options = *options;
    options->generation->references++;
    skip_uncovered(check);
    assert(check->keyspace < options->config->keyspace_count);
    ask(check, first_question(check));
    return check;
}
