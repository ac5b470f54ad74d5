/* SQL that says whether a schema is what it was in a snapshot.
 *
 * A name that stands in a statement is looked up as of now, whatever snapshot its rows are read
 * under. A table that is locked keeps its own name, but not its schema's: no lock on a table keeps
 * its schema from being renamed, and another from being put in its place, and back. By names alone
 * nothing is found of that afterwards. But the row of a schema that was renamed is another one
 * (pg_namespace), and the one that a snapshot still sees bears who has replaced it.
 */
#ifndef NESTGUARD_SCHEMA_ALTERED_H
#define NESTGUARD_SCHEMA_ALTERED_H

/* An expression: true where somebody who has committed has altered the schema since the snapshot
 * was taken; GRANT is such an alteration, too. `n` is its row of pg_namespace, as the snapshot has
 * it.
 *
 * Ids as rows bear them have 32 bits, those that a status can be asked for 64: the distance from
 * one of these, which age() tells, makes the one of the other. Who was over before the snapshot's
 * oldest has not replaced what it sees: he has given up, or has only locked the row. */
#define SCHEMA_ALTERED                                                                             \
    "(SELECT CASE WHEN r.id >= s.xmin::pg_catalog.text::pg_catalog.int8 THEN"                      \
    " pg_catalog.pg_xact_status(r.id::pg_catalog.text::pg_catalog.xid8) = 'committed' END"         \
    " FROM (SELECT pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot()) AS xmin) AS s,"   \
    " LATERAL (SELECT s.xmin::pg_catalog.text::pg_catalog.int8"                                    \
    " + pg_catalog.age(s.xmin::pg_catalog.xid) - pg_catalog.age(n.xmax) AS id) AS r"               \
    " WHERE n.xmax <> 0)"

#endif
