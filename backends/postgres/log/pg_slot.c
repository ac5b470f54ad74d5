/* The replication commands are those of "Streaming Replication Protocol" in PostgreSQL's manual. Of
 * the two forms that CREATE_REPLICATION_SLOT takes its options in, the older is used: versions 14
 * to 17 all know it, the one in parentheses only came with 15.
 */
#include "postgres/log/pg_slot.h"
#include "net/allocate.h"
#include "postgres/pg_walsender.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>
#include <unistd.h>

/* The process id is for people who look at the server, the rest for processes on other hosts. */
static int name_slot(struct pg_slot *slot, struct pg_error *error)
{
    uint64_t unique;
    if (getrandom(&unique, sizeof unique, 0) != sizeof unique) {
        pg_error_say(error, "no random bytes for the slot's name");
        return -EPROTO;
    }
    snprintf(slot->name, sizeof slot->name, "nestguard_%ld_%016" PRIx64, (long)getpid(), unique);
    return 0;
}

/* "16/B374D848" */
static int parse_lsn(const char *text, uint64_t *lsn)
{
    uint32_t high, low;
    int end = 0;
    if (sscanf(text, "%8" SCNx32 "/%8" SCNx32 "%n", &high, &low, &end) != 2 || text[end])
        return -EPROTO;
    *lsn = (uint64_t)high << 32 | low;
    return 0;
}

/* The row is: slot_name, consistent_point, snapshot_name, output_plugin. */
static int take_row(struct pg_slot *slot, const PGresult *row, struct pg_error *error)
{
    if (PQntuples(row) == 1 && PQnfields(row) == 4 &&
        parse_lsn(PQgetvalue(row, 0, 1), &slot->consistent_point) == 0) {
        const char *snapshot = PQgetvalue(row, 0, 2);
        int length = snprintf(slot->snapshot, sizeof slot->snapshot, "%s", snapshot);
        if (length > 0 && (size_t)length < sizeof slot->snapshot)
            return 0;
    }
    pg_error_say(error, "the server's answer to CREATE_REPLICATION_SLOT is not understood");
    return -EPROTO;
}

static int create(struct pg_slot *slot, struct pg_session *session, struct pg_error *error)
{
    char command[160];
    PGresult *row = NULL;
    snprintf(command, sizeof command,
             "CREATE_REPLICATION_SLOT \"%s\" TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT",
             slot->name);
    int rc = pg_session_command(session, command, &row, error);
    if (rc == 0)
        rc = take_row(slot, row, error);
    PQclear(row);
    return rc;
}

/* The row is: systemid, timeline, xlogpos, dbname. */
static int identify(struct pg_slot *slot, struct pg_session *session, struct pg_error *error)
{
    PGresult *row = NULL;
    int rc = pg_session_command(session, "IDENTIFY_SYSTEM", &row, error);
    if (rc == 0 && (PQntuples(row) != 1 || PQnfields(row) != 4 ||
                    parse_lsn(PQgetvalue(row, 0, 2), &slot->consistent_point) < 0)) {
        pg_error_say(error, "the server's answer to IDENTIFY_SYSTEM is not understood");
        rc = -EPROTO;
    }
    PQclear(row);
    return rc;
}

typedef int (*place_fn)(struct pg_slot *slot, struct pg_session *session, struct pg_error *error);

/* The connection outlives the session that made it: what the slot is, and its snapshot, it is only
 * as long as this one connection stands, and as nothing else is asked over it. */
static int open_at(struct pg_slot *slot, const struct pg_session_options *options, place_fn place,
                   struct pg_error *error)
{
    struct pg_session *session = NULL;
    int rc = pg_session_open_walsender(&session, options, error);
    if (rc < 0)
        return rc;
    slot->server = *pg_session_server(session);
    rc = place(slot, session, error);
    if (rc < 0)
        pg_session_close(session);
    else
        slot->pq = pg_session_detach(session);
    return rc;
}

int pg_slot_create(struct pg_slot *slot, const struct pg_session_options *options,
                   struct pg_error *error)
{
    int rc = name_slot(slot, error);
    return rc < 0 ? rc : open_at(slot, options, create, error);
}

int pg_slot_skip(struct pg_slot *slot, const struct pg_session_options *options,
                 struct pg_error *error)
{
    slot->name[0] = '\0';
    return open_at(slot, options, identify, error);
}

/* The publication is an identifier in double quotes, in a list in single quotes: a quote of either
 * kind stands for itself when it is doubled. Walsenders take no backslash for special. */
static void append_quoted(char *out, const char *name)
{
    for (out += strlen(out); *name; name++) {
        if (*name == '"' || *name == '\'')
            *out++ = *name;
        *out++ = *name;
    }
    *out = '\0';
}

/* Version 2 is the highest that all servers from 14 on speak, and what "streaming" takes: large
 * transactions come while they are in progress, instead of all at once behind their commit. */
static void write_logical(char *command, size_t size, const struct pg_slot *slot, const char *start,
                          const char *publication)
{
    snprintf(command, size,
             "START_REPLICATION SLOT \"%s\" LOGICAL %s "
             "(proto_version '2', streaming 'on', publication_names '\"",
             slot->name, start);
    append_quoted(command, publication);
    strcat(command, "\"')");
}

int pg_slot_start(const struct pg_slot *slot, const char *publication, struct pg_error *error)
{
    size_t size = 2 * (publication ? strlen(publication) : 0) + 256;
    char *command = allocate(1, size);
    char start[24];
    snprintf(start, sizeof start, "%" PRIX32 "/%" PRIX32, (uint32_t)(slot->consistent_point >> 32),
             (uint32_t)slot->consistent_point);
    if (slot->name[0])
        write_logical(command, size, slot, start, publication);
    else
        snprintf(command, size, "START_REPLICATION PHYSICAL %s", start);
    int sent = PQsendQuery(slot->pq, command);
    free(command);
    if (sent)
        return 0;
    pg_error_from_connection(error, slot->pq);
    return -ECONNREFUSED;
}
