/* Calls under way are few: each change is compared with all of their keys. */
#include "keeper/changes/touches.h"

void touches_init(struct touches *touches, struct watch *watch)
{
    *touches = (struct touches){.watch = watch};
}

void touches_open(struct touches *touches, struct key_touch *touch)
{
    touch->next = touches->first;
    touches->first = touch;
    watch_add(touches->watch, touch->key);
}

void touches_close(struct touches *touches, struct key_touch *touch)
{
    struct key_touch **at = &touches->first;
    while (*at != touch)
        at = &(*at)->next;
    *at = touch->next;
    watch_drop(touches->watch, touch->key);
}

void touches_hear(void *arg, const struct key_change *change)
{
    const struct touches *touches = arg;
    bool of_keyspace = cause_is_of_keyspace(change->cause);
    for (struct key_touch *touch = touches->first; touch; touch = touch->next)
        touch->touched |= of_keyspace ? touch->key.keyspace == change->key.keyspace
                                      : key_equals(touch->key, change->key);
}

/* Who is told may close its call, and its touch with it, or wait for another probe: so the next is
 * taken before, and the mark is cleared first. */
void touches_probed(struct touches *touches)
{
    struct key_touch *next;
    for (struct key_touch *touch = touches->first; touch; touch = next) {
        void (*on_probe)(struct key_touch *) = touch->on_probe;
        next = touch->next;
        touch->on_probe = NULL;
        if (on_probe)
            on_probe(touch);
    }
}
