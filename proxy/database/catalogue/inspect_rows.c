/* A view has no index that makes a key mean one row: the rows that it has now are asked. That may
 * take longer than a question may, and then nothing is known; tomorrow's rows may be others. */
#include "database/catalogue/subject.h"

#include "database/keyspace_sql.h"
#include "database/repeated_key.h"

#include <stdlib.h>

void inspect_unique_rows(const struct subject *subject)
{
    struct pg_error error;
    char *sql = keyspace_sql_twice(subject->keyspace);
    PGresult *result = questions_ask(subject->questions, sql, 0, NULL, &error);
    char *key = result ? repeated_key_of(result, subject->keyspace) : NULL;
    if (key)
        subject_report(subject, PROBLEM_WARNING, NULL,
                       "key: several rows of %s have the key %s: a load answers with the one whose "
                       "value comes first, byte by byte",
                       subject_table(subject), key);
    else if (!result && !questions_lost(subject->questions))
        subject_report(subject, PROBLEM_WARNING, NULL,
                       "key: whether each key has one row of %s could not be found out: %s",
                       subject_table(subject), error.text);
    PQclear(result);
    free(key);
    free(sql);
}
