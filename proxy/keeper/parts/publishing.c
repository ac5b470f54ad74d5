/* A view is made of three things that change one by one: the configuration, the generation, and why
 * nothing may be rejected. Whoever changes one of them says so here, and then has the next view
 * made, so that several changes cost one view. A keyspace's state is worked out of them anew each
 * time and kept only to tell what is news.
 *
 * References: the newest view has one for each worker and one for the keeper. A view that was
 * replaced lives until the last worker's message has brought its reference back.
 *
 * Workers take a view when they come to it, and one that has much to deliver comes late. So
 * whatever is told of being in force (a generation's number, the answer to a call) waits until all
 * have it: who reads that his row is in the filter would else be told by some worker that there is
 * none.
 */
#include "keeper/parts/publishing.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "build/filter_size.h"

#include <stdlib.h>

const struct config *publishing_config(const struct publishing *publishing)
{
    return publishing->shared->config;
}

const struct config *publishing_first_config(const struct publishing *publishing)
{
    return publishing->first->config;
}

/* ---- states ---- */

static const char *obstacle_of(const struct publishing *publishing)
{
    for (unsigned i = 0; i < OBSTACLES; i++)
        if (publishing->obstacles[i][0])
            return publishing->obstacles[i];
    return NULL;
}

static const struct keyspace *keyspace_at(const struct publishing *publishing, size_t keyspace)
{
    return &publishing_config(publishing)->keyspaces[keyspace];
}

static bool is_retired(const struct publishing *publishing, size_t keyspace)
{
    return keyspace_at(publishing, keyspace)->retired;
}

/* Of one without a filter that counts. What keeps it from being built now says more than why it was
 * given up. */
static struct keyspace_status status_without(const struct publishing *publishing, size_t keyspace)
{
    const struct generation *generation = publishing->generation;
    const char *lacks = publishing->lacks[keyspace];
    const char *fault = generation ? generation->faults[keyspace] : NULL;
    bool was_left_out = generation && (lacks || fault);
    return (struct keyspace_status){was_left_out ? KEYSPACE_PASSING : KEYSPACE_LOADING,
                                    lacks   ? lacks
                                    : fault ? fault
                                            : "no generation is complete yet",
                                    0};
}

/* What was refused is told where there is nothing else. */
static struct keyspace_status status_of_source(const struct publishing *publishing, size_t keyspace)
{
    const struct key_set *set = publishing->sets[keyspace];
    const char *why = publishing->lacks[keyspace];
    if (!set)
        return (struct keyspace_status){KEYSPACE_LOADING,
                                        why ? why
                                        : keyspace_is_pushed(keyspace_at(publishing, keyspace))
                                            ? "nobody has pushed its keys yet"
                                            : "its source was not read yet",
                                        0};
    if (publishing->gives_way && keyspace_is_pushed(keyspace_at(publishing, keyspace)))
        return (struct keyspace_status){KEYSPACE_PASSING, "its keys are sent to the successor", 0};
    if (set->lacks)
        return (struct keyspace_status){KEYSPACE_PASSING, set->lacks, 0};
    return (struct keyspace_status){KEYSPACE_GUARDING, "the keys of its source are known", 0};
}

static bool has_ended(const _Atomic uint64_t *word)
{
    return clock_ms() >= atomic_load_explicit(word, memory_order_relaxed);
}

/* Keyspaces share a generation, but for those that it does not have, or had to give up. */
static struct keyspace_status status_now(const struct publishing *publishing, size_t keyspace)
{
    const struct generation *generation = publishing->generation;
    const char *obstacle = obstacle_of(publishing);
    if (is_retired(publishing, keyspace))
        return (struct keyspace_status){KEYSPACE_PASSING, "it is not configured any more", 0};
    if (has_ended(&publishing->standing))
        return (struct keyspace_status){KEYSPACE_PASSING, "the successor is not heard of", 0};
    if (publishing_config(publishing)->keyspaces[keyspace].source)
        return status_of_source(publishing, keyspace);
    if (!generation || !generation->filters[keyspace])
        return status_without(publishing, keyspace);
    if (obstacle)
        return (struct keyspace_status){KEYSPACE_PASSING, obstacle, 0};
    if (generation->faults[keyspace])
        return status_without(publishing, keyspace);
    if (has_ended(&generation->lease))
        return (struct keyspace_status){KEYSPACE_PASSING,
                                        "further behind the database than max_lag", 0};
    return (struct keyspace_status){KEYSPACE_GUARDING, "the generation is complete", 0};
}

