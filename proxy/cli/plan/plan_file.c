/* Sizes are those that the builder makes: it is asked for the filters themselves, which take no
 * memory before they are written to.
 *
 * The rows are counted as the builder counts them, over one session, one keyspace after the other.
 * The database may be large, and is asked for a count only where its statistics are not to be
 * relied on; whoever has none, or no access, says how many there are (--keys).
 */
#include "cli/plan/plan_parts.h"

#include "build/filter_size.h"
#include "cli/plan/plan_print.h"
#include "cli/terminal/progress.h"
#include "config/config.h"
#include "database/keyspace_sql.h"
#include "database/row_count.h"
#include "database/session_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECT_SECONDS = 5, GROWN = 3 };

/* Percent of the rows that there are. */
static const unsigned growth[GROWN] = {150, 200, 1000};

struct planned {
    uint64_t rows;            /* as they are now */
    double now, grown[GROWN]; /* bytes with them, and with the percentages of them above */
};

/* ---- rows ---- */

/* Finds it as all SQL of the guard does, and says no in the server's own words. These four return 0
 * or a negative errno. */
static int find_table(struct pg_session *session, const struct keyspace *keyspace, uint32_t *table,
                      struct pg_error *error)
{
    uint64_t oid = 0;
    char *name = keyspace_sql_rows(keyspace);
    int status = session_number(&oid, session, "SELECT $1::regclass::oid", name, error);
    *table = (uint32_t)oid;
    free(name);
    return status;
}

/* What statistics know is of the whole table: nothing of a condition. An estimate of 0 is none. */
static int count_rows(struct pg_session *session, const struct keyspace *keyspace, uint64_t *rows,
                      struct pg_error *error)
{
    uint32_t table;
    int status = keyspace->query ? 0 : find_table(session, keyspace, &table, error);
    *rows = 0;
    if (!status && !keyspace->where && !keyspace->query)
        status = row_count_estimate(rows, session, table, error);
    if (!status && !*rows)
        status = row_count(rows, session, keyspace, error);
    return status;
}

static int ask_rows(struct pg_session *session, const struct keyspace *keyspace, uint64_t *rows)
{
    struct pg_error error;
    char what[200];
    snprintf(what, sizeof what, "counting the rows of %s", keyspace->name);
    progress_wait_begin(what);
    int status = count_rows(session, keyspace, rows, &error);
    progress_wait_end();
    if (status)
        fprintf(stderr, "nestguard plan: keyspace %s: its rows could not be counted: %s\n",
                keyspace->name, error.text);
    return status;
}

static int open_session(struct pg_session **session, const struct config *config)
{
    const struct pg_session_options options = {.conninfo = config->database,
                                               .application = "nestguard plan",
                                               .connect_timeout = CONNECT_SECONDS};
    struct pg_error error;
    progress_wait_begin("connecting to the database");
    int status = pg_session_open(session, &options, &error);
    progress_wait_end();
    if (status)
        fprintf(stderr,
                "nestguard plan: the database cannot be asked: %s; --keys N plans for N rows in "
                "each keyspace without it\n",
                error.text);
    return status;
}

/* ---- sizes ---- */

static int size_of(const struct config *config, size_t keyspace, uint64_t rows, double *bytes)
{
    struct filter *filter;
    struct pg_error error;
    int status = filter_for(&filter, config, keyspace, rows, 0, &error);
    if (status) {
        fprintf(stderr, "nestguard plan: %s\n", error.text);
        return status;
    }
    *bytes = (double)filter_stats(filter).bytes;
    filter_destroy(filter);
    return 0;
}

/* Of what is published: in the guard's memory, and as much in the cache. */
static int size_of_bitmap(const struct config *config, size_t keyspace, uint64_t rows,
                          double *bytes)
{
    const struct keyspace *of = &config->keyspaces[keyspace];
    struct bitmap *bitmap = filter_size_bitmap(config, keyspace, rows, 0);
    if (!bitmap) {
        fprintf(stderr,
                "nestguard plan: keyspace %s: there can be no bitmap of %llu rows to publish\n",
                of->name, (unsigned long long)rows);
        return -E2BIG;
    }
    size_t length;
    bitmap_bytes(bitmap, &length);
    *bytes = (double)length;
    bitmap_destroy(bitmap);
    return 0;
}

/* One of the two above: 0 and *bytes, or a negative errno that the user was told. */
typedef int (*sizer)(const struct config *, size_t keyspace, uint64_t rows, double *bytes);

