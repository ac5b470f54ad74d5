/* The little that all parts of a worker do alike. */
#include "worker/reply/serving.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

void serving_ask_keeper(struct serving *serving, struct message *message)
{
    message->sender = &serving->mailbox;
    serving->asked++;
    mailbox_post(serving->keeper, message);
}

/* Compared as far as they are kept. */
static bool is_news(const char *last, const char *why, size_t size)
{
    return strncmp(last, why, size - 1) != 0;
}

void serving_log_cache(struct serving *serving, const char *why)
{
    char *last = serving->cache_lost;
    if (why && is_news(last, why, sizeof serving->cache_lost)) {
        log_warning("worker %u: cache connection: %s", serving->index, why);
        snprintf(last, sizeof serving->cache_lost, "%s", why);
    } else if (!why && *last) {
        log_info("worker %u: cache connection is back", serving->index);
        *last = '\0';
    }
}
