/* Two askers want the same findings, but not the same severity of one: a server that is down is an
 * error to `nestguard check`, and to `nestguard serve`, which waits for it, a warning.
 */
#include "check/check.h"

#include "base/text/byte_unit.h"
#include "check/check_cache.h"
#include "check/check_database.h"
#include "check/check_files.h"
#include "check/check_json.h"
#include "check/check_ports.h"
#include "check/check_sources.h"
#include "check/check_sql.h"
#include <stdio.h>

/* What both askers want to know: the limits of this process, the cache, the database. */
static struct check_reach ask_backends(const struct config *config,
                                       const struct database_check *how, struct problems *problems,
                                       char cache[64], char database[64])
{
    struct check_reach reach = {0};
    check_files(config, problems);
    if (!config->lacks_cache)
        reach.cache = check_cache(config, how->down, problems, cache);
    if (!config->lacks_database)
        reach.database = check_database(config, how, problems, database);
    return reach;
}

struct check_reach check_backends(const struct config *config, struct problems *problems)
{
    char cache[64], database[64];
    const struct database_check how = {.down = PROBLEM_WARNING};
    return ask_backends(config, &how, problems, cache, database);
}

static void print_count(size_t count, const char *what, const char *end)
{
    printf("%zu %s%s%s", count, what, count == 1 ? "" : "s", end);
}

static void print_order(const struct check_result *result)
{
    const char *unit;
    double memory = byte_unit((double)result->config->max_client_memory, &unit);
    printf("clients together may take %.1f %s of memory (max_client_memory)\n", memory, unit);
    printf("everything is in order: ");
    print_count(result->config->keyspace_count, "keyspace", ", ");
    if (result->config->database)
        printf("PostgreSQL %s, ", result->database);
    printf("Redis %s\n", result->cache[0] ? result->cache : "(it does not tell its version)");
}

static void print_counts(const struct problems *problems)
{
    print_count(problems->errors, "error", ", ");
    print_count(problems->count - problems->errors - problems->notes, "warning", "\n");
}

static bool is_whole(const struct check_result *result)
{
    return result->config && !result->config->is_draft;
}

/* What the file's errors have kept from being looked at. */
static void print_unasked(const struct check_result *result)
{
    const struct config *config = result->config;
    bool cache = config && !config->lacks_cache, database = config && !config->lacks_database;
    if (!cache || !database)
        printf("%s not asked: the file's errors come first\n", cache ? "the database was"
                                                               : database
                                                                   ? "the cache was"
                                                                   : "cache and database were");
    if (config && config->left_out) {
        print_count(config->left_out, "keyspace", " not looked at: ");
        printf("the file does not say what rows and keys are meant\n");
    }
}

static void print_for_people(const struct check_result *result)
{
    const struct problems *problems = &result->problems;
    check_sql_print(problems, stdout);
    problems_print_notes(problems, stdout);
    print_unasked(result);
    if (is_whole(result) && problems->count == problems->notes)
        print_order(result);
    else
        print_counts(problems);
}

static void print_json(const struct check_result *result)
{
    json_t *json = check_json(&result->problems, result->cache, result->database);
    json_dumpf(json, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(json);
}

/* `serve` has no use for check_ports(): it opens them. It looks at files of keys again and again.
 */
void check_run(struct check_result *result, const char *file)
{
    struct problems *problems = &result->problems;
    *result = (struct check_result){0};
    config_load_draft(&result->config, file, problems);
    if (!result->config)
        return;
    check_ports(result->config, problems);
    const struct database_check how = {.down = PROBLEM_ERROR,
                                       .beside = check_sources(result->config, problems)};
    ask_backends(result->config, &how, problems, result->cache, result->database);
}

int check_print(const struct check_result *result, bool as_json)
{
    if (as_json)
        print_json(result);
    else
        print_for_people(result);
    return result->problems.errors > 0;
}

void check_finish(struct check_result *result)
{
    config_destroy(result->config);
    problems_finish(&result->problems);
}