static int plan_sizes(const struct config *config, size_t keyspace, sizer size,
                      struct planned *planned)
{
    int status = size(config, keyspace, planned->rows, &planned->now);
    for (size_t i = 0; i < GROWN && !status; i++)
        status = size(config, keyspace, planned->rows * growth[i] / 100, &planned->grown[i]);
    return status;
}

/* ---- the table ---- */

static void print_memory(double bytes)
{
    char text[PLAN_FIGURE];
    plan_memory_text(&(struct plan_memory){bytes, false}, text);
    printf("  %12s", text);
}

/* While it is renewed there are two: the one in force, and the next. */
static void print_line(const char *name, const char *kind, const struct planned *planned)
{
    char rows[PLAN_FIGURE];
    plan_count_text(planned->rows, rows);
    printf("%-20s  %-20s  %16s", name, kind, rows);
    print_memory(planned->now);
    print_memory(2 * planned->now);
    for (size_t i = 0; i < GROWN; i++)
        print_memory(planned->grown[i]);
}

static void print_head(void)
{
    printf("%-20s  %-20s  %16s  %12s  %12s", "keyspace", "filter", "rows", "now", "while renewed");
    for (size_t i = 0; i < GROWN; i++)
        printf("  %8s %g", "rows x", growth[i] / 100.0);
    printf("  %8s  %s\n", "bits/key", "false positives at most");
}

static void end_line(const struct planned *planned, double rate)
{
    if (planned->rows)
        printf("  %8.2f", 8 * planned->now / (double)planned->rows);
    else
        printf("  %8s", "-");
    printf("  %g\n", rate);
    fflush(stdout);
}

static void add(struct planned *sum, const struct planned *one)
{
    sum->rows += one->rows;
    sum->now += one->now;
    for (size_t i = 0; i < GROWN; i++)
        sum->grown[i] += one->grown[i];
}

/* Its rows are those of the keyspace: they count once. */
static int print_published(const struct config *config, size_t at, struct planned *sum,
                           uint64_t rows)
{
    const struct publish *publish = &config->keyspaces[at].publish;
    struct planned planned = {.rows = rows};
    if (!publish->key)
        return 0;
    if (plan_sizes(config, at, size_of_bitmap, &planned))
        return 1;
    print_line("  published", bitmap_format_name(publish->format), &planned);
    end_line(&planned, publish->false_positive_rate);
    planned.rows = 0;
    add(sum, &planned);
    return 0;
}

/* 0, or 1 when its rows or sizes could not be had: the others are printed all the same. */
static int print_keyspace(const struct config *config, size_t at, struct pg_session *session,
                          uint64_t keys, struct planned *sum)
{
    const struct keyspace *keyspace = &config->keyspaces[at];
    struct planned planned = {.rows = keys};
    if ((session && ask_rows(session, keyspace, &planned.rows)) ||
        plan_sizes(config, at, size_of, &planned))
        return 1;
    print_line(keyspace->name, filter_kind_name(keyspace->filter), &planned);
    end_line(&planned, keyspace->false_positive_rate);
    add(sum, &planned);
    return print_published(config, at, sum, planned.rows);
}

/* The session is NULL where `keys` are supposed. A sum that lacks a keyspace would be read as the
 * whole: then there is none. */
static int print_keyspaces(const struct config *config, struct pg_session *session, uint64_t keys)
{
    struct planned sum = {0};
    struct config unbound = *config; /* what would be needed is told, however much that is */
    int status = 0;
    unbound.max_filter_memory = 0;
    print_head();
    for (size_t i = 0; i < config->keyspace_count; i++)
        status |= print_keyspace(&unbound, i, session, keys, &sum);
    if (config->keyspace_count > 1 && !status) {
        print_line("together", "", &sum);
        putchar('\n');
    }
    puts("\na new generation is built beside the old one: for that time a keyspace takes twice as "
         "much;\nwhat is published takes as much again in the cache");
    if (config->max_filter_memory && sum.now > (double)config->max_filter_memory)
        puts("max_filter_memory is less than they take now");
    return status;
}

int plan_file(const char *file, uint64_t keys)
{
    struct problems problems = {0};
    struct config *config = NULL;
    struct pg_session *session = NULL;
    int status = config_load(&config, file, &problems);
    if (status)
        problems_print(&problems, stderr);
    if (!status && !keys)
        status = open_session(&session, config);
    if (!status)
        status = print_keyspaces(config, session, keys);
    pg_session_close(session);
    config_destroy(config);
    problems_finish(&problems);
    return status ? 1 : 0;
}
