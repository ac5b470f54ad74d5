/* A clock that goes when the test says so: base/clock.h. */
#ifndef NESTGUARD_FAKES_CLOCK_H
#define NESTGUARD_FAKES_CLOCK_H

#include "base/clock.h"

extern uint64_t now_ms, now_ns; /* apart from each other */

#endif
