/* A row's key, out of what the log tells of the row. */
#ifndef NESTGUARD_ROW_KEY_H
#define NESTGUARD_ROW_KEY_H

#include "config/syntax/key_template.h"
#include "postgres/log/pgoutput.h"

/* Where the key's columns are in a table's rows, as the log has described the table. Zeroed memory
 * is a table that was not described. */
struct row_shape {
    uint64_t described; /* which of all descriptions this one is; 0: none */
    uint16_t columns;   /* of a row */
    uint16_t place[KEY_COLUMNS_MAX];
};

/* 0, or -ENOENT when the table has no column of the name *missing, which the template owns. */
int row_shape_read(struct row_shape *shape, const struct key_template *key,
                   struct pgoutput_relation relation, const char **missing);

/* Whether an update of the key tells the one before: whether the relation's replica identity has
 * the key's columns. */
bool row_identity_tells(const struct key_template *key, struct pgoutput_relation relation);

/* Whether the rows of the event are such rows. */
bool row_shape_fits(const struct row_shape *shape, const struct pgoutput_event *event);

enum row_key_outcome {
    ROW_KEY_WHOLE,
    ROW_KEY_NONE /* a column is NULL: the row has no key */,
    ROW_KEY_UNKNOWN /* a column was not sent */
};

/* The key of `tuple`, which fits, into `out`. Columns that it leaves out, because an update did not
 * touch them, are taken from `spare`. */
enum row_key_outcome row_key_read(const struct row_shape *shape, const struct key_template *key,
                                  struct pgoutput_tuple tuple, struct pgoutput_tuple spare,
                                  struct buffer *out);

#endif
