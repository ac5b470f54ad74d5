/* Do the filters find room in max_filter_memory? */
#ifndef NESTGUARD_CHECK_MEMORY_H
#define NESTGUARD_CHECK_MEMORY_H

#include "base/problem.h"
#include "config/config.h"
#include "database/catalogue/questions.h"

/* Adds a warning when those of the rows that there are do not, beside others of so many bytes, as
 * far as the server can estimate how many rows these are. */
void check_memory(const struct config *config, size_t beside, struct questions *questions,
                  struct problems *problems);

#endif
