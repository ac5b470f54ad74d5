/* Commands are answered in the order in which they are sent, so that two counts tell which. What
 * belongs to an attempt that was given up is answered, too, and not looked at.
 */
#include "publish/published_internal.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "publish/publish_scripts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    UNANSWERED_MAX = 50000, /* commands; past it the cache does not keep up */
    LOOK_MS = 500           /* from one look whether another guard is gone to the next */
};

const char *published_state_name(enum published_state state)
{
    static const char *const names[] = {
        [PUBLISHED_EMPTY] = "empty",           [PUBLISHED_WAITING] = "waiting",
        [PUBLISHED_ASKING] = "asking",         [PUBLISHED_UPLOADING] = "uploading",
        [PUBLISHED_COMMITTING] = "committing", [PUBLISHED_LIVE] = "live"};
    return names[state];
}

/* On, step by step, or back. */
void published_enter(struct published *published, enum published_state state)
{
    assert(state <= PUBLISHED_WAITING || state == published->state + 1);
    published->state = state;
}

/* ---- where to ---- */

static int home_of(const struct published *published)
{
    const char *key = published->keyspace->publish.key;
    return redis_number_of(published->redis, (struct redis_bytes){key, strlen(key)});
}

/* Where a cluster has no node of that number, whoever stands for all: there every command fails. */
static struct redis *server_of(const struct published *published)
{
    int number = published->node;
    struct redis *node = number < 0 ? NULL : redis_next_node(published->redis, &number);
    return node && number == published->node ? node : published->redis;
}

bool published_is_reachable(const struct published *published)
{
    return redis_is_up(server_of(published));
}

/* Answers of two nodes come in any order, and counts would not tell them apart. */
bool published_go_home(struct published *published)
{
    int home = home_of(published);
    bool rests = published->state <= PUBLISHED_WAITING && !published->old.count &&
                 published->answered == published->sent;
    if (rests)
        published->node = home;
    return published->node == home;
}

/* ---- commands ---- */

/* Counted, for all that is known is acknowledged by counts. `done` gets `published`. */
void published_submit(struct published *published, const struct publish_command *command,
                      redis_answer_cb done)
{
    published->sent++;
    redis_send(server_of(published), command->words, command->count, done, published);
}

/* Whether it is of the attempt that is under way. */
bool published_take_answer(struct published *published)
{
    if (++published->answered > published->begun)
        return true;
    published_review_known(published);
    return false;
}

/* Of what is given up: only counted. */
static void on_ignored(void *arg, const struct redis_answer *answer)
{
    (void)answer;
    published_take_answer(arg);
}

void published_failed(struct published *published, const struct redis_answer *answer)
{
    published_fail(published,
                   answer->error && *answer->error ? answer->error : "an answer of another form");
}

/* Bits, or a bitmap more: a refusal means that the cache may lack rows. */
void published_on_written(void *arg, const struct redis_answer *answer)
{
    struct published *published = arg;
    if (!published_take_answer(published))
        return;
    if (answer->outcome != REDIS_DONE)
        published_failed(published, answer);
    else
        published_review_known(published);
}

/* What a script said, and the cache's clock: what it shows at a later moment is no less than that
 * and the time since now. */
bool published_hear(struct published *published, const struct redis_answer *answer,
                    struct publish_said *said)
{
    if (!publish_hear(answer, said))
        return false;
    published->ahead = (int64_t)said->time - (int64_t)clock_ms();
    return true;
}

/* A script's first word says what it found: "kept", "other", ... */
bool published_is_word(const struct publish_said *said, const char *word)
{
    return strcmp(said->word, word) == 0;
}

/* `until` is clock_ms(); 0 stays 0: no lease. */
uint64_t published_on_caches_clock(const struct published *published, uint64_t until)
{
    int64_t there = (int64_t)until + published->ahead;
    return until && there > 0 ? (uint64_t)there : 0;
}

/* Of all guards and all times, and later than any before. */
uint64_t published_next_id(const struct published *published)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t id = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    return id > published->image_id ? id : published->image_id + 1;
}

/* ---- giving up ---- */

/* At once, and whatever becomes of it: it lapses by itself, too. */
void published_drop(struct published *published)
{
    struct publish_command command = {.count = 0};
    published->lease = 0;
    if (!published_is_reachable(published))
        return;
    publish_script(&command, publish_script_drop, 2, &published->names);
    publish_word(&command, published->owner);
    published_submit(published, &command, on_ignored);
}

/* What was known is of no use for a lease any more. */
static void forget_known(struct published *published)
{
    published->pending = (struct published_known){0};
    published->acknowledged = 0;
}

/* There may be one in the cache: of the old image, or since the new one was committed. */
static bool has_lease(const struct published *published)
{
    return published->old.count || published->state >= PUBLISHED_COMMITTING;
}

