/* The little that all parts of a worker do alike. */
#include "serving.h"

#include "log.h"

void serving_ask_keeper(struct serving *serving, struct message *message)
{
    message->sender = &serving->mailbox;
    serving->asked++;
    mailbox_post(serving->keeper, message);
}

void serving_log_cache(struct serving *serving, const char *why)
{
    bool lost = why != NULL;
    if (lost && !serving->cache_lost)
        log_warning("worker %u: cache connection: %s", serving->index, why);
    else if (!lost && serving->cache_lost)
        log_info("worker %u: cache connection is back", serving->index);
    serving->cache_lost = lost;
}
