/* One worker's word stands for all: they ask the same servers the same. */
#include "keeper/parts/replica_watch.h"

#include "base/memory.h"

#include <stdlib.h>

enum { PAUSE_MS = 1000, ROOM = 256 };

static void use(struct replica_watch *watch, struct replica_word *words, size_t count)
{
    free(watch->words);
    watch->words = words;
    watch->count = count;
}

void replica_watch_check_time(struct replica_watch *watch, bool wanted, uint64_t now)
{
    const struct outlet *outlet = watch->outlet;
    if (!wanted)
        use(watch, NULL, 0);
    if (!wanted || watch->under_way || !outlet->count || now - watch->asked < PAUSE_MS)
        return;
    struct replicas_message *message = xcalloc(1, sizeof *message);
    message->message = (struct message){.kind = MESSAGE_REPLICAS, .sender = outlet->sender};
    message->room = ROOM;
    message->words = xcalloc(ROOM, sizeof *message->words);
    watch->asked = now;
    watch->under_way = true;
    mailbox_post(outlet->to[0], &message->message);
}

void replica_watch_take_back(struct replica_watch *watch, struct replicas_message *message)
{
    watch->under_way = false;
    use(watch, message->words, message->count);
    free(message);
}

void replica_watch_finish(struct replica_watch *watch)
{
    use(watch, NULL, 0);
}
