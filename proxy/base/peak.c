#include "base/peak.h"

enum {
    MUCH = 32 * 1024 * 1024, /* less is not looked for */
    SHARE = 4                /* over when so small a part of it is left */
};

void peak_note(struct peak *peak, size_t bytes)
{
    if (bytes > peak->bytes)
        peak->bytes = bytes;
}

bool peak_is_over(struct peak *peak, size_t bytes)
{
    peak_note(peak, bytes);
    if (peak->bytes < MUCH || bytes > peak->bytes / SHARE)
        return false;
    peak->bytes = bytes;
    return true;
}
