/* Bytes of strangers, for people to read. */
#ifndef NESTGUARD_SHOWN_H
#define NESTGUARD_SHOWN_H

#include "base/span.h"

/* A new string, in double quotes: letters and signs of ASCII are as they are, but for " and \, and
 * what else there is stands as \xNN, so that no line of a log and no terminal is misled by it. */
char *text_shown(struct span bytes);

#endif
