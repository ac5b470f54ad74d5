/* The `options` that a person has in the conninfo, or in PGOPTIONS: command line switches for the
 * server, of which those that set something are told here as the server takes them.
 *
 *   "-c extra_float_digits=0 --search-path=a,\ b -e"
 *        ├─ extra_float_digits  0
 *        ├─ search_path         a, b
 *        └─ DateStyle           euro
 */
#ifndef NESTGUARD_PG_OPTIONS_H
#define NESTGUARD_PG_OPTIONS_H

#include "postgres/pg_error.h"

/* On the heap; NULL: there are none. Private to backends/, as the next one. */
char *pg_options_own(const char *conninfo);

/* What they set the setting to, the last time if they do it more than once: on the heap. NULL: they
 * do not. `own` may be NULL. */
char *pg_options_value(const char *own, const char *name);

/* 0; or -EINVAL where libpq cannot make sense of the conninfo, or where its options are refused. A
 * key is the text that its row's columns are printed as, and a load asks for the row by it: some
 * types' text would be read as another value than it was printed of, or as none, by what they set.
 * Then *error names the setting and says what to do. */
int pg_conninfo_check(const char *conninfo, struct pg_error *error);

#endif
