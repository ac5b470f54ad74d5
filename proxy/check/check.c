/* Two askers want the same findings, but not the same severity of one: a server that is down is an
 * error to `nestguard check`, and to `nestguard serve`, which waits for it, a warning.
 */
#include "check/check.h"

#include "check/check_cache.h"
#include "check/check_database.h"
#include "check/check_files.h"
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

int check_main(const char *file)
{
    struct problems problems = {0};
    struct config *config = NULL;
    struct versions versions;
    int status = config_load(&config, file, &problems);
    if (status == 0) {
        check_ports(config, &problems);
        ask_backends(config, PROBLEM_ERROR, &problems, &versions);
    }
    problems_print(&problems, stdout);
    problems_print_notes(&problems, stdout);
    if (status != 0)
        printf("cache and database were not asked: the file's errors come first\n");
    if (problems.count == problems.notes && status == 0)
        print_order(config, &versions);
    else
        print_counts(&problems);
    int exit_status = status != 0 || problems.errors > 0;
    config_destroy(config);
    problems_finish(&problems);
    return exit_status;
}
