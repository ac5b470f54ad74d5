#include "database/row_ttl.h"

#include <math.h>
#include <stdlib.h>

#define MOST_S (3650.0 * 24 * 60 * 60)

int64_t row_ttl_ms(const char *seconds)
{
    char *end;
    if (!seconds)
        return ROW_TTL_UNSAID;
    double number = strtod(seconds, &end);
    if (end == seconds || *end || isnan(number))
        return ROW_TTL_UNREADABLE;
    if (number <= 0)
        return ROW_TTL_OVER;
    number = number < MOST_S ? number : MOST_S;
    return number < 0.001 ? 1 : (int64_t)(number * 1000);
}
