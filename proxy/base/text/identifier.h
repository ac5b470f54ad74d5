/* Names of tables and columns: as people write them, and as SQL takes them. */
#ifndef NESTGUARD_IDENTIFIER_H
#define NESTGUARD_IDENTIFIER_H

#include "base/buffer.h"

/* Reads `name`, `schema.name` and quoted forms by SQL's rules (unquoted is folded to lower case)
 * into new strings; schema may become NULL. 0, or -EINVAL with a static *error. */
int table_name_parse(const char *text, char **schema, char **name, const char **error);

/* Reads a column's name into a new string: exact as in the catalogue (not folded), or in double
 * quotes, which are dropped ("" inside is one quote). 0, or -EINVAL with a static *error. */
int column_name_parse(const char *text, char **name, const char **error);

/* A new string: the identifier in double quotes, inner quotes doubled. */
char *identifier_quote(const char *name);

/* Appends the same. */
void identifier_put(struct buffer *out, const char *name);

#endif
