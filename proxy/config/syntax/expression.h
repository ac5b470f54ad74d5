/* SQL expressions in settings, as far as they are looked into: they are not parsed, which the
 * server does.
 */
#ifndef NESTGUARD_EXPRESSION_H
#define NESTGUARD_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a text that may also be a column's name is an expression: it has one of the signs of one
 * that names hardly ever have, ( ' || :: and ->, outside of double quotes that it begins with. So
 * whatever stands in parentheses is one, and whatever stands in double quotes as a whole is none.
 */
bool expression_is_one(const char *text);

/* Names without repetitions. Zeroed: none. */
struct expression_names {
    char **at;
    size_t count;
};

/* Adds all that may be a name in the expression, as the catalogue would have it: each word, folded
 * to lower case and as it is, and what stands between two double quotes. Constants and comments are
 * not told from the rest: there may be too many names, and none is missing but one with a double
 * quote in it. NULL has none. */
void expression_names_add(struct expression_names *names, const char *expression);
void expression_names_finish(struct expression_names *names);

#endif
