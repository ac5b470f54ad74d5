/* The value of a row that was loaded, out of the database's answer. */
#ifndef NESTGUARD_ROW_VALUE_H
#define NESTGUARD_ROW_VALUE_H

#include "base/blob.h"
#include "postgres/pg_answer.h"

/* Of the answer's column 0, in that row; a bytea as its bytes. One reference, or NULL: there is no
 * memory for it. A large one may take the answer's result with it, which is to be looked at no
 * more. */
struct blob *row_value_take(const struct pg_answer *answer, int row);

#endif
