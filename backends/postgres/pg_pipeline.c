/* A statement is prepared when a query first needs it, in a trip right before the query's own;
 * nobody waits for its answer:
 *
 *   Parse s0_1   Bind s0_1   Bind s0_1        s0: statement number 0; 1: its first version
 *
 * If the server refuses the Parse, the queries behind it fail with 26000 and get the Parse's
 * reason. If a statement has gone stale, its version is abandoned and the query is sent once more,
 * behind a Parse of the next version.
 */
#include "postgres/pg_pipeline.h"
#include "net/allocate.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

enum trip_kind { TRIP_SETTING, TRIP_PREPARE, TRIP_QUERY };

struct trip {
    struct trip *next;
    enum trip_kind kind;
    uint64_t deadline;
    size_t statement;       /* but for TRIP_SETTING */
    unsigned version;       /* of the statement when this was sent */
    struct pg_query *query; /* TRIP_QUERY */
    PGresult *result;       /* the last one, or the first that is an error */
};

/* A statement on this connection. A version that went bad is abandoned: the next one gets another
 * name, so that answers still under way cannot be mistaken for its own. */
struct prepared {
    unsigned version;
    bool sent;                /* and, as far as is known, accepted */
    struct pg_error *refused; /* why it was not accepted the last time */
};

struct pg_pipeline {
    PGconn *pq;
    const struct pg_statements *statements;
    unsigned edition; /* of them, that was looked at last */
    struct prepared *prepared;
    size_t prepared_count;
    struct trip *first, *last;
    size_t depth, large; /* trips; those of them whose answer is */
    struct pg_queries *ended;
};

struct pg_pipeline *pg_pipeline_create(const struct pg_statements *statements,
                                       struct pg_queries *ended)
{
    struct pg_pipeline *pipeline = allocate(1, sizeof *pipeline);
    pipeline->statements = statements;
    pipeline->edition = statements->edition;
    pipeline->prepared_count = statements->count;
    pipeline->prepared = allocate(statements->count, sizeof *pipeline->prepared);
    pipeline->ended = ended;
    return pipeline;
}

/* Another connection knows none of them. */
static void forget_statements(struct pg_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->prepared_count; i++) {
        free(pipeline->prepared[i].refused);
        pipeline->prepared[i] = (struct prepared){0};
    }
}

/* What was prepared of an earlier edition is abandoned; its answers still come. */
static void take_edition(struct pg_pipeline *pipeline)
{
    size_t count = pipeline->statements->count;
    struct prepared *prepared = allocate(count, sizeof *prepared);
    memcpy(prepared, pipeline->prepared, pipeline->prepared_count * sizeof *prepared);
    for (size_t i = 0; i < pipeline->prepared_count; i++)
        prepared[i].sent = false;
    free(pipeline->prepared);
    pipeline->prepared = prepared;
    pipeline->prepared_count = count;
    pipeline->edition = pipeline->statements->edition;
}

void pg_pipeline_destroy(struct pg_pipeline *pipeline)
{
    assert(pipeline->depth == 0);
    forget_statements(pipeline);
    free(pipeline->prepared);
    free(pipeline);
}

int pg_pipeline_attach(struct pg_pipeline *pipeline, PGconn *pq)
{
    pipeline->pq = pq;
    return PQsetnonblocking(pq, 1) == 0 && PQenterPipelineMode(pq) ? 0 : -ECONNRESET;
}

/* Results come in the order of sending, so the first trip is the one that libpq now reads. */
static struct trip *append_trip(struct pg_pipeline *pipeline, enum trip_kind kind,
                                uint64_t deadline)
{
    struct trip *trip = allocate(1, sizeof *trip);
    trip->kind = kind;
    trip->deadline = deadline;
    if (pipeline->first)
        pipeline->last->next = trip;
    else
        pipeline->first = trip;
    pipeline->last = trip;
    pipeline->depth++;
    return trip;
}

static struct trip *append_query(struct pg_pipeline *pipeline, struct pg_query *query)
{
    struct trip *trip = append_trip(pipeline, TRIP_QUERY, query->deadline);
    trip->statement = query->statement;
    trip->query = query;
    pipeline->large += query->large;
    return trip;
}

static struct trip *take_trip(struct pg_pipeline *pipeline)
{
    struct trip *trip = pipeline->first;
    pipeline->first = trip->next;
    pipeline->depth--;
    pipeline->large -= trip->query && trip->query->large;
    return trip;
}

static void free_trip(struct trip *trip)
{
    PQclear(trip->result);
    free(trip);
}

