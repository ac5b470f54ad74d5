/* The SQL among what mends findings, as a person runs it: apart from all else, what is needed
 * before what is advised. */
#ifndef NESTGUARD_CHECK_SQL_H
#define NESTGUARD_CHECK_SQL_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdio.h>

/* Of a finding that statements mend. Other remedies are settings of the file, commands of the
 * cache, words to somebody else. */
bool check_is_sql(const struct problem *problem);

/* All findings but notes: first those that no statement mends. The others are SQL, up to the
 * notes, of which the finding is a comment: those of errors under "-- needed", in the order in
 * which they were found, then those of warnings under "-- advised". */
void check_sql_print(const struct problems *problems, FILE *out);

#endif
