/* The rows that command_find() looks in; for it and for the test that holds them against a real
 * Redis. */
#ifndef NESTGUARD_COMMAND_TABLE_H
#define NESTGUARD_COMMAND_TABLE_H

#include "command.h"

extern const struct command command_table[];
extern const size_t command_table_rows;

#endif
