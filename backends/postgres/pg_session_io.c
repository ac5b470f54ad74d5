/* libpq is never asked to wait: it would not look at the stop flag. Everything here is its
 * non-blocking half, with poll() in short slices between.
 */
#include "net/allocate.h"
#include "postgres/pg_connect.h"
#include "postgres/pg_copy.h"
#include "postgres/pg_hosts.h"
#include "postgres/pg_options.h"
#include "postgres/pg_pooler.h"
#include "postgres/pg_session.h"
#include "postgres/pg_walsender.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { SLICE_MS = 100, HOST_SECONDS = 2 /* of connecting, at least */ };

struct pg_session {
    PGconn *pq;
    const atomic_bool *stop;
    unsigned answer_timeout; /* seconds; 0: none */
    uint64_t deadline;       /* now_ms() until when the server may be silent; 0: for ever */
    struct pg_server server;
    bool spent; /* left in the middle of an answer: only good for closing */
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* From now; 0 seconds: none. */
static void set_deadline(struct pg_session *session, unsigned seconds)
{
    session->deadline = seconds ? now_ms() + (uint64_t)seconds * 1000 : 0;
}

/* Waits for the socket until the deadline. 0, -ECANCELED or -ETIMEDOUT. */
static int wait_ready(const struct pg_session *session, short events)
{
    uint64_t deadline = session->deadline;
    struct pollfd socket = {.fd = PQsocket(session->pq), .events = events};
    for (;;) {
        uint64_t now = now_ms(), left = SLICE_MS;
        if (session->stop && atomic_load_explicit(session->stop, memory_order_relaxed))
            return -ECANCELED;
        if (deadline && now >= deadline)
            return -ETIMEDOUT;
        if (deadline && deadline - now < left)
            left = deadline - now;
        /* Without a socket libpq has something to say and will not block. */
        if (socket.fd < 0 || poll(&socket, 1, (int)left) > 0)
            return 0;
    }
}

/* An answer is under way that nobody will read: nothing more can be asked of this session. So in
 * the two below. `rc` is why the wait for it ended. */
static int given_up(struct pg_session *session, int rc, struct pg_error *error)
{
    session->spent = true;
    if (rc == -ETIMEDOUT)
        pg_error_say(error, "no answer from the server within %u s", session->answer_timeout);
    else
        pg_error_say(error, "stopped while waiting for the server");
    return rc;
}

/* The connection is; libpq knows why. */
static int lost(struct pg_session *session, struct pg_error *error)
{
    session->spent = true;
    pg_error_from_connection(error, session->pq);
    return -ECONNREFUSED;
}

/* The server said what makes no sense here: nothing that follows can be relied on. */
static int unexpected(struct pg_session *session, struct pg_error *error, const char *what)
{
    session->spent = true;
    pg_error_say(error, "%s", what);
    return -EPROTO;
}

/* The deadline holds for all addresses that libpq tries, together. -ETIMEDOUT when it is over. */
static int connect_within(struct pg_session *session, struct pg_connecting *connecting,
                          unsigned seconds, struct pg_error *error)
{
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    set_deadline(session, seconds);
    while (next != PGRES_POLLING_OK) {
        if (next == PGRES_POLLING_FAILED || PQstatus(session->pq) == CONNECTION_BAD)
            return lost(session, error);
        int rc = wait_ready(session, next == PGRES_POLLING_READING ? POLLIN : POLLOUT);
        if (rc == -ECANCELED)
            return given_up(session, rc, error);
        if (rc == -ETIMEDOUT) {
            pg_error_say(error, "no connection to the server within %u s", seconds);
            return -ETIMEDOUT;
        }
        next = pg_connect_poll(connecting);
    }
    return 0;
}

/* A host that says nothing must not keep us from those behind it. */
static int connect_to(struct pg_session *session, const struct pg_session_options *options,
                      bool replication, struct pg_error *error)
{
    const struct pg_connect_options how = {options->conninfo, options->application, replication};
    unsigned hosts = pg_hosts_count(options->conninfo), seconds = options->connect_timeout;
    int rc = -ETIMEDOUT;
    bool again = false; /* without what a pooler has refused */
    if (hosts > 1 && seconds)
        seconds = seconds / hosts > HOST_SECONDS ? seconds / hosts : HOST_SECONDS;
    for (unsigned host = 0; host < hosts && (rc == -ETIMEDOUT || again); host += !again) {
        struct pg_connecting connecting;
        struct pg_hosts list;
        PQfinish(session->pq);
        pg_hosts_begin_with(&list, options->conninfo, host);
        pg_connect_start(&connecting, &how, &list);
        pg_hosts_finish(&list);
        session->pq = connecting.pq;
        rc = connect_within(session, &connecting, seconds, error);
        session->server = connecting.server;
        again = rc < 0 && connecting.refused_options;
        session->spent = session->spent && !again;
    }
    return rc == -ETIMEDOUT ? -ECONNREFUSED : rc;
}

const struct pg_server *pg_session_server(const struct pg_session *session)
{
    return &session->server;
}

PGconn *pg_session_detach(struct pg_session *session)
{
    PGconn *pq = session->pq;
    free(session);
    return pq;
}

void pg_session_close(struct pg_session *session)
{
    if (!session)
        return;
    PQfinish(session->pq);
    free(session);
}

/* Hands over what libpq still holds. The server may be stuck in writing to us meanwhile, hence the
 * reading. */
static int flush(struct pg_session *session, struct pg_error *error)
{
    int left, rc;
    while ((left = PQflush(session->pq)) == 1) {
        if ((rc = wait_ready(session, POLLIN | POLLOUT)) < 0)
            return given_up(session, rc, error);
        if (!PQconsumeInput(session->pq))
            return lost(session, error);
    }
    return left < 0 ? lost(session, error) : 0;
}

/* After a session was broken off, its next answers would be those of earlier statements. */
static int begin_statement(struct pg_session *session, struct pg_error *error)
{
    memset(error, 0, sizeof *error);
    set_deadline(session, session->answer_timeout);
    if (!session->spent)
        return 0;
    pg_error_say(error, "the session was broken off by an earlier call");
    return -ECONNREFUSED;
}

/* With parameters as text. 0, or the session is spent. */
static int send_statement(struct pg_session *session, const char *sql, int count,
                          const char *const *values, struct pg_error *error)
{
    int rc = begin_statement(session, error);
    if (rc < 0)
        return rc;
    if (!PQsendQueryParams(session->pq, sql, count, NULL, values, NULL, NULL, 0))
        return lost(session, error);
    return flush(session, error);
}

/* 0 with the next result, or with NULL at the end of the answer. */
static int next_result(struct pg_session *session, PGresult **out, struct pg_error *error)
{
    while (PQisBusy(session->pq)) {
        int rc = wait_ready(session, POLLIN);
        if (rc < 0)
            return given_up(session, rc, error);
        if (!PQconsumeInput(session->pq))
            break; /* PQgetResult() gives the reason, or what came before the end */
    }
    *out = PQgetResult(session->pq);
    return 0;
}

/* What one result says of the statement. */
static int judge(struct pg_session *session, const PGresult *result, struct pg_error *error)
{
    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY:
        return 0;
    case PGRES_FATAL_ERROR:
        pg_error_from_result(error, result);
        return -EPROTO;
    default:
        return unexpected(session, error, "a COPY where a plain statement was expected");
    }
}