static int sync_trip(struct pg_pipeline *pipeline, int sent)
{
    return sent && PQpipelineSync(pipeline->pq) ? 0 : -ECONNRESET;
}

int pg_pipeline_set_timeout(struct pg_pipeline *pipeline, uint64_t timeout_ms, uint64_t deadline)
{
    char sql[200];
    unsigned long long most = timeout_ms < INT_MAX ? timeout_ms : INT_MAX;
    snprintf(sql, sizeof sql,
             "SELECT pg_catalog.set_config('statement_timeout', '%llu', false),"
             " pg_catalog.set_config('max_parallel_workers_per_gather', '0', false)",
             most);
    append_trip(pipeline, TRIP_SETTING, deadline);
    return sync_trip(pipeline, PQsendQueryParams(pipeline->pq, sql, 0, NULL, NULL, NULL, NULL, 0));
}

struct statement_name {
    char text[48];
};

static struct statement_name name_of(size_t statement, unsigned version)
{
    struct statement_name name;
    snprintf(name.text, sizeof name.text, "s%zu_%u", statement, version);
    return name;
}

/* Optimistic: taken for prepared from here on, until the server says otherwise. */
static int send_prepare(struct pg_pipeline *pipeline, size_t statement, uint64_t deadline)
{
    struct prepared *prepared = &pipeline->prepared[statement];
    struct trip *trip = append_trip(pipeline, TRIP_PREPARE, deadline);
    trip->statement = statement;
    trip->version = ++prepared->version;
    prepared->sent = true;
    return sync_trip(pipeline, PQsendPrepare(pipeline->pq, name_of(statement, trip->version).text,
                                             pipeline->statements->at[statement].sql, 0, NULL));
}

static int send_new(struct pg_pipeline *pipeline, struct pg_query *query)
{
    append_query(pipeline, query);
    return sync_trip(pipeline,
                     PQsendQueryParams(pipeline->pq, pipeline->statements->at[query->statement].sql,
                                       query->count, NULL, query->values, NULL, NULL, 0));
}

