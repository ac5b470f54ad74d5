/* Another table that a keyspace's values are made of, as `depends` names it:
 *
 *   authors                            any change of it makes all values of the keyspace old
 *   order_lines on order_id = id       each of its rows tells whose value it is part of: its column
 *                                      order_id is what `id` is in the keyspace's key
 *
 * Names are as SQL has those of tables, and as the catalogue has those of columns, or in double
 * quotes.
 */
#ifndef NESTGUARD_DEPENDENCY_H
#define NESTGUARD_DEPENDENCY_H

#include "config/syntax/key_template.h"

struct dependency {
    char *text;        /* as written */
    char *schema;      /* NULL: by search_path */
    char *name;        /* this and that as the catalogue has them */
    size_t columns;    /* how many pairs there are; 0: its rows do not tell whose they are */
    char **column;     /* of its own, */
    char **key_column; /* and the column of the key that has the same text */
};

struct dependencies {
    struct dependency *at;
    size_t count;
};

/* 0, or -EINVAL with a static *error and nothing to free. */
int dependency_parse(struct dependency *out, const char *text, const char **error);
void dependency_finish(struct dependency *dependency);

/* The keyspace's template with the table's columns in place of the keyspace's: a row of the table
 * has the key that this renders. Without columns where the rows do not tell, or where not each
 * column of the key is told once. It shares all texts with both, so that nothing is to be freed. */
struct key_template dependency_key(const struct dependency *dependency,
                                   const struct key_template *key);

bool dependencies_equal(const struct dependencies *one, const struct dependencies *other);
void dependencies_copy(struct dependencies *to, const struct dependencies *from);
void dependencies_finish(struct dependencies *dependencies); /* a second time does nothing */

#endif