/* Back to the beginning: whatever is in the cache is no longer vouched for. */
static void begin_again(struct published *published)
{
    bool drops = has_lease(published);
    layers_finish(&published->old);
    forget_known(published);
    published->renewing = false;
    published_enter(published, published->image.count ? PUBLISHED_WAITING : PUBLISHED_EMPTY);
    if (drops)
        published_drop(published);
    published->begun = published->sent;
}

/* The log is told of each reason once, and of each time that readers lost something by it. */
void published_fail(struct published *published, const char *why)
{
    if (strcmp(published->error, why) != 0 || published->state == PUBLISHED_LIVE)
        log_warning("keyspace %s: published filter %s: %s", published->keyspace->name,
                    published->keyspace->publish.key, why);
    snprintf(published->error, sizeof published->error, "%s", why);
    retry_set(&published->retry, clock_ms());
    begin_again(published);
}

void published_spoil(struct published *published, const char *why)
{
    layers_finish(&published->image);
    published->spoiled = true;
    published_fail(published, why);
}

/* Another guard holds the name, or has just let it go. */
void published_stand_by(struct published *published, const char *why)
{
    if (strcmp(published->error, why) != 0)
        log_info("keyspace %s: published filter %s: %s", published->keyspace->name,
                 published->keyspace->publish.key, why);
    snprintf(published->error, sizeof published->error, "%s", why);
    published->retry.at = clock_ms() + LOOK_MS;
    begin_again(published);
}

/* ---- the lease ---- */

/* The script renews only what is whole and our own; else it says what it found. */
static void on_renewed(void *arg, const struct redis_answer *answer)
{
    struct published *published = arg;
    struct publish_said said;
    if (!published_take_answer(published))
        return;
    published->renewing = false;
    if (!published_hear(published, answer, &said))
        published_failed(published, answer);
    else if (published_is_word(&said, "other"))
        published_stand_by(published, "another guard has taken its place");
    else if (!published_is_word(&said, "kept"))
        published_fail(published, "the cache has lost it");
    else
        published_review_known(published);
}

/* Of what is under the name now. */
static void renew_lease(struct published *published)
{
    const struct layers *layers = published->old.count ? &published->old : &published->image;
    const struct bitmap_shape *shape = layers_shape(layers);
    struct publish_command command = {.count = 0};
    publish_script(&command, publish_script_renew, 2 + layers->count, &published->names);
    for (unsigned i = 0; i < layers->count; i++)
        publish_word(&command, published->names.bitmap[i]);
    publish_word(&command, published->owner);
    publish_number(&command, published->old.count ? published->old_id : published->image_id);
    publish_number(&command, published_on_caches_clock(published, published->acknowledged));
    publish_number(&command, shape->bits / 8 + 1);
    publish_number(&command, shape->bits);
    publish_number(&command, published->keys);
    published->renewing = true;
    published->lease = published->acknowledged;
    published_submit(published, &command, on_renewed);
}

/* A lease that is renewed must stand behind bits that are there: their answers are waited for. */
void published_review_known(struct published *published)
{
    struct published_known *pending = &published->pending;
    bool readable = published->state == PUBLISHED_LIVE ||
                    (published->old.count && published->state < PUBLISHED_COMMITTING);
    if (!pending->until || published->answered < pending->count)
        return;
    published->acknowledged = pending->until;
    pending->until = 0;
    if (readable && !published->renewing)
        renew_lease(published);
}

/* One moment at a time: the next is taken when this one is acknowledged, so that a slow cache is
 * not asked for more than it answers. */
void published_known(struct published *published, uint64_t until)
{
    if (!published->may_lease || published->pending.until || until <= published->acknowledged ||
        published->state == PUBLISHED_EMPTY || !published_is_reachable(published))
        return;
    published->pending = (struct published_known){until, published->sent};
    published_review_known(published);
}

void published_permit(struct published *published, bool may_lease)
{
    if (published->may_lease && !may_lease) {
        forget_known(published);
        if (published->state != PUBLISHED_EMPTY)
            published_drop(published);
    }
    published->may_lease = may_lease;
}

/* ---- bits ---- */

/* Into the newest layer, which alone takes new items. */
static void send_bits(struct published *published, const struct layers *layers, char *const *names,
                      const uint64_t *places)
{
    struct publish_command command = {.count = 0};
    publish_set_bits(&command, names[layers->count - 1], places, layers_shape(layers)->functions);
    published_submit(published, &command, published_on_written);
}

/* Another bitmap is begun; the image has another id from then on, so that readers look anew how
 * many there are. */
void published_grow_if_full(struct published *published)
{
    struct layers *image = &published->image;
    struct publish_command command = {.count = 0};
    if (published->state != PUBLISHED_LIVE || !published->keyspace->publish.grow ||
        !layers_are_full(image) || !layers_grow(image))
        return;
    uint64_t before = published->image_id;
    published->image_id = published_next_id(published);
    publish_script(&command, publish_script_grow, 4, &published->names);
    publish_word(&command, published->names.cursor);
    publish_word(&command, published->names.bitmap[image->count - 1]);
    publish_word(&command, published->owner);
    publish_number(&command, before);
    publish_number(&command, published->image_id);
    publish_number(&command, layers_shape(image)->bits);
    publish_number(&command, image->count - 1);
    log_info("keyspace %s: published filter %s: grown, %u bitmaps", published->keyspace->name,
             published->keyspace->publish.key, image->count);
    published_submit(published, &command, published_on_written);
}

