/* What the values of a keyspace depend on beside its rows: columns, the types that they are
 * printed by, and of a view how it is defined. DDL that changes these changes values, and no event
 * of a row tells of it. (Not in it is what a value of regclass and its kin refers to, whose name is
 * its text.)
 */
#ifndef NESTGUARD_PUBLICATION_VALUES_H
#define NESTGUARD_PUBLICATION_VALUES_H

/* Members of a WITH RECURSIVE list. They ask located (place, oid, value):
 * each keyspace's number, table (NULL: none) and the column of its value (NULL: all of them). They
 * give valued (list): a fingerprint for each keyspace (text, comma-separated, in their order). */
extern const char publication_values[];

#endif
