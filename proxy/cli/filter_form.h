/* `nestguard filter build KEYS FILE`, `filter info FILE` and `filter query FILE`: a filter without
 * a guard. */
#ifndef NESTGUARD_FILTER_FORM_H
#define NESTGUARD_FILTER_FORM_H

/* The word `filter` and those behind it. Returns the exit status: 0, 1 when it failed, 2 for wrong
 * usage. That a key is absent is an answer of `query`, and no failure. */
int filter_form_main(int argc, char **argv);

#endif
