/* "reading keys: 12 million" on standard error, when that is a terminal: one line, written over. */
#ifndef NESTGUARD_PROGRESS_H
#define NESTGUARD_PROGRESS_H

#include <stdint.h>

/* Shows how far something is, at most ten times a second. `total` is 0 when it is not known. */
void progress_show(const char *what, uint64_t done, uint64_t total);

/* Wipes the line out. */
void progress_end(void);

/* While the caller waits for something that does not say how far it is: how long that has taken,
 * once it is two seconds. Between the two nothing else is shown. `what` lives as long. */
void progress_wait_begin(const char *what);
void progress_wait_end(void);

#endif
