/* Which server a connection leads to. A name, a balancer or a list of hosts may lead to one server
 * now and to another a moment later, and what the one says is nothing to hold against what the
 * other said: a standby lags behind, and a server that was promoted has a log of its own.
 *
 * Nor may it have gone back. One of its processes is killed, by whoever is out of memory, and a
 * standby begins its recovery anew, at its last restartpoint, while its postmaster lives on; it
 * lets connections in before it has replayed again all that it had shown. Nothing tells of that but
 * where it is. Since connections do not outlive it, the one that a position was learned over
 *
 *   is older than the connection that is looked at ─▶ that one's must not be less
 *   is not                                         ─▶ nothing: both live, or one is lost
 *
 * Until it has come as far again it will not do; it is no other server for that.
 */
#ifndef NESTGUARD_PG_SERVER_H
#define NESTGUARD_PG_SERVER_H

#include "postgres/pg_error.h"

#include <stdint.h>

/* As the connection found it when it was opened; zeroed it is not known. */
struct pg_server {
    /* "7312345678901234567/00000001/16384.10": the cluster, where the role may ask for it, a
     * primary's timeline, which a promotion begins anew and a restart keeps, and the database and
     * the role. */
    char history[64];
    char started[32]; /* when its postmaster was: seconds since 1970 */
    bool standby;
    uint64_t position; /* a standby's, up to where it has replayed; 0: not known */
    uint64_t moment;   /* pg_server_moment() before that was asked; 0: never */
    unsigned settings; /* which of those that connections have had: see pg_settings.h */
    int pid; /* of the process that serves the connection; says nothing of which server it is */
};

/* Which server will do; zeroed: any. */
struct pg_server_rule {
    bool primary; /* no standby */
    /* Nor may the server have been restarted since; a standby never may: it may come up with less
     * than it had shown before. */
    bool unrestarted;
    struct pg_server server; /* this one, if it is known */
};

/* A number that is greater at each call, for any thread. */
uint64_t pg_server_moment(void);

/* SQL: columns of a SELECT, to be read by pg_server_read(); the last is only for roles that
 * pg_server_may_identify is true for. Private to backends/. */
extern const char pg_server_columns[], pg_server_identifier[], pg_server_may_identify[];

/* Which database of which running server it is, whoever asks: "1764426736.124/16384". The column
 * has the same as SQL. Private to backends/. */
enum { PG_SERVER_PLACE = 48 };
extern const char pg_server_place_column[];
void pg_server_place(const struct pg_server *server, char place[PG_SERVER_PLACE]);

/* From `column` on. 0, or -EPROTO. Private to backends/. */
int pg_server_read(struct pg_server *server, const PGresult *row, int column);

/* A SELECT, for a standby, and its answer, from a moment that the caller has set. Some managed
 * servers do not take it: then their position stays unknown. */
extern const char pg_server_position[];
void pg_server_read_position(struct pg_server *server, const PGresult *row);

bool pg_server_is_known(const struct pg_server *server);
/* With the same rows for who asks: the same database, role and settings, too. What cannot be told
 * apart from another, as the role may not ask for the cluster, is another once it was restarted. */
bool pg_server_is_same(const struct pg_server *server, const struct pg_server *other,
                       bool unrestarted);

/* The same in all but the settings that the connection has. */
bool pg_server_is_set_otherwise(const struct pg_server *server, const struct pg_server *other);

/* Of two that are the same: it is a standby that has forgotten what it had shown to this earlier
 * one. */
bool pg_server_has_gone_back(const struct pg_server *server, const struct pg_server *before);

/* Whether it will do; else *error says why not. */
bool pg_server_fits(const struct pg_server *server, const struct pg_server_rule *rule,
                    struct pg_error *error);

#endif
