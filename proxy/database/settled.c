/* One bound is waited for at a time. A generation that is built meanwhile does not replace it: with
 * builds that follow each other quickly, none would ever be settled.
 */
#include "database/settled.h"

uint64_t settled_learn(struct settled *settled, uint64_t number, const struct snapshot *snapshot,
                       uint32_t next)
{
    if (settled->waiting && snapshot_has_passed(snapshot, settled->bound)) {
        settled->number = settled->waiting;
        settled->waiting = 0;
    }
    if (snapshot_has_passed(snapshot, next)) {
        settled->number = number;
        settled->waiting = 0;
    } else if (!settled->waiting) {
        settled->waiting = number;
        settled->bound = next;
    }
    return settled->number;
}

void settled_forget(struct settled *settled)
{
    settled->waiting = 0;
}
