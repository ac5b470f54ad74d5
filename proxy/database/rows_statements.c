#include "database/rows_statements.h"

#include "base/memory.h"
#include "database/keyspace_sql.h"

#include <stdlib.h>

/* What a log is followed of calls no function that could read a table. */
static char *confirm(const struct config *config, const struct keyspace *keyspace, size_t ways)
{
    return config->sync == SYNC_REPLICATION ? keyspace_sql_find(keyspace, ways)
                                            : keyspace_sql_confirm(keyspace, ways);
}

static struct pg_statement always_new(const char *sql, int params)
{
    return (struct pg_statement){.sql = sql, .params = params, .always_new = true};
}

void rows_statements_init(struct rows_statements *statements, const struct config *config)
{
    statements->count = config->keyspace_count * STATEMENTS;
    statements->at = xcalloc(statements->count, sizeof *statements->at);
    for (size_t i = 0; i < config->keyspace_count; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i];
        if (!keyspace_is_of_rows(keyspace)) /* nothing is ever asked of it */
            continue;
        int params = (int)keyspace->key.columns;
        struct pg_statement *own = &statements->at[i * STATEMENTS];
        size_t most = config->max_value;
        char *load = keyspace_sql_load(keyspace, most < ROW_SMALL ? most : ROW_SMALL);
        own[STATEMENT_LOAD] = (struct pg_statement){.sql = load, .params = params};
        own[STATEMENT_LOAD_ANEW] = always_new(load, params);
        own[STATEMENT_LOAD_LARGE] = always_new(keyspace_sql_load(keyspace, most), params);
        own[STATEMENT_LOAD_LARGE].large = true;
        own[STATEMENT_FIND] = always_new(keyspace_sql_find(keyspace, 1), params);
        own[STATEMENT_CONFIRM] = always_new(confirm(config, keyspace, 1), params);
        if (params > 1) /* of one column there is one way */
            own[STATEMENT_CONFIRM_WAYS] =
                always_new(confirm(config, keyspace, ROW_WAYS_MAX), ROW_WAYS_MAX * params);
        if (keyspace->query) /* the two below are never asked */
            continue;
        own[STATEMENT_REMOVE] = always_new(keyspace_sql_remove(keyspace), params);
        own[STATEMENT_ACCEPTS] = always_new(keyspace_sql_accepts(keyspace), params);
    }
}

void rows_statements_finish(struct rows_statements *statements)
{
    for (size_t i = 0; i < statements->count; i++)
        if (i % STATEMENTS != STATEMENT_LOAD_ANEW) /* which is that of STATEMENT_LOAD */
            free((char *)statements->at[i].sql);
    free(statements->at);
    *statements = (struct rows_statements){0};
}
