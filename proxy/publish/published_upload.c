/* From asking whose the name is to the bitmap in its place; and its removal.
 *
 *   ask ─▶ for each layer: DEL, its last byte, pieces in order, PIECES of them at once ─▶ commit
 *
 * The bytes of a piece are those of the moment when it is sent. A bit that is set later is sent
 * behind it (send_bits()), to the name under which it is built: commands run in order, so that no
 * piece can undo a bit.
 */
#include "publish/published_internal.h"

#include "base/log/log.h"
#include "publish/publish_scripts.h"

enum {
    PIECE = 256 * 1024,  /* bytes that are copied at a stretch */
    PIECES = 4,          /* on their way at once */
    BUILDING_MS = 60000, /* an unfinished one stays so long */
    LAPSES = 3           /* looks before another guard's place is taken */
};

/* Texts of `published`, which outlives the command. */
static void add_names(struct publish_command *command, char *const *names, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        publish_word(command, names[i]);
}

static void on_committed(void *arg, const struct redis_answer *answer)
{
    struct published *published = arg;
    struct publish_said said;
    if (!published_take_answer(published))
        return;
    if (!published_hear(published, answer, &said)) {
        published_failed(published, answer);
    } else if (published_is_word(&said, "other")) {
        published_stand_by(published, "another guard has taken its place");
    } else if (!published_is_word(&said, "kept")) {
        published_fail(published, "the cache has lost what was written to it");
    } else {
        published_enter(published, PUBLISHED_LIVE);
        published->retry = (struct retry){0};
        published->error[0] = '\0';
        log_info("keyspace %s: published filter %s: written, %llu keys", published->keyspace->name,
                 published->keyspace->publish.key, (unsigned long long)published->keys);
        published_review_known(published);
        published_grow_if_full(published);
    }
}

static void add_info(struct publish_command *command, const struct published *published)
{
    const struct bitmap_shape *shape = layers_shape(&published->image);
    publish_word(command, "m");
    publish_number(command, shape->bits);
    publish_word(command, "k");
    publish_number(command, shape->functions);
    publish_word(command, "format");
    publish_word(command, bitmap_format_name(shape->format));
    publish_word(command, "keys");
    publish_number(command, published->keys);
    publish_word(command, "built_at");
    publish_number(command, published->built);
    publish_word(command, "items");
    publish_word(command, published->keyspace->publish.items == PUBLISH_KEY ? "key" : "columns");
}

/* What is read until now is replaced by it: bits are written under the name from here on. */
static void commit(struct published *published)
{
    const struct publish_names *names = &published->names;
    struct publish_command command = {.count = 0};
    published->image_id = published_next_id(published);
    publish_script(&command, publish_script_commit, 3 + 2 * names->count, names);
    publish_word(&command, names->cursor);
    add_names(&command, names->bitmap, names->count);
    add_names(&command, names->building, names->count);
    publish_word(&command, published->owner);
    publish_number(&command, published->image_id);
    publish_number(&command, published->may_lease
                                 ? published_on_caches_clock(published, published->acknowledged)
                                 : 0);
    publish_number(&command, layers_shape(&published->image)->bits / 8 + 1);
    publish_number(&command, published->image.count);
    publish_number(&command, names->count);
    add_info(&command, published);
    layers_finish(&published->old);
    published_enter(published, PUBLISHED_COMMITTING);
    published->lease = published->may_lease ? published->acknowledged : 0;
    published_submit(published, &command, on_committed);
}

static void send_piece(struct published *published, size_t at, const void *bytes, size_t length,
                       redis_answer_cb done)
{
    struct publish_command command = {.count = 0};
    publish_word(&command, "SETRANGE");
    publish_word(&command, published->names.building[published->next_layer]);
    publish_number(&command, at);
    publish_bytes(&command, bytes, length);
    published_submit(published, &command, done);
}

/* Nobody else will clean up behind a guard that is killed. */
static void limit_life(struct published *published)
{
    struct publish_command command = {.count = 0};
    publish_word(&command, "PEXPIRE");
    publish_word(&command, published->names.building[published->next_layer]);
    publish_number(&command, BUILDING_MS);
    published_submit(published, &command, published_on_written);
}

static void upload(struct published *published);

