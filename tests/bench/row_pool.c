/* See row_pool.h. */
#include "row_pool.h"

#include "client.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

struct session {
    PGconn *pq;
    struct lookup *lookup; /* NULL when it is free */
};

struct row_pool {
    row_pool_row_fn *on_row;
    struct lookup *first, *last; /* those who wait for a session */
    unsigned size;
    struct session sessions[];
};

static _Noreturn void fail_session(const struct session *session)
{
    fprintf(stderr, "lookups: database: %s", PQerrorMessage(session->pq));
    exit(1);
}

static void session_open(struct session *session, const char *conninfo)
{
    session->pq = PQconnectdb(conninfo);
    if (PQstatus(session->pq) != CONNECTION_OK)
        fail_session(session);
    PGresult *result =
        PQprepare(session->pq, "row", "SELECT payload FROM items WHERE id = $1", 1, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_session(session);
    PQclear(result);
}

struct row_pool *row_pool_create(const char *conninfo, unsigned size, row_pool_row_fn *on_row)
{
    struct row_pool *pool = need(calloc(1, sizeof *pool + size * sizeof pool->sessions[0]));
    pool->on_row = on_row;
    pool->size = size;
    for (unsigned i = 0; i < size; i++)
        session_open(&pool->sessions[i], conninfo);
    return pool;
}

void row_pool_destroy(struct row_pool *pool)
{
    if (!pool)
        return;
    for (unsigned i = 0; i < pool->size; i++)
        PQfinish(pool->sessions[i].pq);
    free(pool);
}

int row_pool_fd(const struct row_pool *pool, unsigned i)
{
    return PQsocket(pool->sessions[i].pq);
}

/* The request is small and the last one has been answered: the socket takes it whole. */
static void session_ask(struct session *session, struct lookup *lookup)
{
    char id[32];
    const char *values[] = {id};
    snprintf(id, sizeof id, "%" PRIu64, lookup->id);
    session->lookup = lookup;
    if (!PQsendQueryPrepared(session->pq, "row", 1, values, NULL, NULL, 0) ||
        PQflush(session->pq) != 0)
        fail_session(session);
}

void row_pool_ask(struct row_pool *pool, struct lookup *lookup)
{
    for (unsigned i = 0; i < pool->size; i++) {
        if (!pool->sessions[i].lookup) {
            session_ask(&pool->sessions[i], lookup);
            return;
        }
    }
    lookup->next = NULL;
    if (pool->first)
        pool->last->next = lookup;
    else
        pool->first = lookup;
    pool->last = lookup;
}

static void session_take(struct row_pool *pool, struct session *session, const PGresult *result)
{
    struct lookup *lookup = session->lookup;
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_session(session);
    pool->on_row(lookup, PQntuples(result) ? PQgetvalue(result, 0, 0) : NULL);
}

void row_pool_read(struct row_pool *pool, unsigned i)
{
    struct session *session = &pool->sessions[i];
    PGresult *result;
    if (!PQconsumeInput(session->pq))
        fail_session(session);
    while (session->lookup && !PQisBusy(session->pq)) {
        if ((result = PQgetResult(session->pq))) {
            session_take(pool, session, result);
            PQclear(result);
            continue;
        }
        session->lookup = NULL;
        if (pool->first) {
            struct lookup *next = pool->first;
            pool->first = next->next;
            session_ask(session, next);
        }
    }
}
