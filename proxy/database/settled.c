/* One bound is waited for at a time. A generation that is built meanwhile does not replace it: with
 * builds that follow each other quickly, none would ever be settled.
 */
#include "database/settled.h"

static void settle(struct settled *settled, uint64_t number, uint64_t before)
{
    settled->number = number;
    settled->before = before;
    settled->waiting = 0;
}

uint64_t settled_learn(struct settled *settled, uint64_t number, const struct snapshot *snapshot,
                       uint32_t next)
{
    uint64_t before = settled->built;
    settled->built = number;
    if (settled->waiting && snapshot_has_passed(snapshot, settled->bound))
        settle(settled, settled->waiting, settled->before_waiting);
    if (snapshot_has_passed(snapshot, next)) {
        settle(settled, number, before);
    } else if (!settled->waiting) {
        settled->waiting = number;
        settled->before_waiting = before;
        settled->bound = next;
    }
    return settled->number;
}

void settled_forget(struct settled *settled)
{
    settled->waiting = 0;
}
