/* What shells offer behind `nestguard` and `nestguard-ctl`. */
#ifndef NESTGUARD_COMPLETIONS_H
#define NESTGUARD_COMPLETIONS_H

#include <stdio.h>

/* Each writes a whole script, for both programs. Whether it could be written, `out` knows when it
 * is flushed. */
void completion_bash(FILE *out);
void completion_zsh(FILE *out);

#endif
