/* A clock that goes when the test says so: clock_ms() of base/clock.h. */
#ifndef NESTGUARD_FAKES_CLOCK_H
#define NESTGUARD_FAKES_CLOCK_H

#include "base/clock.h"

extern uint64_t now_ms;

#endif
