/* First every table is sampled, then whatever the filter lacked is looked into, as many keys at
 * once as doubts.h takes:
 *
 *   begin ─▶ sample ─▶ on_sample ─┬─ another keyspace ─▶ sample
 *                                 └─ examine ─▶ on_doubt ─┬─ confirmed ─▶ finish: failed
 *                                       ▲                 ├─ the last one ─▶ finish
 *                                       └─────────────────┘
 *
 * A sampled key that the filter lacks is nothing unusual: its row may have been inserted a moment
 * ago, or deleted by a commit that is not visible yet (DOUBT_UNSEEN). The latter may last until the
 * generation serves, for it may be its confirmation that the commit waits for: it must not keep the
 * check from passing.
 */
#include "selfcheck.h"

#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEY_SHOWN_MAX = 200 }; /* bytes of a key in the text of a failure */

/* A key that the filter lacked. The sample's limits bound how many there are. */
struct suspect {
    struct suspect *next;
    int keyspace;
    struct span key; /* lies behind */
};

struct selfcheck {
    struct selfcheck_options options;
    size_t keyspace; /* being sampled; when all are: their number */
    bool asking;     /* the sample is under way */
    bool cancelled;
    bool undecided;
    uint64_t rows;
    struct buffer key;
    struct suspect *suspects;
    size_t examined; /* doubts that have not ended */
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
    generation_release(check->options.generation);
    free(check);
}

void selfcheck_cancel(struct selfcheck *check)
{
    if (!check)
        return;
    doubts_cancel(check->options.doubts, check);
    check->cancelled = true;
    generation_release(check->options.generation);
    check->options.generation = NULL;
    if (!check->asking)
        selfcheck_free(check);
}

/* Nothing is asked of the pool any more. */
static void finish(struct selfcheck *check, bool passed, const char *why)
{
    doubts_cancel(check->options.doubts, check);
    check->options.done(check->options.arg, passed, why, check->rows);
    selfcheck_free(check);
}

/* Rows may hold any bytes; a log is read on terminals. */
static void fail(struct selfcheck *check, int keyspace, struct span key)
{
    char shown[KEY_SHOWN_MAX + 1];
    size_t length = key.length < KEY_SHOWN_MAX ? key.length : KEY_SHOWN_MAX;
    for (size_t i = 0; i < length; i++)
        shown[i] = (unsigned char)key.at[i] < ' ' || key.at[i] == 0x7f ? '?' : key.at[i];
    shown[length] = '\0';
    char *why = xasprintf("keyspace %s: the database has a row of key %s%s, the filter has not",
                          check->options.config->keyspaces[keyspace].name, shown,
                          length < key.length ? "..." : "");
    finish(check, false, why);
    free(why);
}

/* ---- looking into what the filter lacked ---- */

static bool is_possible(const struct selfcheck *check, int keyspace, struct span key)
{
    const struct generation *generation = check->options.generation;
    return filter_contains(generation->filters[keyspace],
                           filter_hash(&generation->seed, key.at, key.length));
}

static void on_doubt(void *arg, int keyspace, struct span key, enum doubt_outcome outcome,
                     struct span other);

/* false: not taken. */
static bool look_into(struct selfcheck *check, const struct suspect *suspect)
{
    if (is_possible(check, suspect->keyspace, suspect->key))
        return true; /* by now */
    if (!doubts_add(check->options.doubts, check->options.generation, suspect->keyspace,
                    suspect->key, on_doubt, check))
        return false;
    check->examined++;
    return true;
}

/* What finds no place waits until one of those under way has ended. When there are none, others
 * take all places, and nobody would say when one is free. */
static void examine(struct selfcheck *check)
{
    while (check->suspects && look_into(check, check->suspects))
        drop_suspect(check);
    if (!check->examined)
        finish(check, !check->undecided && !check->suspects, NULL);
}

/* What one could not learn, the next ones will not either. */
static void give_up(struct selfcheck *check)
{
    check->undecided = true;
    drop_suspects(check);
}

/* A row that spells its key otherwise by now has changed since it was sampled. */
static void on_doubt(void *arg, int keyspace, struct span key, enum doubt_outcome outcome,
                     struct span other)
{
    struct selfcheck *check = arg;
    (void)other;
    check->examined--;
    if (outcome == DOUBT_CONFIRMED) {
        fail(check, keyspace, key);
        return;
    }
    if (outcome == DOUBT_UNDECIDED)
        give_up(check);
    examine(check);
}

/* ---- sampling ---- */

static void suspect_key(struct selfcheck *check, struct span key)
{
    struct suspect *suspect = xmalloc(sizeof *suspect + key.length);
    char *own = (char *)(suspect + 1);
    memcpy(own, key.at, key.length);
    *suspect = (struct suspect){check->suspects, (int)check->keyspace, {own, key.length}};
    check->suspects = suspect;
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
    check->rows++;
    if (!is_possible(check, (int)check->keyspace, buffer_span(&check->key)))
        suspect_key(check, buffer_span(&check->key));
}

static void sample(struct selfcheck *check);

/* A table that cannot be read does not keep the others from being looked at. */
static void on_sample(void *arg, const struct pg_answer *answer)
{
    struct selfcheck *check = arg;
    check->asking = false;
    if (check->cancelled) {
        selfcheck_free(check);
        return;
    }
    if (answer->outcome == PG_DONE)
        for (int row = 0; row < PQntuples(answer->result); row++)
            look_at_row(check, answer->result, row);
    else
        check->undecided = true;
    if (++check->keyspace < check->options.config->keyspace_count)
        sample(check);
    else
        examine(check);
}

static void sample(struct selfcheck *check)
{
    check->asking = true;
    pg_pool_submit(check->options.pool, check->options.first_statement + check->keyspace, NULL,
                   on_sample, check);
}

struct selfcheck *selfcheck_begin(const struct selfcheck_options *options)
{
    struct selfcheck *check = xcalloc(1, sizeof *check);
    check->options = *options;
    options->generation->references++;
    sample(check);
    return check;
}
