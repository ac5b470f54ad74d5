/* The server prints xmin:xmax:running,running,... with ids of 64 bits, and rows and the log have
 * ids of 32. Only the lower half is kept, and ids are compared by their distance from xmin: within
 * 2^31 of it that is their order, also where they have wrapped.
 */
#include "database/snapshot.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One id of 64 bits, of which the upper half counts how often the lower one has wrapped. */
static int read_xid(const char **text, uint32_t *xid)
{
    char *end;
    if (**text < '0' || **text > '9')
        return -EPROTO;
    *xid = (uint32_t)strtoull(*text, &end, 10);
    *text = end;
    return 0;
}

static int read_running(struct snapshot *snapshot, const char *text)
{
    size_t size = *text != '\0';
    for (const char *at = text; (at = strchr(at, ',')); at++)
        size++;
    snapshot->running = xcalloc(size ? size : 1, sizeof *snapshot->running);
    while (snapshot->count < size) {
        if (read_xid(&text, &snapshot->running[snapshot->count]) < 0)
            return -EPROTO;
        snapshot->count++;
        if (*text == ',')
            text++;
    }
    return *text ? -EPROTO : 0;
}

static int read_bound(const char **text, uint32_t *xid)
{
    if (read_xid(text, xid) < 0 || **text != ':')
        return -EPROTO;
    ++*text;
    return 0;
}

int snapshot_read(struct snapshot *out, const char *text)
{
    *out = (struct snapshot){0};
    int status = read_bound(&text, &out->xmin);
    if (!status)
        status = read_bound(&text, &out->xmax);
    if (!status)
        status = read_running(out, text);
    if (status)
        snapshot_finish(out);
    return status;
}

void snapshot_finish(struct snapshot *snapshot)
{
    free(snapshot->running);
    *snapshot = (struct snapshot){0};
}

/* The list ascends by distance from xmin, also where the ids wrap. */
static bool is_running(const struct snapshot *snapshot, uint32_t xid)
{
    size_t low = 0, high = snapshot->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (snapshot->running[middle] - snapshot->xmin < xid - snapshot->xmin)
            low = middle + 1;
        else
            high = middle;
    }
    return low < snapshot->count && snapshot->running[low] == xid;
}

bool snapshot_is_over(const struct snapshot *snapshot, uint32_t xid)
{
    if (xid_precedes(xid, snapshot->xmin))
        return true;
    return xid_precedes(xid, snapshot->xmax) && !is_running(snapshot, xid);
}

/* What is over in the earlier one lies below its xmax, and so below this one's: of that only those
 * that are listed as running here are not over. */
bool snapshot_covers(const struct snapshot *snapshot, const struct snapshot *earlier)
{
    if (xid_precedes(snapshot->xmax, earlier->xmax))
        return false;
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot_is_over(earlier, snapshot->running[i]))
            return false;
    return true;
}

/* xmin is the oldest that is not over. */
bool snapshot_has_passed(const struct snapshot *snapshot, uint32_t xid)
{
    return !xid_precedes(snapshot->xmin, xid);
}
