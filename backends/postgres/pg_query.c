/* A query is one allocation, texts included:
 *
 *   struct pg_query | values[0] values[1] ... | text NUL text NUL ...
 */
#include "postgres/pg_query.h"
#include "net/allocate.h"

struct pg_query *pg_query_create(size_t statement, int count, const char *const *values,
                                 pg_answer_cb done, void *arg)
{
    size_t pointers = (size_t)count * sizeof(char *), bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += values[i] ? strlen(values[i]) + 1 : 0;
    struct pg_query *query = allocate(1, sizeof *query + pointers + bytes);
    char *text = (char *)query->values + pointers;
    for (int i = 0; i < count; i++) {
        if (!values[i])
            continue;
        size_t size = strlen(values[i]) + 1;
        query->values[i] = memcpy(text, values[i], size);
        text += size;
    }
    query->statement = statement;
    query->count = count;
    query->done = done;
    query->arg = arg;
    return query;
}

void pg_query_end(struct pg_query *query, enum pg_outcome outcome, PGresult *result,
                  const struct pg_error *error)
{
    query->outcome = outcome;
    query->result = result;
    if (error)
        query->error = memcpy(allocate(1, sizeof *error), error, sizeof *error);
}

void pg_query_deliver(struct pg_query *query)
{
    struct pg_answer answer = {.outcome = query->outcome, .early = query->early};
    if (query->outcome == PG_DONE) {
        answer.result = query->result;
        answer.owner = &query->result;
    }
    if (query->error)
        answer.error = *query->error;
    query->done(query->arg, &answer);
    PQclear(query->result);
    free(query->error);
    free(query);
}

void pg_queries_append(struct pg_queries *queries, struct pg_query *query)
{
    query->next = NULL;
    if (queries->first)
        queries->last->next = query;
    else
        queries->first = query;
    queries->last = query;
}

struct pg_query *pg_queries_take(struct pg_queries *queries)
{
    struct pg_query *query = queries->first;
    if (query)
        queries->first = query->next;
    return query;
}
