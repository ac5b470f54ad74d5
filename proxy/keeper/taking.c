/* Answers do not say what they answer: whoever gets one takes it for that of the oldest entry that
 * it has sent. Workers are told of entries in one order, and so have each before the next; but one
 * that no worker needs would be answered ahead of those.
 */
#include "keeper/taking.h"

#include "base/memory.h"
#include "guard/guard.h"
#include "keeper/told_entry.h"

#include <stdlib.h>

/* An entry that not every worker has yet: it is answered then, and with it so many behind it that
 * no worker needs. */
struct applying {
    struct taking *taking;
    unsigned answers;
};

static void on_applied(void *arg, bool known)
{
    struct applying *applying = arg;
    struct taking *taking = applying->taking;
    (void)known;
    if (taking->newest == applying)
        taking->newest = NULL;
    while (applying->answers--)
        taking->answer(taking->arg);
    free(applying);
}

static struct applying *begin_applying(struct taking *taking)
{
    struct applying *applying = xmalloc(sizeof *applying);
    *applying = (struct applying){taking, 1};
    taking->newest = applying;
    return applying;
}

static void answer_behind_others(struct taking *taking)
{
    if (taking->newest)
        taking->newest->answers++;
    else
        taking->answer(taking->arg);
}

/* A key that is not guarded by our file needs no entry; nor does anything at the end. */
void taking_take(struct taking *taking, struct span bytes, bool is_answered)
{
    struct entries *entries = taking->entries;
    struct told_entry told;
    if (!told_entry_read(&told, bytes))
        return;
    int keyspace = guard_match(entries->view->config, told.key);
    if (keyspace != NOT_GUARDED && !entries->ending) {
        struct key key = key_make(keyspace, told.key);
        struct override entry = told_entry_here(&told, entries, key);
        struct applying *applying = is_answered ? begin_applying(taking) : NULL;
        entries_put_here(entries, key, entry, applying ? on_applied : NULL, applying);
    } else if (is_answered) {
        answer_behind_others(taking);
    }
}