/* That it protects no more is what an operator is called for. */
static void log_change(const char *name, enum keyspace_state was, struct keyspace_status now)
{
    static const char text[] = "keyspace %s: %s, was %s: %s";
    const char *is_now = keyspace_state_name(now.state), *before = keyspace_state_name(was);
    if (was == KEYSPACE_GUARDING)
        log_warning(text, name, is_now, before, now.reason);
    else
        log_info(text, name, is_now, before, now.reason);
}

/* Only a change is logged, and sets the time. */
static void update_states(struct publishing *publishing, enum keyspace_state *states)
{
    const struct config *config = publishing_config(publishing);
    for (size_t i = 0; i < config->keyspace_count; i++) {
        struct keyspace_status *status = &publishing->keyspaces[i];
        struct keyspace_status now = status_now(publishing, i);
        states[i] = now.state;
        status->reason = now.reason;
        if (status->state == now.state || is_retired(publishing, i))
            continue;
        log_change(config->keyspaces[i].name, status->state, now);
        status->state = now.state;
        status->since = clock_ms();
    }
}

bool publishing_guards(const struct publishing *publishing)
{
    for (size_t i = 0; i < publishing_config(publishing)->keyspace_count; i++)
        if (!is_retired(publishing, i) && publishing->keyspaces[i].state != KEYSPACE_GUARDING)
            return false;
    return true;
}

bool publishing_guards_any(const struct publishing *publishing)
{
    for (size_t i = 0; i < publishing_config(publishing)->keyspace_count; i++)
        if (publishing->keyspaces[i].state == KEYSPACE_GUARDING)
            return true;
    return false;
}

bool publishing_covers(const struct publishing *publishing, size_t keyspace)
{
    const struct generation *generation = publishing->generation;
    return generation && !obstacle_of(publishing) && generation_covers(generation, keyspace);
}

/* Nothing here brings its keys: whoever has them may send them or not. */
static bool waits_for_push(const struct publishing *publishing, size_t keyspace)
{
    return keyspace_is_pushed(keyspace_at(publishing, keyspace)) && !publishing->sets[keyspace];
}

/* One that only waits for its first generation is not left out. A source's keys may be refused as
 * often as they are read. */
static bool is_left_out(const struct publishing *publishing, size_t keyspace)
{
    if (publishing_config(publishing)->keyspaces[keyspace].source)
        return !publishing->sets[keyspace] && publishing->lacks[keyspace];
    return !is_retired(publishing, keyspace) && publishing->generation &&
           !generation_covers(publishing->generation, keyspace) &&
           status_without(publishing, keyspace).state == KEYSPACE_PASSING;
}

const char *publishing_left_out(const struct publishing *publishing)
{
    const struct config *config = publishing_config(publishing);
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (keyspace_has_rows(&config->keyspaces[i]) && is_left_out(publishing, i))
            return status_without(publishing, i).reason;
    return NULL;
}

bool publishing_guards_what_it_can(const struct publishing *publishing, uint64_t ms)
{
    uint64_t now = clock_ms();
    bool may_guard = false;
    for (size_t i = 0; i < publishing_config(publishing)->keyspace_count; i++) {
        const struct keyspace_status *status = &publishing->keyspaces[i];
        if (is_retired(publishing, i) || waits_for_push(publishing, i))
            continue;
        may_guard = true;
        if (status->state != KEYSPACE_GUARDING &&
            (!is_left_out(publishing, i) || now - status->since < ms))
            return false;
    }
    return !may_guard || publishing_guards_any(publishing);
}

void publishing_lacks(struct publishing *publishing, size_t keyspace, const char *why)
{
    char *before = publishing->lacks[keyspace];
    publishing->lacks[keyspace] = xstrdup(why);
    if (publishing->keyspaces[keyspace].reason == before)
        publishing->keyspaces[keyspace].reason = publishing->lacks[keyspace];
    free(before);
}

static void lack_nothing(struct publishing *publishing, size_t keyspace)
{
    if (publishing->keyspaces[keyspace].reason == publishing->lacks[keyspace])
        publishing->keyspaces[keyspace].reason = "";
    free(publishing->lacks[keyspace]);
    publishing->lacks[keyspace] = NULL;
}

void publishing_refuse_set(struct publishing *publishing, size_t keyspace, const char *why)
{
    if (why)
        publishing_lacks(publishing, keyspace, why);
    else
        lack_nothing(publishing, keyspace);
}

void publishing_give_set(struct publishing *publishing, size_t keyspace, struct key_set *set)
{
    key_set_release(publishing->sets[keyspace]);
    publishing->sets[keyspace] = set;
    set->number = ++publishing->sets_given;
    lack_nothing(publishing, keyspace);
}

