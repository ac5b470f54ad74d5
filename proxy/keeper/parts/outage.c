#include "keeper/parts/outage.h"

#include <stdio.h>

enum { TAIL = 32 }; /* room for "; and N more" */

/* One that has no room is only counted, and so are those behind it: the text is of the first. */
void outage_add(struct outage *outage, const char *address, const char *role, const char *why)
{
    size_t room = sizeof outage->text - TAIL - outage->length;
    char *at = outage->text + outage->length;
    if (outage->named < outage->count++)
        return;
    int length = snprintf(at, room, "%s%.160s%s%s%s: %.160s", outage->named ? "; " : "", address,
                          role ? " (" : "", role ? role : "", role ? ")" : "", why);
    if (length < 0 || (size_t)length >= room) {
        *at = '\0';
        return;
    }
    outage->length += (size_t)length;
    outage->named++;
}

const char *outage_text(struct outage *outage)
{
    if (outage->named < outage->count)
        snprintf(outage->text + outage->length, sizeof outage->text - outage->length,
                 "; and %zu more", outage->count - outage->named);
    return outage->text;
}
