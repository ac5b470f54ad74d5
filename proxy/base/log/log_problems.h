/* Findings for whoever reads the log, where nobody waits for them at a terminal. */
#ifndef NESTGUARD_LOG_PROBLEMS_H
#define NESTGUARD_LOG_PROBLEMS_H

#include "base/problem.h"

/* A line for each error and each warning. `format` has four %s: the place, the text, and with what
 * mends it before that some words, or twice "". Notes are for who has asked what there is to say.
 */
void log_problems(const char *format, const struct problems *problems);

#endif
