/* The publication that says which rows the log tells of, and the question by which the guard knows
 * that it still tells all.
 *
 * What the stream reports is exactly the rows of each keyspace only while the publication, the
 * tables, their key columns, their replica identities and their partitions are what they were when
 * the generation was built. DDL is not in the stream; so all of that is condensed into a
 * fingerprint, asked together with the log's end: a position of the log counts as followed only
 * with the fingerprint that the generation was built under. Each keyspace has its own, of its table
 * and those that its values depend on, so that what happens to one says nothing of the others. It
 * also names the server: while a standby takes over, new connections may lead to another one than
 * the stream comes from.
 *
 *   publication_ensure() ─▶ fingerprint ─▶ slot ─▶ COPY ─▶ stream ─▶ fingerprint, again and again
 */
#ifndef NESTGUARD_PUBLICATION_H
#define NESTGUARD_PUBLICATION_H

#include "config/config.h"

/* A new string: one SELECT without parameters, of one row:
 *   the fingerprint (text),
 *   the oid of each table that is followed as relations in the stream have it (text,
 *   comma-separated, in the order of config_followed(); 0 where the table is not there or not in
 *   the publication),
 *   pg_current_wal_insert_lsn() and pg_current_wal_flush_lsn() as decimal numbers of bytes,
 *   pg_current_snapshot() (text),
 *   publication_values_sql()'s answer,
 *   the replica identity of each table that is followed, as Relation messages tell it (text, a
 *   letter each, in the order of config_followed(); - where the table is not there),
 *   for each keyspace a fingerprint of what its table's name leads to, which is also another when
 *   it has led elsewhere since the answer before (text, comma-separated, in the keyspaces' order).
 *
 * It waits for no lock on a table, and is cheap enough for four times a second. The catalogue is
 * read as it was a moment before the positions are: DDL may commit in between. So it takes the
 * fingerprint of the answer to a later question to vouch for the positions of this one. */
char *publication_probe_sql(const struct config *config);

/* A new string: one SELECT without parameters, of one row: for each keyspace a fingerprint of what
 * its values depend on beside its rows, that is columns and the types that they are printed by
 * (text, comma-separated, in the keyspaces' order; see values.h). Needs no publication and no
 * primary. */
char *publication_values_sql(const struct config *config);

/* Whether two fingerprints say the same of the keyspace with this number. False where one of them
 * says nothing of it, or is another server's. */
bool publication_agrees(const char *one, const char *other, size_t keyspace);

/* The part of a fingerprint that tells one server from another, and from itself before a restart:
 * their logs have nothing to do with each other. Never NULL; lives as long as the fingerprint. */
const char *publication_server(const char *fingerprint);

#endif
