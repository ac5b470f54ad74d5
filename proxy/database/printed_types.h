/* How values are printed: as text, which keys are made of. A key is its row's only where that text
 * is made of the value alone, and of settings, which sessions have for good: a name of the
 * catalogue in it is another when somebody renames an object, or puts one of its name before it,
 * and no log tells of a row by that.
 */
#ifndef NESTGUARD_PRINTED_TYPES_H
#define NESTGUARD_PRINTED_TYPES_H

#include "postgres/pg_session.h"

/* SQL. The types whose values are printed as a part of those of type `y`, a row of pg_type: of an
 * array's elements, a domain's base, a range's bounds, a multirange's ranges, a composite's
 * columns. An array of their oids, in which there are 0 and NULL, too. The multirange's is found
 * without an index, in what is a handful of rows: servers before version 14 have not even the
 * column. */
#define TYPES_PRINTED_IN_Y                                                                         \
    "ARRAY[y.typelem, y.typbasetype,"                                                              \
    "      (SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = y.oid),"                        \
    "      CASE y.typtype WHEN 'm' THEN (SELECT r.rngtypid FROM pg_range r"                        \
    "         WHERE to_jsonb(r)->>'rngmultitypid' = y.oid::text) END]"                             \
    "   || ARRAY(SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = y.typrelid"              \
    "         AND a.attnum > 0 AND NOT a.attisdropped)"

/* SQL. The rest of a recursive query `printed (number, type)`, behind the columns that it begins
 * with, by their numbers: all that is printed in them. */
#define TYPES_PRINTED_BELOW                                                                        \
    " UNION SELECT p.number, i.type FROM printed p JOIN pg_type y ON y.oid = p.type,"              \
    "              unnest(" TYPES_PRINTED_IN_Y ") AS i (type)"

/* SQL. A SELECT of one value, which goes on with an AND about p.number: a list of the types in
 * `printed` whose text is not made of the value alone; NULL: there is none. An output function that
 * is immutable has nothing but the value. Of the server's own that are not, these take settings, or
 * print parts, which are looked at by themselves; enums are in the fingerprint. Any other may look
 * names up, as that of regclass does. */
#define TYPES_LOOKED_UP                                                                            \
    "SELECT string_agg(DISTINCT format_type(y.oid, NULL), ', ')"                                   \
    "  FROM printed p JOIN pg_type y ON y.oid = p.type JOIN pg_proc o ON o.oid = y.typoutput"      \
    " WHERE y.typtype = 'b' AND o.provolatile <> 'i'"                                              \
    "   AND NOT (o.oid < 16384 AND o.proname IN ('array_out', 'date_out', 'timestamp_out',"        \
    "                                            'timestamptz_out', 'interval_out', 'cash_out'))"

/* What is wrong with a column for a key, a new string: its type, and those in it that are looked
 * up. */
char *printed_types_words(const char *column, const char *type, const char *looked_up);

/* 0: the text of these columns, which need not have rows, is their values' alone. Else -EPROTO,
 * with these words of the first that it is not of; or as pg_session_exec(). */
int printed_types_refuse(struct pg_session *session, const PGresult *columns,
                         struct pg_error *error);

#endif
