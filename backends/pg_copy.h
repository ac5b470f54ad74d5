/* Rows of COPY's text format: bytes in, columns out. */
#ifndef NESTGUARD_PG_COPY_H
#define NESTGUARD_PG_COPY_H

#include <stddef.h>

enum { PG_COPY_COLUMNS_MAX = 16 };

/* One column of a row: its bytes as PostgreSQL prints the value, unescaped; `at` is NULL for SQL
 * NULL. */
struct pg_column {
    const char *at;
    size_t length;
};

/* Splits one row (with or without its newline) into columns and unescapes them in place. Returns
 * how many there are, or -E2BIG when that is more than PG_COPY_COLUMNS_MAX.
 * Private to backends/. */
int pg_copy_split(char *row, size_t length, struct pg_column columns[PG_COPY_COLUMNS_MAX]);

#endif