/* Reads the answer to its end, past an error too. The first error counts: the loss of the
 * connection that follows a FATAL says less than it. */
static int collect(struct pg_session *session, PGresult **out, struct pg_error *error)
{
    PGresult *kept = NULL, *result = NULL;
    int rc = 0, read = 0;
    while (!session->spent && (read = next_result(session, &result, error)) == 0 && result) {
        if (rc == 0)
            rc = judge(session, result, error);
        PQclear(kept);
        kept = result;
    }
    if (read < 0)
        rc = read;
    else if (PQstatus(session->pq) == CONNECTION_BAD)
        rc = rc < 0 ? -ECONNREFUSED : lost(session, error);
    if (rc < 0 || !out)
        PQclear(kept);
    else
        *out = kept;
    return rc;
}

int pg_session_exec(struct pg_session *session, const char *sql, int count,
                    const char *const *values, PGresult **out, struct pg_error *error)
{
    int rc = send_statement(session, sql, count, values, error);
    return rc < 0 ? rc : collect(session, out, error);
}

int pg_session_command(struct pg_session *session, const char *command, PGresult **out,
                       struct pg_error *error)
{
    int rc = begin_statement(session, error);
    if (rc < 0)
        return rc;
    if (!PQsendQuery(session->pq, command))
        return lost(session, error);
    rc = flush(session, error);
    return rc < 0 ? rc : collect(session, out, error);
}

static int open_to(struct pg_session **out, const struct pg_session_options *options,
                   bool replication, struct pg_error *error)
{
    if (pg_conninfo_check(options->conninfo, error) < 0)
        return -ECONNREFUSED;
    struct pg_session *session = allocate(1, sizeof *session);
    session->stop = options->stop;
    session->answer_timeout = options->answer_timeout;
    int rc = connect_to(session, options, replication, error);
    if (rc < 0) {
        pg_session_close(session);
        return rc;
    }
    *out = session;
    return 0;
}

