#include "base/text/byte_unit.h"

#include <stddef.h>

/* Steps of 1024, as these units have it (IEC 80000-13): kB would be thousands. */
double byte_unit(double bytes, const char **unit)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;
    for (; bytes >= 1024 && i + 1 < sizeof units / sizeof *units; i++)
        bytes /= 1024;
    *unit = units[i];
    return bytes;
}
