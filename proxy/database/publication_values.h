/* What the values of a keyspace depend on beside its rows: columns, the types that they are printed
 * by, of a view how it is defined, and of an expression all functions, types, tables and views
 * whose name is a word in it, whatever schema they are in. DDL that changes these changes values,
 * and no event of a row tells of it. Not in it are: what a value of regclass and its kin refers to,
 * whose name is its text; what a function or a view uses in its turn; operators, casts and
 * collations of an expression, and the rows of other tables.
 */
#ifndef NESTGUARD_PUBLICATION_VALUES_H
#define NESTGUARD_PUBLICATION_VALUES_H

/* Members of a WITH RECURSIVE list. They ask located (place, keyspace, oid, columns, value, used),
 * of which those count for values that stand in their own keyspace's place: each keyspace's number,
 * table (NULL: none), the columns of its key (an array), the column of its value (NULL: all of
 * them) and the names in its expression (an array). They give valued (list): a fingerprint for each
 * keyspace (text, comma-separated, in their order), printed (place, is_key, type): what types, of
 * those that are not the server's own, the texts of its values and those of its key columns are
 * made by. */
extern const char publication_values[];

#endif
