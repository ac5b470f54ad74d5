/* How large a keyspace's filter is made: for the rows that are there, and for those that come while
 * the log is followed. Without a log there is nothing to come, so it has places for its rows alone.
 */
#ifndef NESTGUARD_FILTER_SIZE_H
#define NESTGUARD_FILTER_SIZE_H

#include "config/config.h"
#include "filters/bitmap/bitmap.h"
#include "filters/filter.h"
#include "guard/view.h"
#include "postgres/pg_error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a generation's filters and bitmaps, with all that these may grow by: what counts for
 * max_filter_memory. */
size_t filter_size_taken(const struct generation *generation, const struct config *config);

/* What is left of max_filter_memory beside so many bytes, at least 1; 0: there is no bound. */
size_t filter_size_room(const struct config *config, size_t taken);

/* An empty filter for so many rows, the caller's; others take so many bytes. 0; or what
 * filter_create() gave, with *error. */
int filter_for(struct filter **out, const struct config *config, size_t keyspace, uint64_t rows,
               size_t taken, struct pg_error *error);

/* An empty bitmap for what the keyspace publishes of so many rows, and more; NULL where it
 * publishes nothing, or there can be none of that size, or no room beside what is taken. */
struct bitmap *filter_size_bitmap(const struct config *config, size_t keyspace, uint64_t rows,
                                  size_t taken);

/* Whether one that was made for an estimate does for so many rows: so that neither memory is wasted
 * nor another filter needed soon. */
bool filter_size_fits(const struct filter *filter, const struct config *config, uint64_t rows);

#endif
