#include "guard/expiry.h"

#include "base/clock.h"
#include "guard/overrides.h"

enum {
    AT_ONCE = 256,  /* some 50 us */
    PER_TICK = 1000 /* and a part of a large table */
};

static void on_idle(uv_idle_t *idle)
{
    struct expiry *expiry = idle->data;
    size_t most = expiry->left < AT_ONCE ? expiry->left : AT_ONCE;
    overrides_expire(expiry->table, clock_ms(), most);
    expiry->left -= most;
    if (!expiry->left)
        uv_idle_stop(idle);
}

static void look_at(struct expiry *expiry, size_t most)
{
    size_t count = overrides_count(expiry->table);
    most = most < count ? most : count;
    expiry->left = most > expiry->left ? most : expiry->left;
    if (expiry->left)
        uv_idle_start(&expiry->idle, on_idle);
}

void expiry_tick(struct expiry *expiry)
{
    look_at(expiry, PER_TICK + overrides_count(expiry->table) / 64);
    overrides_settle(expiry->table);
}

void expiry_hurry(struct expiry *expiry)
{
    look_at(expiry, overrides_count(expiry->table));
}

void expiry_init(struct expiry *expiry, uv_loop_t *loop, struct overrides *table)
{
    *expiry = (struct expiry){.table = table};
    uv_idle_init(loop, &expiry->idle);
    expiry->idle.data = expiry;
}

void expiry_close(struct expiry *expiry)
{
    uv_close((uv_handle_t *)&expiry->idle, NULL);
}
