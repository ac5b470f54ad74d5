/* "reading keys: 12000000 of 30000000 (40 %), 1700000 a second, 11 s left" on standard error, when
 * that is a terminal: one line, written over. Where it is none, all of these do nothing. One thread
 * at a time. */
#ifndef NESTGUARD_PROGRESS_H
#define NESTGUARD_PROGRESS_H

#include <stdint.h>

/* Shows how far something is, at most ten times a second, with its rate and the rest of the time as
 * far as they are known. `total` is 0 when it is not known. Another `what` begins anew. */
void progress_show(const char *what, uint64_t done, uint64_t total);

/* Wipes the line out, which must be before anything else is printed. */
void progress_end(void);

/* While the caller waits for something that does not say how far it is: how long that has taken,
 * once it is two seconds. Between the two nothing else is shown. `what` lives as long. */
void progress_wait_begin(const char *what);
void progress_wait_end(void);

#endif
