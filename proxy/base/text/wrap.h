/* Text for a terminal. */
#ifndef NESTGUARD_WRAP_H
#define NESTGUARD_WRAP_H

#include <stdio.h>

/* Prints the words up to column 80, each line `indent` columns in, and a line end. */
void print_wrapped(const char *text, int indent, FILE *out);

#endif