static void on_piece(void *arg, const struct redis_answer *answer)
{
    struct published *published = arg;
    if (!published_take_answer(published))
        return;
    published->pieces--;
    if (answer->outcome != REDIS_DONE) {
        published_failed(published, answer);
        return;
    }
    published_review_known(published);
    upload(published);
}

/* The last byte first: then the cache makes room for all of it once. */
static void begin_layer(struct published *published, const char *bytes, size_t length)
{
    struct publish_command command = {.count = 0};
    publish_word(&command, "DEL");
    publish_word(&command, published->names.building[published->next_layer]);
    published_submit(published, &command, published_on_written);
    send_piece(published, length - 1, bytes + length - 1, 1, published_on_written);
}

/* Some pieces more, and when all of them are there, all of it. */
static void upload(struct published *published)
{
    while (published->pieces < PIECES && published->next_layer < published->image.count) {
        size_t length;
        const char *bytes = bitmap_bytes(published->image.at[published->next_layer], &length);
        size_t at = published->next_byte, rest = length - at;
        size_t piece = rest < PIECE ? rest : PIECE;
        if (at == 0)
            begin_layer(published, bytes, length);
        published->pieces++;
        send_piece(published, at, bytes + at, piece, on_piece);
        limit_life(published);
        published->next_byte += piece;
        if (published->next_byte == length) {
            published->next_layer++;
            published->next_byte = 0;
        }
    }
    if (!published->pieces)
        commit(published);
}

/* What an attempt that was given up may have left. */
static void clear_building(struct published *published)
{
    struct publish_command command = {.count = 0};
    if (!published->names.building[0])
        return;
    publish_word(&command, "DEL");
    add_names(&command, published->names.building, published->names.count);
    published_submit(published, &command, published_on_written);
}

static void begin_upload(struct published *published)
{
    clear_building(published);
    publish_names_build(&published->names, published->owner, ++published->attempts);
    published_enter(published, PUBLISHED_UPLOADING);
    published->lapses = published->pieces = published->next_layer = 0;
    published->next_byte = 0;
    upload(published);
}

static void on_asked(void *arg, const struct redis_answer *answer)
{
    struct published *published = arg;
    struct publish_said said;
    if (!published_take_answer(published))
        return;
    if (!published_hear(published, answer, &said)) {
        published_failed(published, answer);
        return;
    }
    published->lapses = published_is_word(&said, "lapsed") ? published->lapses + 1 : 0;
    if (published_is_word(&said, "taken"))
        published_fail(published, "its name is that of something else in the cache");
    else if (published_is_word(&said, "free") || published->lapses == LAPSES)
        begin_upload(published);
    else
        published_stand_by(published, "another guard publishes it");
}

static void ask(struct published *published)
{
    struct publish_command command = {.count = 0};
    publish_script(&command, publish_script_ask, 3, &published->names);
    publish_word(&command, published->names.bitmap[0]);
    publish_word(&command, published->owner);
    publish_word(&command, published->old.count ? "" : "drop");
    published_enter(published, PUBLISHED_ASKING);
    published_submit(published, &command, on_asked);
}

/* What cannot be removed for another reason than that nobody could be asked stays. */
static void on_removed(void *arg, const struct redis_answer *answer)
{
    struct published *published = arg;
    published_take_answer(published);
    published->removing = false;
    published->removed = answer->outcome != REDIS_DOWN;
    if (published->removed && answer->outcome != REDIS_DONE)
        log_warning("published filter %s: not removed from the cache: %s",
                    published->keyspace->publish.key, answer->error);
}

static void remove_all(struct published *published)
{
    const struct publish_names *names = &published->names;
    unsigned building = names->building[0] ? names->count : 0;
    struct publish_command command = {.count = 0};
    publish_script(&command, publish_script_remove, 3 + names->count + building, names);
    publish_word(&command, names->cursor);
    add_names(&command, names->bitmap, names->count);
    add_names(&command, names->building, building);
    publish_word(&command, published->owner);
    published->removing = true;
    published_submit(published, &command, on_removed);
}

void published_tick(struct published *published, uint64_t now)
{
    bool removes = published->ended && !published->removing && !published->removed;
    bool asks =
        published->state == PUBLISHED_WAITING && published->may_lease && now >= published->retry.at;
    if (!removes && !asks)
        return;
    if (!published_go_home(published) || !published_is_reachable(published))
        return;
    if (removes)
        remove_all(published);
    else
        ask(published);
}
