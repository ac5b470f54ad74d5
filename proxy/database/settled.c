/* One bound is waited for at a time, and one beginning. A generation that is built meanwhile does
 * not replace it: with builds that follow each other quickly, none would ever be settled.
 */
#include "database/settled.h"

static bool is_old(const struct settled_build *build, uint64_t begun)
{
    return begun <= build->asked && build->asked - begun >= build->behind;
}

/* The newest generation for which this one's bound speaks: who told of a key before that was begun
 * had an id by then, and the server has heard of it. */
static uint64_t spoken_for(struct settled *settled, const struct settled_build *build)
{
    if (settled->young && is_old(build, settled->young_begun)) {
        settled->old = settled->young;
        settled->young = 0;
    }
    if (is_old(build, build->begun)) {
        settled->old = build->number;
        settled->young = 0;
    } else if (!settled->young) {
        settled->young = build->number;
        settled->young_begun = build->begun;
    }
    return settled->old;
}

static void settle(struct settled *settled, uint64_t number)
{
    settled->number = number;
    settled->waiting = 0;
}

uint64_t settled_learn(struct settled *settled, const struct settled_build *build)
{
    uint64_t spoken = spoken_for(settled, build);
    if (settled->waiting && snapshot_has_passed(build->snapshot, settled->bound))
        settle(settled, settled->waiting);
    if (snapshot_has_passed(build->snapshot, build->next)) {
        settle(settled, spoken);
    } else if (!settled->waiting && spoken > settled->number) {
        settled->waiting = spoken;
        settled->bound = build->next;
    }
    return settled->number;
}

/* How far the other one is behind only it can say, so nothing is old enough for its bounds yet but
 * what is settled. */
void settled_forget(struct settled *settled)
{
    settled->waiting = 0;
    settled->old = settled->number;
}
