/* What shells offer behind `nestguard` and `nestguard-ctl`. */
#ifndef NESTGUARD_COMPLETIONS_H
#define NESTGUARD_COMPLETIONS_H

#include <stdio.h>

void completion_bash(FILE *out);
void completion_zsh(FILE *out);

#endif
