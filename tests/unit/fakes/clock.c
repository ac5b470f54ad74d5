#include "fakes/clock.h"

uint64_t now_ms, now_ns;

uint64_t clock_ms(void)
{
    return now_ms;
}

uint64_t clock_ns(void)
{
    return now_ns;
}
