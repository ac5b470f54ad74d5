/* Two spools take turns. What comes, and what a round holds on, is written to one; a round reads
 * the other, which was written before it began:
 *
 *   removals_hold() ─▶ spools[!reading]                    ┌─ vouched for ─▶ out of the filter
 *   removals_vouch(): the two change places ─▶ spools[reading] ─▶ removals_next()
 *                                                          └─ not yet ─▶ spools[!reading]
 *
 * So each is looked at once in a round, and one that comes during a round waits for the next. A
 * newer snapshot that comes meanwhile counts for the rest of it: what is over stays over.
 *
 * A round is begun for something: as long as what is held is of few transactions, and none of them
 * is over, as when one has deleted millions of rows and its commit waits for somebody, there is
 * none.
 */
#include "follow/removals.h"

#include "base/memory.h"
#include "database/snapshot.h"
#include "follow/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTED_MAX = 32 };

/* Those of one transaction that are held. */
struct counted {
    uint32_t xid;
    size_t count; /* not 0 */
};

struct removals {
    struct snapshot vouched; /* the newest; none: nothing is over in it */
    bool has_vouched;
    /* One is written, the other one is read; what is not vouched for goes from this to that. */
    struct spool spools[2];
    unsigned reading;
    bool under_way, begun; /* the round; its first was asked for */
    size_t count;          /* held, in both spools */
    struct counted counted[COUNTED_MAX];
    size_t counted_count;
    size_t others; /* that are held, of transactions that had no place there */
    size_t of[];   /* the same of each keyspace */
};

struct removals *removals_create(size_t keyspaces)
{
    return xcalloc(1, sizeof(struct removals) + keyspaces * sizeof(size_t));
}

static void forget_vouched(struct removals *removals)
{
    if (removals->has_vouched)
        snapshot_finish(&removals->vouched);
    removals->has_vouched = false;
}

void removals_destroy(struct removals *removals)
{
    if (!removals)
        return;
    forget_vouched(removals);
    spool_finish(&removals->spools[0]);
    spool_finish(&removals->spools[1]);
    free(removals);
}

bool removals_are_vouched(const struct removals *removals, uint32_t xid)
{
    return removals->has_vouched && snapshot_is_over(&removals->vouched, xid);
}

static int write_down(struct removals *removals, const struct removal *removal)
{
    return spool_append(&removals->spools[!removals->reading], removal, sizeof *removal);
}

/* NULL: it has no place. The latest is asked for most. */
static struct counted *counted_of(struct removals *removals, uint32_t xid)
{
    for (size_t i = removals->counted_count; i-- > 0;)
        if (removals->counted[i].xid == xid)
            return &removals->counted[i];
    return NULL;
}

static void count_in(struct removals *removals, const struct removal *removal)
{
    struct counted *counted = counted_of(removals, removal->xid);
    removals->count++;
    removals->of[removal->keyspace]++;
    if (counted)
        counted->count++;
    else if (removals->counted_count < COUNTED_MAX)
        removals->counted[removals->counted_count++] = (struct counted){removal->xid, 1};
    else
        removals->others++;
}

static void count_out(struct removals *removals, const struct removal *removal)
{
    struct counted *counted = counted_of(removals, removal->xid);
    removals->count--;
    removals->of[removal->keyspace]--;
    if (!counted)
        removals->others--;
    else if (--counted->count == 0)
        *counted = removals->counted[--removals->counted_count];
}

int removals_hold(struct removals *removals, const struct removal *removal)
{
    count_in(removals, removal);
    return write_down(removals, removal);
}

/* Whether any that is held may be vouched for. */
static bool has_due(const struct removals *removals)
{
    bool due = removals->others > 0;
    for (size_t i = 0; i < removals->counted_count && !due; i++)
        due = removals_are_vouched(removals, removals->counted[i].xid);
    return due;
}

void removals_vouch(struct removals *removals, const char *snapshot)
{
    forget_vouched(removals);
    removals->has_vouched = snapshot_read(&removals->vouched, snapshot) == 0;
    if (removals->under_way || !has_due(removals))
        return;
    removals->reading = !removals->reading;
    removals->under_way = true;
    removals->begun = false;
}

static int take(struct removals *removals, struct span *bytes)
{
    struct spool *spool = &removals->spools[removals->reading];
    int status = removals->begun ? 0 : spool_rewind(spool);
    removals->begun = true;
    return status ? status : spool_take(spool, sizeof(struct removal), bytes);
}

static int finish_round(struct removals *removals, int status)
{
    if (status != -ENODATA)
        return status;
    spool_clear(&removals->spools[removals->reading]);
    removals->under_way = false;
    return 0;
}

int removals_next(struct removals *removals, struct removal *removal, bool *vouched)
{
    struct span bytes;
    int status = take(removals, &bytes);
    if (status)
        return finish_round(removals, status);
    memcpy(removal, bytes.at, sizeof *removal);
    *vouched = removals_are_vouched(removals, removal->xid);
    if (!*vouched) {
        status = write_down(removals, removal);
        return status ? status : 1;
    }
    count_out(removals, removal);
    return 1;
}

bool removals_are_under_way(const struct removals *removals)
{
    return removals->under_way;
}

size_t removals_count(const struct removals *removals)
{
    return removals->count;
}

size_t removals_of(const struct removals *removals, int keyspace)
{
    return removals->of[keyspace];
}
