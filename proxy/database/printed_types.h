/* SQL about how values are printed: as text, which keys are made of. */
#ifndef NESTGUARD_PRINTED_TYPES_H
#define NESTGUARD_PRINTED_TYPES_H

/* The types whose values are printed as a part of those of type `y`, a row of pg_type: of an
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

#endif