int pg_pipeline_query(struct pg_pipeline *pipeline, struct pg_query *query)
{
    if (pipeline->edition != pipeline->statements->edition)
        take_edition(pipeline);
    if (pipeline->statements->at[query->statement].always_new)
        return send_new(pipeline, query);
    struct prepared *prepared = &pipeline->prepared[query->statement];
    int rc = prepared->sent ? 0 : send_prepare(pipeline, query->statement, query->deadline);
    struct trip *trip = append_query(pipeline, query);
    trip->version = prepared->version;
    if (rc < 0)
        return rc;
    return sync_trip(pipeline,
                     PQsendQueryPrepared(pipeline->pq, name_of(trip->statement, trip->version).text,
                                         query->count, query->values, NULL, NULL, 0));
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

static bool has_state(const struct pg_error *error, const char *sqlstate)
{
    return strcmp(error->sqlstate, sqlstate) == 0;
}

/* The result goes with the query, for the callback to read. */
static void end_query(struct pg_pipeline *pipeline, struct trip *trip, enum pg_outcome outcome,
                      const struct pg_error *error)
{
    pg_query_end(trip->query, outcome, trip->result, error);
    trip->result = NULL;
    pg_queries_append(pipeline->ended, trip->query);
}

/* Only if it is still the newest: of many queries that fail alike, the first one does it. */
static void abandon_version(struct pg_pipeline *pipeline, const struct trip *trip)
{
    struct prepared *prepared = &pipeline->prepared[trip->statement];
    if (prepared->version == trip->version)
        prepared->sent = false;
}

/* The plan no longer fits the table (0A000, "cached plan must not change result type"), its
 * parameters have the types that columns had when it was prepared (42883, no such operator), or
 * somebody discarded it (26000). None has run anything, so that the query may simply be sent again.
 */
static bool is_stale(const struct pg_error *error)
{
    return has_state(error, "0A000") || has_state(error, "42883") || has_state(error, "26000");
}

/* 57014: canceled, which is what statement_timeout does. */
static int finish_failed_query(struct pg_pipeline *pipeline, struct trip *trip)
{
    const struct prepared *prepared = &pipeline->prepared[trip->statement];
    struct pg_error error;
    pg_error_from_result(&error, trip->result);
    if (has_state(&error, "26000") && prepared->refused) {
        error = *prepared->refused; /* it was sent behind a prepare that failed */
    } else if (is_stale(&error) && !trip->query->repeated) {
        abandon_version(pipeline, trip);
        trip->query->repeated = true;
        return pg_pipeline_query(pipeline, trip->query);
    }
    end_query(pipeline, trip, has_state(&error, "57014") ? PG_TIMEOUT : PG_REFUSED, &error);
    return 0;
}

/* A refusal is kept for the queries that were sent behind it. */
static void finish_prepare(struct pg_pipeline *pipeline, const struct trip *trip)
{
    struct prepared *prepared = &pipeline->prepared[trip->statement];
    free(prepared->refused);
    prepared->refused = NULL;
    if (is_good(trip->result))
        return;
    prepared->refused = allocate(1, sizeof *prepared->refused);
    pg_error_from_result(prepared->refused, trip->result);
    abandon_version(pipeline, trip);
}

/* 0, or -ECONNRESET with a reason: sending again failed, or the server refused a setting. */
static int finish_trip(struct pg_pipeline *pipeline, struct pg_error *error)
{
    struct trip *trip = take_trip(pipeline);
    bool good = is_good(trip->result);
    int rc = 0;
    if (trip->kind == TRIP_PREPARE) {
        finish_prepare(pipeline, trip);
    } else if (trip->kind == TRIP_QUERY && good) {
        end_query(pipeline, trip, PG_DONE, NULL);
    } else if (trip->kind == TRIP_QUERY) {
        rc = finish_failed_query(pipeline, trip);
        if (rc < 0)
            pg_error_from_connection(error, pipeline->pq);
    } else if (!good) {
        pg_error_from_result(error, trip->result);
        rc = -ECONNRESET;
    }
    free_trip(trip);
    return rc;
}

/* An error that ends the connection, or one that libpq made up because it was lost. */
static bool ends_connection(const struct pg_pipeline *pipeline, const PGresult *result)
{
    if (PQresultStatus(result) != PGRES_FATAL_ERROR)
        return false;
    return pg_result_is_fatal(result) || (PQstatus(pipeline->pq) == CONNECTION_BAD &&
                                          !PQresultErrorField(result, PG_DIAG_SQLSTATE));
}

/* Keeps a result in its trip until the SYNC. */
static int keep_result(struct pg_pipeline *pipeline, PGresult *result, struct pg_error *error)
{
    struct trip *trip = pipeline->first;
    if (ends_connection(pipeline, result)) {
        pg_error_from_result(error, result);
        PQclear(result);
        return -ECONNRESET;
    }
    if (PQresultStatus(result) == PGRES_COPY_OUT || PQresultStatus(result) == PGRES_COPY_IN) {
        pg_error_say(error, "a prepared statement began a COPY");
        PQclear(result);
        return -ECONNRESET; /* it would go on for ever */
    }
    if (trip->result && !is_good(trip->result)) {
        PQclear(result);
        return 0;
    }
    PQclear(trip->result);
    trip->result = result;
    return 0;
}

/* One step of reading. NULL stands between the results of two commands; two in a row mean that
 * libpq knows of no command any more, though trips are open. */
static int take_result(struct pg_pipeline *pipeline, bool *separated, struct pg_error *error)
{
    PGresult *result = PQgetResult(pipeline->pq);
    if (!result) {
        if (*separated) {
            pg_error_say(error, "the connection fell out of step");
            return -ECONNRESET;
        }
        *separated = true;
        return 0;
    }
    *separated = false;
    if (PQresultStatus(result) != PGRES_PIPELINE_SYNC)
        return keep_result(pipeline, result, error);
    PQclear(result);
    return finish_trip(pipeline, error);
}

int pg_pipeline_read(struct pg_pipeline *pipeline, struct pg_error *error)
{
    bool separated = false;
    int rc = 0;
    /* PQisBusy() first: it takes in notices also while nothing is under way. */
    while (rc == 0 && !PQisBusy(pipeline->pq) && pipeline->first)
        rc = take_result(pipeline, &separated, error);
    return rc;
}

void pg_pipeline_fail(struct pg_pipeline *pipeline, enum pg_outcome outcome,
                      const struct pg_error *error, uint64_t now)
{
    while (pipeline->first) {
        struct trip *trip = take_trip(pipeline);
        if (trip->query) {
            trip->query->early = outcome == PG_TIMEOUT && trip->query->deadline > now;
            end_query(pipeline, trip, outcome, error);
        }
        free_trip(trip);
    }
    forget_statements(pipeline);
    pipeline->pq = NULL;
}

size_t pg_pipeline_large(const struct pg_pipeline *pipeline)
{
    return pipeline->large;
}

size_t pg_pipeline_depth(const struct pg_pipeline *pipeline)
{
    return pipeline->depth;
}

uint64_t pg_pipeline_deadline(const struct pg_pipeline *pipeline)
{
    return pipeline->first->deadline;
}
