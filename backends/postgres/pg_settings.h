/* The settings of every session that the guard opens, in one table. What its role, its database or
 * the server's file set changes nothing of what the guard's connections do, and when those are
 * altered while it runs, connections that are opened later do as the earlier ones.
 *
 *   SETTING_DEFAULT   ours, unless the conninfo has `options`       ┐ in the start-up packet, as
 *   SETTING_FIXED     ours, whatever it has                         ┘ `options`, and by a statement
 *   SETTING_LATER     ours, once the server is known                ┐ by a statement alone
 *   SETTING_FOUND     as the first connection of this process found ┘
 *
 * What was found holds for all connection strings that follow one another: keys are spelled as ever
 * when a password, a role or even the server is another one. Where tables are looked for is the
 * database's: another one has schemas of its own, as the first connection there finds them, and its
 * rows are another generation's in any case.
 *
 * What was found may be nothing that a server takes any more: a text search configuration that was
 * renamed, a locale that another host has not. Then it is found once more by who is refused, and
 * counts for whoever connects later. What was built or asked by the earlier values is as if it were
 * of another server (pg_server.settings): keys may be spelled otherwise now, and conditions mean
 * other rows, so a generation of theirs is given up and one by the values of now is built.
 *
 * The statement says those of the start-up packet once more, since poolers refuse or ignore it: of
 * the first kind as the person has chosen, or ours.
 *
 * In the conninfo's `options` a person may choose how values are printed and read, and what is to
 * be found first: that is the same for all connections. What would not read back as it was printed
 * no connection is opened with (pg_conninfo_check()). Whether rows are hidden, what kind of
 * transaction it is and how long a statement may take are not his to choose.
 *
 * Private to backends/.
 */
#ifndef NESTGUARD_PG_SETTINGS_H
#define NESTGUARD_PG_SETTINGS_H

#include "postgres/pg_server.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

enum setting_kind { SETTING_DEFAULT, SETTING_FIXED, SETTING_LATER, SETTING_FOUND };

struct pg_setting {
    const char *name;
    enum setting_kind kind;
    const char *value; /* SETTING_FOUND: SQL that finds it; NULL: current_setting() does */
    int since;         /* SETTING_LATER: of servers from this version on, as PQserverVersion() */
};

extern const struct pg_setting pg_settings[];
extern const size_t pg_settings_count;

/* The `options` of a connection to be opened. Freed by the caller. */
char *pg_settings_options(const char *conninfo, bool replication);

/* What a session needs once it is up, by the simple protocol, in this order; and then where a
 * standby is, which one may refuse to say. */
enum pg_settings_step {
    SETTINGS_ENCODING,
    SETTINGS_FIND,
    SETTINGS_SET,
    SETTINGS_POSITION,
    SETTINGS_DONE
};

struct pg_settings_of {
    const char *conninfo;
    enum pg_settings_step step;
    bool again; /* what was found before was refused: it is found once more */
};

/* The statement of that step, freed by the caller; NULL: this session does not need it. Notes which
 * settings it makes in server->settings. */
char *pg_settings_statement(PGconn *pq, const struct pg_settings_of *of, struct pg_server *server);

/* The answer to SETTINGS_FIND, one row, of which the first that comes for this process counts, of
 * another database its schemas, or `again` the latest. False: it makes no sense. */
bool pg_settings_found(const char *conninfo, const PGresult *row, bool again);

/* Of SETTINGS_SET: the server does not take one of the values. */
bool pg_settings_are_refused(const PGresult *result);

/* The answer to SETTINGS_SET also says which server it is. 0, or -EPROTO. */
int pg_settings_read_server(struct pg_server *server, const PGconn *pq, const char *conninfo,
                            const PGresult *row);

#endif