static int open_ordinary(struct pg_session **out, const struct pg_session_options *options,
                         struct pg_error *error)
{
    return open_to(out, options, false, error);
}

int pg_session_open(struct pg_session **out, const struct pg_session_options *options,
                    struct pg_error *error)
{
    int rc = open_ordinary(out, options, error);
    if (rc < 0)
        return rc;
    rc = pg_pooler_check(*out, options, open_ordinary, error);
    if (rc < 0) {
        pg_session_close(*out);
        *out = NULL;
    }
    return rc;
}

int pg_session_told_pid(const struct pg_session *session)
{
    return PQbackendPID(session->pq);
}

int pg_session_open_walsender(struct pg_session **out, const struct pg_session_options *options,
                              struct pg_error *error)
{
    return open_to(out, options, true, error);
}

/* A COPY's rows, on their way to whom they are for. */
struct row_reader {
    int columns; /* as the server announced them; each row must have so many */
    bool binary; /* as it announced, too */
    bool begun;  /* the header of a binary copy is behind us */
    pg_row_cb row;
    void *arg;
};

/* Reads up to the start of the rows. */
static int begin_copy(struct pg_session *session, struct row_reader *reader, struct pg_error *error)
{
    PGresult *result = NULL;
    int rc = next_result(session, &result, error);
    if (rc < 0)
        return rc;
    if (PQresultStatus(result) == PGRES_COPY_OUT) {
        reader->columns = PQnfields(result);
        reader->binary = PQbinaryTuples(result);
        if (reader->columns > PG_COPY_COLUMNS_MAX)
            rc = unexpected(session, error, "COPY of more than 16 columns");
    } else {
        rc = judge(session, result, error);
        int end = collect(session, NULL, &(struct pg_error){0});
        if (end < 0 && end != -EPROTO)
            rc = end;
        if (rc == 0)
            rc = unexpected(session, error, "not a COPY ... TO STDOUT");
    }
    PQclear(result);
    return rc;
}

/* The header comes before the first row, or before what closes a copy without rows. */
static int split_binary(struct row_reader *reader, const char *row, size_t length,
                        struct pg_column columns[PG_COPY_COLUMNS_MAX])
{
    int header = reader->begun ? 0 : pg_copy_binary_header(row, length);
    if (header < 0)
        return header;
    reader->begun = true;
    if ((size_t)header == length)
        return -ENODATA;
    return pg_copy_split_binary(row + header, length - (size_t)header, columns);
}

/* -E2BIG, or how many columns the row has. */
static int split_text(const struct row_reader *reader, char *row, size_t length,
                      struct pg_column columns[PG_COPY_COLUMNS_MAX])
{
    int count = pg_copy_split(row, length, columns);
    return reader->columns == 0 ? 0 : count; /* an empty line is also one empty column */
}

/* 0, what the callback returned, or an error of ours. */
static int hand_over(struct pg_session *session, struct row_reader *reader, char *row,
                     size_t length, struct pg_error *error)
{
    struct pg_column columns[PG_COPY_COLUMNS_MAX];
    int count = reader->binary ? split_binary(reader, row, length, columns)
                               : split_text(reader, row, length, columns);
    if (count == -ENODATA)
        return 0;
    if (count != reader->columns)
        return unexpected(session, error, "a row with another number of columns than announced");
    return reader->row(reader->arg, columns, (size_t)count);
}

/* All rows that are at hand are taken before the socket is looked at again: the server has its time
 * anew for those that follow. After the connection was lost libpq may still hold rows and the
 * server's last words. */
static int drain(struct pg_session *session, struct row_reader *reader, struct pg_error *error)
{
    bool gone = false;
    for (;;) {
        char *row = NULL;
        int length = PQgetCopyData(session->pq, &row, 1);
        if (length > 0) {
            int rc = hand_over(session, reader, row, (size_t)length, error);
            PQfreemem(row);
            if (rc != 0)
                return rc;
        } else if (length == -1) {
            return 0;
        } else if (length == -2 || gone) {
            return lost(session, error);
        } else {
            set_deadline(session, session->answer_timeout);
            int rc = wait_ready(session, POLLIN);
            if (rc < 0)
                return given_up(session, rc, error);
            gone = !PQconsumeInput(session->pq);
        }
    }
}

int pg_session_copy(struct pg_session *session, const char *sql, pg_row_cb row, void *arg,
                    struct pg_error *error)
{
    struct row_reader reader = {.row = row, .arg = arg};
    int rc = send_statement(session, sql, 0, NULL, error);
    if (rc == 0)
        rc = begin_copy(session, &reader, error);
    if (rc < 0)
        return rc;
    rc = drain(session, &reader, error);
    if (rc == 0)
        return collect(session, NULL, error);
    session->spent = true;
    return rc;
}
