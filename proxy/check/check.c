/* Two askers want the same findings, but not the same severity of one: a server that is down is an
 * error to `nestguard check`, and to `nestguard serve`, which waits for it, a warning.
 */
#include "check/check.h"

#include "check/check_cache.h"
#include "check/check_database.h"
#include "check/check_files.h"
#include "check/check_json.h"
#include "check/check_ports.h"
#include <stdio.h>

struct versions {
    char cache[64], database[64];
};

static struct check_reach ask_backends(const struct config *config, enum problem_level down,
                                       struct problems *problems, struct versions *versions)
{
    struct check_reach reach;
    check_files(config, problems);
    reach.cache = check_cache(config, down, problems, versions->cache);
    reach.database = check_database(config, down, problems, versions->database);
    return reach;
}

struct check_reach check_backends(const struct config *config, struct problems *problems)
{
    struct versions versions;
    return ask_backends(config, PROBLEM_WARNING, problems, &versions);
}

static void print_count(size_t count, const char *what, const char *end)
{
    printf("%zu %s%s%s", count, what, count == 1 ? "" : "s", end);
}

static void print_order(const struct config *config, const struct versions *versions)
{
    printf("clients together may take %zu MB of memory (max_client_memory)\n",
           config->max_client_memory / 1024 / 1024);
    printf("everything is in order: ");
    print_count(config->keyspace_count, "keyspace", ", ");
    printf("PostgreSQL %s, Redis %s\n", versions->database, versions->cache);
}

static void print_counts(const struct problems *problems)
{
    print_count(problems->errors, "error", ", ");
    print_count(problems->count - problems->errors - problems->notes, "warning", "\n");
}

static void print_for_people(const struct config *config, const struct problems *problems,
                             const struct versions *versions)
{
    problems_print(problems, stdout);
    problems_print_notes(problems, stdout);
    if (!config)
        printf("cache and database were not asked: the file's errors come first\n");
    if (config && problems->count == problems->notes)
        print_order(config, versions);
    else
        print_counts(problems);
}

static void print_json(const struct problems *problems, const struct versions *versions)
{
    json_t *json = check_json(problems, versions->cache, versions->database);
    json_dumpf(json, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(json);
}

int check_main(const char *file, bool as_json)
{
    struct problems problems = {0};
    struct config *config = NULL;
    struct versions versions = {0};
    if (config_load(&config, file, &problems) == 0) {
        check_ports(config, &problems);
        ask_backends(config, PROBLEM_ERROR, &problems, &versions);
    }
    if (as_json)
        print_json(&problems, &versions);
    else
        print_for_people(config, &problems, &versions);
    int exit_status = !config || problems.errors > 0;
    config_destroy(config);
    problems_finish(&problems);
    return exit_status;
}
