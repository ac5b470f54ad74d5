/* A build counts rows where it has no good estimate; here the planner's word will do, which costs
 * the server nothing, whatever a table, a condition or a query is like. So what it leads to is a
 * warning: it may be wrong.
 */
#include "check/check_memory.h"

#include "base/memory.h"
#include "base/text/byte_unit.h"
#include "build/filter_size.h"
#include "database/keyspace_sql.h"

#include <jansson.h>
#include <stdlib.h>

enum { MEGABYTE = 1024 * 1024 };

/* What the planner says of the whole plan; 0: it does not. */
static uint64_t rows_of_plan(const char *text)
{
    json_t *plans = json_loads(text, 0, NULL);
    const json_t *plan = json_object_get(json_array_get(plans, 0), "Plan");
    double rows = json_number_value(json_object_get(plan, "Plan Rows"));
    json_decref(plans);
    return rows > 0 ? (uint64_t)rows : 0;
}

/* 0 where it cannot be asked: what is wrong there has been found by others. */
static uint64_t estimate_rows(const struct keyspace *keyspace, struct questions *questions)
{
    struct pg_error error;
    char *rows = keyspace_sql_rows(keyspace);
    char *sql = keyspace->where ? xasprintf("EXPLAIN (FORMAT JSON) SELECT 1 FROM %s WHERE (%s\n)",
                                            rows, keyspace->where)
                                : xasprintf("EXPLAIN (FORMAT JSON) SELECT 1 FROM %s", rows);
    PGresult *plan = questions_ask(questions, sql, 0, NULL, &error);
    uint64_t count = plan && PQntuples(plan) ? rows_of_plan(answer_text(plan, 0, 0)) : 0;
    PQclear(plan);
    free(sql);
    free(rows);
    return count;
}

/* Filters take no memory before they are written to. */
static double bytes_for(const struct config *config, size_t keyspace, uint64_t rows)
{
    struct filter *filter = NULL;
    struct pg_error error;
    double bytes = 0;
    size_t length = 0;
    if (filter_for(&filter, config, keyspace, rows, 0, &error) == 0)
        bytes = (double)filter_stats(filter).bytes;
    struct bitmap *bitmap = filter_size_bitmap(config, keyspace, rows, 0);
    if (bitmap)
        bitmap_bytes(bitmap, &length);
    bitmap_destroy(bitmap);
    filter_destroy(filter);
    return bytes + (double)length;
}

/* With a quarter more for rows that come, in whole megabytes. */
static void report(const struct config *config, uint64_t rows, double bytes,
                   struct problems *problems)
{
    const char *has_unit, *needed_unit;
    double has = byte_unit((double)config->max_filter_memory, &has_unit);
    double needed = byte_unit(bytes, &needed_unit);
    char *remedy =
        xasprintf("max_filter_memory: %llumb", (unsigned long long)(bytes * 1.25 / MEGABYTE) + 1);
    problems_add(problems, PROBLEM_WARNING, config->file, remedy,
                 "max_filter_memory is %.1f %s, and the filters need about %.1f %s for the rows "
                 "that there are by now, about %llu: a keyspace that finds no room is not guarded",
                 has, has_unit, needed, needed_unit, (unsigned long long)rows);
    free(remedy);
}

void check_memory(const struct config *config, size_t beside, struct questions *questions,
                  struct problems *problems)
{
    struct config unbound = *config;
    uint64_t sum = 0;
    double bytes = (double)beside;
    unbound.max_filter_memory = 0;
    if (!config->max_filter_memory)
        return;
    for (size_t i = 0; i < config->keyspace_count; i++) {
        if (!keyspace_has_rows(&config->keyspaces[i]))
            continue;
        uint64_t rows = estimate_rows(&config->keyspaces[i], questions);
        bytes += rows ? bytes_for(&unbound, i, rows) : 0;
        sum += rows;
    }
    if (bytes > (double)config->max_filter_memory)
        report(config, sum, bytes, problems);
}
