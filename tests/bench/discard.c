/* The fastest that a client of libpq can follow a database's log: it reads the stream of a slot and
 * throws it away.
 *
 *   discard CONNINFO PUBLICATION
 *
 * It follows until it is killed, and tells the server of a position only where the server says that
 * nothing more is at hand.
 */
#include <libpq-fe.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEEPALIVE_END = 1, /* offset of the position in 'k' */
    STATUS_SIZE = 34,  /* 'r', three positions, a time, a flag */
    POSITIONS = 3
};

static PGconn *pq;

static void fail(const char *what)
{
    fprintf(stderr, "discard: %s: %s", what, PQerrorMessage(pq));
    exit(1);
}

static void run(const char *command, ExecStatusType wanted)
{
    PGresult *result = PQexec(pq, command);
    if (PQresultStatus(result) != wanted)
        fail(command);
    PQclear(result);
}

static void confirm(const char *position)
{
    char status[STATUS_SIZE] = {'r'};
    for (size_t i = 0; i < POSITIONS; i++)
        memcpy(status + 1 + i * sizeof(uint64_t), position, sizeof(uint64_t));
    if (PQputCopyData(pq, status, sizeof status) != 1 || PQflush(pq) != 0)
        fail("cannot confirm");
}

int main(int argc, char **argv)
{
    char command[256], *message;
    int length;
    if (argc != 3) {
        fputs("usage: discard CONNINFO PUBLICATION\n", stderr);
        return 2;
    }
    const char *names[] = {"dbname", "replication", "application_name", NULL};
    const char *values[] = {argv[1], "database", "discard", NULL};
    pq = PQconnectdbParams(names, values, 1);
    if (PQstatus(pq) != CONNECTION_OK)
        fail("cannot connect");
    run("CREATE_REPLICATION_SLOT discard TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT",
        PGRES_TUPLES_OK);
    snprintf(command, sizeof command,
             "START_REPLICATION SLOT discard LOGICAL 0/0 "
             "(proto_version '1', publication_names '\"%.100s\"')",
             argv[2]);
    run(command, PGRES_COPY_BOTH);
    while ((length = PQgetCopyData(pq, &message, 0)) > 0) {
        if (message[0] == 'k')
            confirm(message + KEEPALIVE_END);
        PQfreemem(message);
    }
    fail("the stream has ended");
}
