/* What the loads remember of keys that the database did not have. To answer by it is to reject,
 * only later than the filter would have: so it takes what a rejection takes, permission and a
 * keyspace that enforces. In shadow mode nothing is remembered, for a row may have come that nobody
 * has told of, and whoever watches would take the nil for the database's.
 */
#include "cache/loads_internal.h"

#include "guard/guard.h"

static bool is_enforced(const struct view *view, int keyspace)
{
    return view->config->keyspaces[keyspace].enforce;
}

uint64_t loads_generation_of(const struct loads *loads, int keyspace)
{
    const struct view *view = loads->view;
    return view_may_reject(view, keyspace) ? view->generation->number : 0;
}

/* The filter let the key through. Where nothing is enforced also those come that it rules out. */
static bool is_false_positive(const struct load *load)
{
    const struct view *view = load->loads->view;
    return is_enforced(view, load->key.keyspace) || guard_holds(view, load->key);
}

void loads_found_absent(const struct load *load)
{
    struct loads *loads = load->loads;
    int keyspace = load->key.keyspace;
    if (load->stale || load->unseen || !load->generation ||
        load->generation != loads_generation_of(loads, keyspace))
        return;
    if (loads->options.is_expected && loads->options.is_expected(loads->options.arg, load->key))
        return;
    counter_add(&loads->options.counters[keyspace].false_positives, is_false_positive(load));
    if (is_enforced(loads->view, keyspace))
        negative_cache_add(&loads->absent, load->key);
}

bool loads_deny(const struct loads *loads, struct key key)
{
    return is_enforced(loads->view, key.keyspace) && loads_generation_of(loads, key.keyspace) &&
           negative_cache_has(&loads->absent, key);
}

bool loads_knows_absent(const struct loads *loads, struct key key)
{
    return negative_cache_has(&loads->absent, key);
}

/* Keyspaces keep their numbers. */
static bool is_any_let_go(const struct view *before, const struct view *now)
{
    for (size_t i = 0; i < before->config->keyspace_count; i++)
        if (is_enforced(before, (int)i) && !is_enforced(now, (int)i))
            return true;
    return false;
}

/* Absences were remembered of keys that the filter before took for possible. Those of a keyspace
 * that is let go, and perhaps enforced again later, could be told to be over by queries that find a
 * row, but none need come. To forget the others' as well only costs them a query each. */
void loads_outdate_absences(struct loads *loads, const struct view *view)
{
    if (view->generation != loads->view->generation || is_any_let_go(loads->view, view))
        negative_cache_clear(&loads->absent);
}
