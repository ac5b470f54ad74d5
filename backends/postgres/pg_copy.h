/* Rows of COPY's text and binary formats: bytes in, columns out. */
#ifndef NESTGUARD_PG_COPY_H
#define NESTGUARD_PG_COPY_H

#include <stddef.h>

enum { PG_COPY_COLUMNS_MAX = 16 };

/* One column of a row: its bytes as PostgreSQL prints the value, unescaped, or as it sends it in
 * binary format; `at` is NULL for SQL NULL. */
struct pg_column {
    const char *at;
    size_t length;
};

/* Splits one row (with or without its newline) into columns and unescapes them in place. Returns
 * how many there are, or -E2BIG when that is more than PG_COPY_COLUMNS_MAX.
 * Private to backends/. */
int pg_copy_split(char *row, size_t length, struct pg_column columns[PG_COPY_COLUMNS_MAX]);

/* The length of the header that a copy in binary format begins with, or -EPROTO when it has none.
 * Private to backends/. */
int pg_copy_binary_header(const char *copy, size_t length);

/* As pg_copy_split(), for one row in binary format. -ENODATA: what closes such a copy; -EPROTO:
 * this is no row. Private to backends/. */
int pg_copy_split_binary(const char *row, size_t length,
                         struct pg_column columns[PG_COPY_COLUMNS_MAX]);

#endif
