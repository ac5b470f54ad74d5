/* Everything here goes by positions of the log that others have asked for; times are only carried
 * along with them.
 */
#include "follow/lag.h"

#include <string.h>

/* XLOG_BLCKSZ and the sizes of XLogPageHeaderData and XLogLongPageHeaderData, which a segment
 * begins with; segments have a power of two of bytes, at least as many as here. */
enum { PAGE_BYTES = 8192, PAGE_HEADER = 24, SEGMENT_HEADER = 40, SEGMENT_LEAST = 1 << 20 };

/* The newest gives way where there are too many: the older ones will be reached first, and show
 * that the follower moves at all. */
void lag_probed(struct lag *lag, uint64_t time, uint64_t lsn)
{
    if (lsn > lag->end)
        lag->end = lsn;
    if (lag->count == LAG_PROBES)
        lag->count--;
    lag->probes[lag->count++] = (struct lag_probe){time, lsn};
    lag_reached(lag, lag->position);
}

void lag_reached(struct lag *lag, uint64_t lsn)
{
    unsigned reached = 0;
    if (lsn > lag->position)
        lag->position = lsn;
    while (reached < lag->count && lag->probes[reached].lsn <= lag->position)
        lag->known = lag->probes[reached++].time;
    lag->count -= reached;
    memmove(lag->probes, lag->probes + reached, lag->count * sizeof *lag->probes);
}

uint64_t lag_bytes(const struct lag *lag)
{
    return lag->end > lag->position ? lag->end - lag->position : 0;
}

/* Anything else than a header's size is what is left of a record, which may be a commit: that is
 * waited for. */
static bool is_header(uint64_t page, uint64_t bytes)
{
    return bytes == PAGE_HEADER || (bytes == SEGMENT_HEADER && page % SEGMENT_LEAST == 0);
}

/* No record that begins in the new page is taken for its header: the shorter of the two kinds of
 * headers is 24 bytes long, and no record is shorter than that. (For servers that were built with
 * pages of 8 kB, as nearly all are.) */
uint64_t lag_end_of_log(uint64_t insert, uint64_t flush)
{
    bool at_page = flush % PAGE_BYTES == 0;
    return at_page && insert > flush && is_header(flush, insert - flush) ? flush : insert;
}
