#include "check/check_keys.h"

#include "base/memory.h"
#include "check/check_session.h"
#include "database/keyspace_sql.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <sys/random.h>

static char *render(const struct keyspace *keyspace, const struct span *columns)
{
    struct buffer text = {0};
    key_template_render(&keyspace->key, columns, &text);
    return buffer_string(&text);
}

/* A pattern that is narrower than the template mostly begins behind it with a class of letters, or
 * of digits: what begins otherwise, and goes on otherwise, tells. */
char *check_keys_invent(const struct keyspace *keyspace, enum invented_key kind)
{
    uint64_t random = 0;
    char text[24];
    struct span columns[KEY_COLUMNS_MAX];
    if (getrandom(&random, sizeof random, 0) < 0)
        random = 0;
    snprintf(text, sizeof text, "9%020llu", (unsigned long long)random);
    for (char *at = text; *at && kind == INVENTED_LETTERS; at++)
        *at = (char)('Z' - (*at - '0'));
    for (size_t i = 0; i < KEY_COLUMNS_MAX; i++)
        columns[i] = span_of(text);
    return kind == INVENTED_PUBLISHED ? xasprintf("%s:%s", keyspace->publish.key, text)
                                      : render(keyspace, columns);
}

static void take_rows(struct check_keys *keys, const PGresult *rows)
{
    struct span columns[KEY_COLUMNS_MAX];
    for (int row = 0; row < PQntuples(rows); row++) {
        for (int i = 0; i < PQnfields(rows); i++)
            columns[i] = span_of(PQgetvalue(rows, row, i));
        keys->at[keys->count++] = render(keys->keyspace, columns);
    }
}

void check_keys_of_rows(struct check_keys *keys, const struct config *config,
                        const struct keyspace *keyspace)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    PGresult *rows = NULL;
    *keys = (struct check_keys){.keyspace = keyspace};
    char *sql = keyspace_sql_sample(keyspace, CHECK_KEYS_MAX);
    if (config->database && !check_session_open(&session, config->database, NULL, &error) &&
        !pg_session_exec(session, sql, 0, NULL, &rows, &error))
        take_rows(keys, rows);
    PQclear(rows);
    pg_session_close(session);
    free(sql);
}

void check_keys_published(struct check_keys *keys, const struct keyspace *keyspace)
{
    static const char *const one[] = {"", ":info", ":lease"};
    static const char *const grown[] = {"-0", ":info", ":lease", "-cursor"};
    bool grows = keyspace->publish.grow;
    *keys = (struct check_keys){.keyspace = keyspace, .are_published = true};
    for (size_t i = 0; i < (grows ? sizeof grown / sizeof *grown : sizeof one / sizeof *one); i++)
        keys->at[keys->count++] =
            xasprintf("%s%s", keyspace->publish.key, grows ? grown[i] : one[i]);
}

void check_keys_finish(struct check_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        free(keys->at[i]);
    *keys = (struct check_keys){.count = 0};
}
