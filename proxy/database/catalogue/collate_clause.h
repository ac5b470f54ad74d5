/* Where a condition says COLLATE. It is not parsed, which the server does, but what stands in
 * constants, names in quotes and comments is told from the rest as PostgreSQL does (manual,
 * "Lexical Structure", with standard_conforming_strings).
 */
#ifndef NESTGUARD_COLLATE_CLAUSE_H
#define NESTGUARD_COLLATE_CLAUSE_H

#include <stdbool.h>

/* COLLATE pg_catalog."C"
 * ^at     ^name         ^end */
struct collate_clause {
    const char *at, *name, *end;
};

/* The first at `sql` or behind it, which is no place inside a constant, a name or a comment. False:
 * there is none. Blanks and comments may be part of the name, as they may in SQL. */
bool collate_clause_next(const char *sql, struct collate_clause *clause);

#endif
