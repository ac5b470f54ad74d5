/* Rows of COPY's text format: bytes in, columns out. Private to backends/. */
#ifndef NESTGUARD_PG_COPY_H
#define NESTGUARD_PG_COPY_H

#include "pg_session.h"

enum { PG_COPY_COLUMNS_MAX = 16 };

/* Splits one row (with or without its newline) into columns and unescapes them in place. Returns
 * how many there are, or -E2BIG when that is more than PG_COPY_COLUMNS_MAX. */
int pg_copy_split(char *row, size_t length, struct pg_column columns[PG_COPY_COLUMNS_MAX]);

#endif
