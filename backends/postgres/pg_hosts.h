/* A conninfo may name several hosts, the next of which libpq tries when one refuses. It waits for
 * ever for one that says nothing, unless its blocking half is used; so whoever has waited for one
 * long enough begins with the next. Private to backends/.
 */
#ifndef NESTGUARD_PG_HOSTS_H
#define NESTGUARD_PG_HOSTS_H

/* Settings that override those of the conninfo, on the heap; NULL: none is needed. */
struct pg_hosts {
    char *host, *hostaddr, *port;
};

/* How many hosts the conninfo names, 1 at least. */
unsigned pg_hosts_count(const char *conninfo);

/* The conninfo's hosts, beginning with number `first` (from 0, modulo their number), the ones
 * before it last. */
void pg_hosts_begin_with(struct pg_hosts *hosts, const char *conninfo, unsigned first);

void pg_hosts_finish(struct pg_hosts *hosts);

#endif
