#include "worker/client/redirection.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

struct redirection {
    _Atomic unsigned users; /* the connection itself, and who redirects to it */
};

struct redirection *redirection_begin(struct redirection **own)
{
    if (!*own) {
        *own = xcalloc(1, sizeof **own);
        atomic_init(&(*own)->users, 1);
    }
    atomic_fetch_add_explicit(&(*own)->users, 1, memory_order_relaxed);
    return *own;
}

bool redirection_is_used(const struct redirection *own)
{
    return own && atomic_load_explicit(&own->users, memory_order_relaxed) > 1;
}

void redirection_end(struct redirection **redirection)
{
    struct redirection *ended = *redirection;
    *redirection = NULL;
    if (ended && atomic_fetch_sub_explicit(&ended->users, 1, memory_order_acq_rel) == 1)
        free(ended);
}

void redirection_move(struct redirection **to, struct redirection **from)
{
    redirection_end(to);
    *to = *from;
    *from = NULL;
}