/* In every image that somebody reads, or will. */
static void add_item(struct published *published, struct span item)
{
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    if (published->old.count && layers_add(&published->old, item, places))
        send_bits(published, &published->old, published->names.bitmap, places);
    if (!published->image.count || !layers_add(&published->image, item, places))
        return;
    if (published->state >= PUBLISHED_COMMITTING)
        send_bits(published, &published->image, published->names.bitmap, places);
    else if (published->state == PUBLISHED_UPLOADING)
        send_bits(published, &published->image, published->names.building, places);
}

void published_add(struct published *published, const struct span *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_item(published, items[i]);
    published_grow_if_full(published);
    if (published->sent - published->answered > UNANSWERED_MAX &&
        (published->state > PUBLISHED_WAITING || published->old.count))
        published_fail(published, "the cache does not keep up with new rows");
}

/* ---- the image ---- */

void published_gap(struct published *published)
{
    if (!published->old.count)
        return;
    layers_finish(&published->old);
    published_drop(published);
}

/* What was sent to be read until now is still waited for: a bit that is refused ends its lease. */
void published_renew(struct published *published, struct bitmap *bitmap, uint64_t from,
                     uint64_t built)
{
    bool stays = published->state == PUBLISHED_LIVE && published->may_lease && bitmap;
    if (stays) {
        published->old = published->image;
        published->old_id = published->image_id;
        published->image = (struct layers){0};
    } else {
        begin_again(published);
        layers_finish(&published->image);
    }
    published->from = from;
    published->built = built;
    published->deleted = 0;
    published->retry = (struct retry){0};
    if (bitmap)
        layers_begin(&published->image, bitmap);
    published->spoiled &= !bitmap;
    published_enter(published, bitmap ? PUBLISHED_WAITING : PUBLISHED_EMPTY);
    if (!bitmap && !published->spoiled)
        published_fail(published, "there is no bitmap: it would be larger than what the cache "
                                  "takes or max_filter_memory leaves, or there is no memory");
}

/* FEW: a small table is not built anew for every few rows that go. */
bool published_is_worn(const struct published *published)
{
    enum { FEW = 1000, SHARE = 4 };
    if (published->state != PUBLISHED_LIVE)
        return published->spoiled;
    return layers_are_full(&published->image) || published->deleted > FEW + published->keys / SHARE;
}

/* Of a cache that is gone nothing is known; what comes back begins with a look. */
void published_cache_is(struct published *published, bool up)
{
    published->retry = (struct retry){0};
    if (!up && published->state != PUBLISHED_EMPTY)
        begin_again(published);
    if (!up)
        published->lease = 0;
}

/* What failed for want of a node may do by now. */
void published_node_is(struct published *published, int node, bool up)
{
    if (up || published->node == node)
        published_cache_is(published, up);
}

void published_use_cache(struct published *published, struct redis *redis)
{
    published->redis = redis;
    published->node = home_of(published);
}

void published_init(struct published *published, const struct keyspace *keyspace,
                    struct redis *redis, const char *owner)
{
    *published = (struct published){.keyspace = keyspace, .owner = owner};
    published_use_cache(published, redis);
    publish_names_init(&published->names, &keyspace->publish);
}

void published_use(struct published *published, const struct keyspace *keyspace)
{
    published->keyspace = keyspace;
}

void published_end(struct published *published)
{
    layers_finish(&published->image);
    published->may_lease = published->spoiled = false;
    begin_again(published);
    published->ended = true;
    published_tick(published, clock_ms());
}

bool published_is_over(const struct published *published)
{
    return published->removed && published->answered == published->sent;
}

void published_finish(struct published *published)
{
    layers_finish(&published->image);
    layers_finish(&published->old);
    publish_names_finish(&published->names);
}

struct published_report published_report(const struct published *published)
{
    uint64_t now = clock_ms(), until = published->lease;
    struct published_report report = {.key = published->keyspace->publish.key,
                                      .state = published_state_name(published->state),
                                      .keys = published->keys,
                                      .generation = published->image_id,
                                      .deleted = published->deleted,
                                      .due = published->may_lease,
                                      .lease = until > now ? until - now : 0,
                                      .error = published->error};
    if (published->image.count) {
        const struct bitmap_shape *shape = layers_shape(&published->image);
        report.layers = published->image.count;
        report.functions = shape->functions;
        report.bits = shape->bits * report.layers;
        report.bytes = (shape->bits / 8 + 1) * (report.layers + published->old.count);
        report.set = layers_set_bits(&published->image);
    }
    return report;
}
