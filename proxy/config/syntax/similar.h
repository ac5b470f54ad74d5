/* "Did you mean": how far two names are from each other. */
#ifndef NESTGUARD_SIMILAR_H
#define NESTGUARD_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

/* Letters to insert, delete or replace to make one of the other (Levenshtein 1965); ASCII case
 * does not count. Names longer than 127 bytes are SIZE_MAX from everything. */
size_t name_distance(const char *a, const char *b);

/* Near enough to be a slip: two letters differ, in a name of eight or more a quarter of them; in
 * one of one or two letters only their case. */
bool name_is_similar(const char *a, const char *b);

#endif
