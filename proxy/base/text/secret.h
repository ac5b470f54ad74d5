/* Comparing what somebody gave with what is secret, without telling by the time that it takes how
 * much of it was right. */
#ifndef NESTGUARD_SECRET_H
#define NESTGUARD_SECRET_H

#include "base/span.h"

/* The time depends on the length of `given`, and on nothing of `secret`. */
bool secret_equal(struct span given, struct span secret);

#endif
