/* Why rows that were inserted since the snapshot cannot make the guard build for ever: what is read
 * and what is asked for are held against the same number, half of what the generation before has.
 * Rows that the question finds are there when the next snapshot is taken, which is after it: unless
 * they are deleted by then, that one reads at least so many, and no question follows. A table that
 * goes up and down across that line passes as soon as the snapshot finds it above, or the question
 * below: only the one order, below and then above, has it built anew; of two moments of a table
 * that has no idea of our builds, that is at most one time in four. (The line itself moves while
 * the generation before follows the log, towards the truth.) Meanwhile that generation guards, or
 * nothing does.
 *
 * The question costs no more than the count at a build's beginning: it ends with the row that
 * decides.
 */
#include "build/second_look.h"

#include "database/keyspace_sql.h"
#include "database/session_value.h"

#include <errno.h>
#include <stdlib.h>

/* So many at least are believed. */
static uint64_t enough_rows(uint64_t replaced)
{
    return replaced ? replaced - replaced / 2 : 1;
}

/* *rows: `most`, or fewer if there are no more. */
static int count_to(struct pg_session *session, const struct keyspace *keyspace, uint64_t most,
                    uint64_t *rows, struct pg_error *error)
{
    char *sql = keyspace_sql_count_to(keyspace, most);
    int status = session_number(rows, session, sql, NULL, error);
    free(sql);
    return status;
}

static int look_at(struct pg_session *session, const struct keyspace *keyspace, uint64_t read,
                   uint64_t replaced, struct pg_error *error)
{
    uint64_t enough = enough_rows(replaced), now = 0;
    if (read >= enough)
        return 0;
    int status = count_to(session, keyspace, enough, &now, error);
    if (status || now < enough)
        return status;
    pg_error_say(
        error,
        "keyspace %s: %llu rows were read, the filter before has %llu, and asked once more "
        "the database has at least %llu: was the table rewritten meanwhile?",
        keyspace->name, (unsigned long long)read, (unsigned long long)replaced,
        (unsigned long long)now);
    return -ESTALE;
}

int second_look(struct pg_session *session, const struct config *config,
                const struct generation *built, const uint64_t *replaced, size_t *keyspace,
                struct pg_error *error)
{
    int status = 0;
    for (size_t i = 0; i < config->keyspace_count && !status; i++)
        if (built->filters[(*keyspace = i)])
            status = look_at(session, &config->keyspaces[i], generation_rows(built, i), replaced[i],
                             error);
    return status;
}
