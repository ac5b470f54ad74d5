#include "fakes/clock.h"

uint64_t now_ms;

uint64_t clock_ms(void)
{
    return now_ms;
}