/* Of those that the configuration still has, but one; SIZE_MAX: of all. */
static size_t bytes_of_sets(const struct publishing *publishing, size_t but)
{
    size_t bytes = 0;
    for (size_t i = 0; i < publishing_config(publishing)->keyspace_count; i++)
        if (i != but && publishing->sets[i])
            bytes += filter_stats(publishing->sets[i]->filter).bytes;
    return bytes;
}

size_t publishing_room(const struct publishing *publishing, size_t keyspace)
{
    const struct config *config = publishing_config(publishing);
    size_t taken = bytes_of_sets(publishing, keyspace);
    if (publishing->generation)
        taken += filter_size_taken(publishing->generation, config);
    return filter_size_room(config, taken);
}

static void give_sets(const struct publishing *publishing, struct view *view)
{
    for (size_t i = 0; i < view->config->keyspace_count; i++)
        if (publishing->sets[i] && !is_retired(publishing, i))
            view_give_set(view, i, publishing->sets[i]);
}

/* What it has is lacked no more. */
static void forget_lacks(struct publishing *publishing, const struct generation *fresh)
{
    for (size_t i = 0; i < publishing_config(publishing)->keyspace_count; i++)
        if (generation_covers(fresh, i)) {
            free(publishing->lacks[i]);
            publishing->lacks[i] = NULL;
        }
}

void publishing_obstruct(struct publishing *publishing, enum obstacle obstacle, const char *why)
{
    snprintf(publishing->obstacles[obstacle], sizeof publishing->obstacles[obstacle], "%s", why);
}

void publishing_clear(struct publishing *publishing, enum obstacle obstacle)
{
    publishing->obstacles[obstacle][0] = '\0';
}

void publishing_stand(struct publishing *publishing, uint64_t until)
{
    atomic_store_explicit(&publishing->standing, until, memory_order_release);
}

void publishing_give_way(struct publishing *publishing, bool gives_way)
{
    publishing->gives_way = gives_way;
}

/* ---- what every worker has ---- */

static void settle(struct publishing *publishing)
{
    struct generation *told = publishing->told, *now = publishing->told = publishing->generation;
    if (now)
        now->references++;
    if (now && (!told || told->number != now->number))
        log_info("generation %llu: in force", (unsigned long long)now->number);
    generation_release(told);
    for (size_t i = 0; i < publishing_config(publishing)->keyspace_count; i++)
        publishing->sets_told[i] = publishing->sets[i] ? publishing->sets[i]->number : 0;
    struct publishing_wait *wait = publishing->waits;
    publishing->waits = NULL;
    publishing->last_wait = &publishing->waits;
    while (wait) {
        struct publishing_wait *next = wait->next;
        wait->done(wait);
        wait = next;
    }
}

void publishing_await(struct publishing *publishing, struct publishing_wait *wait)
{
    if (!publishing->views_out) {
        wait->done(wait);
        return;
    }
    wait->next = NULL;
    *publishing->last_wait = wait;
    publishing->last_wait = &wait->next;
}

/* ---- views ---- */

/* Mailboxes keep the order: whatever is posted after this is decided by the new view. */
static void send_view(struct publishing *publishing, struct view *view)
{
    const struct outlet *outlet = publishing->options.outlet;
    for (unsigned i = 0; i < outlet->count; i++) {
        struct view_message *message = xcalloc(1, sizeof *message);
        message->message = (struct message){.kind = MESSAGE_VIEW, .sender = outlet->sender};
        message->view = view;
        mailbox_post(outlet->to[i], &message->message);
        publishing->views_out++;
    }
}

/* The one before may go with this reference; whoever decided by it has been told by then. */
static void adopt(struct publishing *publishing, struct view *view)
{
    struct view *replaced = publishing->view;
    publishing->view = view;
    publishing->options.adopted(publishing->options.arg, view);
    view_release(replaced);
}

void publishing_now(struct publishing *publishing, struct generation *fresh)
{
    const struct outlet *outlet = publishing->options.outlet;
    enum keyspace_state *states =
        xcalloc(publishing_config(publishing)->keyspace_count, sizeof *states);
    if (fresh) {
        generation_release(publishing->generation);
        publishing->generation = fresh;
        forget_lacks(publishing, fresh);
    }
    update_states(publishing, states);
    struct view *view =
        view_create(publishing->shared, publishing->generation, states, outlet->count + 1);
    free(states);
    give_sets(publishing, view);
    publishing->sets_bytes = bytes_of_sets(publishing, SIZE_MAX);
    view->newest = publishing->newest;
    view->building = publishing->building;
    view->standing = &publishing->standing;
    /* Sent first: what the keeper's own parts tell workers when they adopt it comes behind it. */
    send_view(publishing, view);
    adopt(publishing, view);
    if (!publishing->views_out)
        settle(publishing);
}

