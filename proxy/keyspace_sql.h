/* The SQL that a keyspace needs, made from its settings; see struct keyspace_sql in config.h. */
#ifndef NESTGUARD_KEYSPACE_SQL_H
#define NESTGUARD_KEYSPACE_SQL_H

#include "config.h"

/* Fills keyspace->sql from table, key, value and where. Without a value (on_miss: pass needs none)
 * `load` gives NULL in its place, so that it still tells which rows there are. */
void keyspace_sql_init(struct keyspace *keyspace);
void keyspace_sql_finish(struct keyspace_sql *sql);

/* Reads `name`, `schema.name` and quoted forms by SQL's rules (unquoted is folded to lower case)
 * into new strings; schema may become NULL. 0, or -EINVAL with a static *error. */
int table_name_parse(const char *text, char **schema, char **name, const char **error);

/* Reads a column's name into a new string: exact as in the catalogue (not folded), or in double
 * quotes, which are dropped ("" inside is one quote). 0, or -EINVAL with a static *error. */
int column_name_parse(const char *text, char **name, const char **error);

/* A new string: the identifier in double quotes, inner quotes doubled. */
char *identifier_quote(const char *name);

#endif
