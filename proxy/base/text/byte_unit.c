#include "base/text/byte_unit.h"

#include <stddef.h>

double byte_unit(double bytes, const char **unit)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;
    for (; bytes >= 1024 && i + 1 < sizeof units / sizeof *units; i++)
        bytes /= 1024;
    *unit = units[i];
    return bytes;
}