/* Time alone may change a state: leases run out, and are extended. */
bool publishing_is_due(const struct publishing *publishing)
{
    for (size_t i = 0; i < publishing_config(publishing)->keyspace_count; i++)
        if (!is_retired(publishing, i) &&
            status_now(publishing, i).state != publishing->keyspaces[i].state)
            return true;
    return false;
}

bool publishing_is_everywhere(const struct publishing *publishing)
{
    return !publishing->views_out;
}

/* The workers' copies of a view take its place one after the other. */
bool publishing_take_back(struct publishing *publishing, struct view_message *message)
{
    view_release(message->view);
    free(message);
    if (!--publishing->views_out)
        settle(publishing);
    return publishing_is_everywhere(publishing);
}

/* ---- life ---- */

void publishing_configure(struct publishing *publishing, struct shared_config *config)
{
    for (size_t i = publishing->shared->config->keyspace_count; i < config->config->keyspace_count;
         i++)
        publishing->keyspaces[i].since = clock_ms();
    for (size_t i = 0; i < config->config->keyspace_count; i++)
        if (config->config->keyspaces[i].retired) {
            key_set_release(publishing->sets[i]);
            publishing->sets[i] = NULL;
        }
    shared_config_release(publishing->shared);
    publishing->shared = config;
}

void publishing_builds(struct publishing *publishing, uint64_t newest, bool building)
{
    publishing->newest = newest;
    publishing->building = building;
}

void publishing_init(struct publishing *publishing, const struct publishing_options *options)
{
    *publishing = (struct publishing){.options = *options, .standing = UINT64_MAX};
    publishing->first = publishing->shared = shared_config_create(options->config);
    publishing->first->references++;
    publishing->keyspaces = xcalloc(KEYSPACES_MAX, sizeof *publishing->keyspaces);
    publishing->sets = xcalloc(KEYSPACES_MAX, sizeof *publishing->sets);
    publishing->lacks = xcalloc(KEYSPACES_MAX, sizeof *publishing->lacks);
    publishing->sets_told = xcalloc(KEYSPACES_MAX, sizeof *publishing->sets_told);
    publishing->last_wait = &publishing->waits;
    for (size_t i = 0; i < options->config->keyspace_count; i++)
        publishing->keyspaces[i].since = clock_ms();
    publishing_now(publishing, NULL);
}

void publishing_finish(struct publishing *publishing)
{
    view_release(publishing->view);
    generation_release(publishing->generation);
    generation_release(publishing->told);
    free(publishing->sets_told);
    shared_config_release(publishing->shared);
    shared_config_release(publishing->first);
    free(publishing->keyspaces);
    for (size_t i = 0; publishing->lacks && i < KEYSPACES_MAX; i++)
        free(publishing->lacks[i]);
    free(publishing->lacks);
    for (size_t i = 0; publishing->sets && i < KEYSPACES_MAX; i++)
        key_set_release(publishing->sets[i]);
    free(publishing->sets);
    *publishing = (struct publishing){0};
}

/* ---- what is told of it ---- */

static struct generation_report report_generation(const struct generation *generation)
{
    if (!generation)
        return (struct generation_report){0};
    return (struct generation_report){generation->number, generation->rows,
                                      generation_bytes(generation), generation->build_seconds,
                                      generation->built_at};
}

static struct keyspace_report report_keyspace(const struct publishing *publishing, size_t number)
{
    const struct generation *generation = publishing->generation;
    const struct keyspace_status *status = &publishing->keyspaces[number];
    const struct filter *filter = publishing->view->asked[number].filter;
    struct keyspace_report report = {.number = number,
                                     .config = &publishing_config(publishing)->keyspaces[number],
                                     .state = status->state,
                                     .reason = status->reason,
                                     .since = status->since,
                                     .refused = publishing->lacks[number],
                                     .has_filter = filter != NULL};
    if (!filter)
        return report;
    report.kind = filter_kind_of(filter);
    report.filter = filter_stats(filter);
    report.set_number = report.config->source ? publishing->sets_told[number] : 0;
    report.rows = report.config->source ? report.filter.keys : generation_rows(generation, number);
    return report;
}

void publishing_report(const struct publishing *publishing, struct report *report)
{
    const struct config *config = publishing_config(publishing);
    report->config = config;
    report->generation = report_generation(publishing->told);
    report->keyspaces = xcalloc(config->keyspace_count, sizeof *report->keyspaces);
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (!config->keyspaces[i].retired)
            report->keyspaces[report->count++] = report_keyspace(publishing, i);
}
