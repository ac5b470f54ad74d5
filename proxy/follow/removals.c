/* Two spools take turns. What comes, and what a round holds on, is written to one; a round reads
 * the other, which was written before it began:
 *
 *   removals_hold() ─▶ spools[!reading]                    ┌─ vouched for ─▶ out of the filter
 *   removals_vouch(): the two change places ─▶ spools[reading] ─▶ removals_next()
 *                                                          └─ not yet ─▶ spools[!reading]
 *
 * So each is looked at once in a round, and one that comes during a round waits for the next. A
 * newer snapshot that comes meanwhile counts for the rest of it: what is over stays over.
 */
#include "follow/removals.h"

#include "base/memory.h"
#include "database/snapshot.h"
#include "follow/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct removals {
    struct snapshot vouched; /* the newest; none: nothing is over in it */
    bool has_vouched;
    /* One is written, the other one is read; what is not vouched for goes from this to that. */
    struct spool spools[2];
    unsigned reading;
    bool under_way, begun; /* the round; its first was asked for */
    size_t count;          /* held, in both spools */
    size_t of[];           /* the same of each keyspace */
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

int removals_hold(struct removals *removals, const struct removal *removal)
{
    removals->count++;
    removals->of[removal->keyspace]++;
    return write_down(removals, removal);
}

void removals_vouch(struct removals *removals, const char *snapshot)
{
    forget_vouched(removals);
    removals->has_vouched = snapshot_read(&removals->vouched, snapshot) == 0;
    if (removals->under_way || !removals->count)
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
    removals->count--;
    removals->of[removal->keyspace]--;
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
