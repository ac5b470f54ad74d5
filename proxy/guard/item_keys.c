/* Items come as clients of RedisBloom write them, keys as the template spells them. Where the
 * template joins columns by the same ':' an item is a key's middle as it is, and needs no
 * splitting:
 *
 *   template            item    key
 *   item:{a}:{b}        4:2     item:4:2          as it is
 *   {a}/item/{b}        4:2     4/item/2          split, and rendered anew
 */
#include "guard/item_keys.h"

#include <errno.h>

enum { WAYS_MAX = 16 }; /* in which one item may be split; more nobody means */

static const struct span joint = {":", 1};

/* What was found so far: `count` of `room` places are taken. */
struct found {
    struct buffer *text;
    struct item_key *keys;
    size_t count, room;
};

/* From `at` to the buffer's end it is a key. There is room. */
static void end_key(struct found *found, size_t at)
{
    found->keys[found->count++] = (struct item_key){at, buffer_length(found->text) - at};
}

/* Whether the columns' texts, as they are joined in an item, stand in the key as they are. */
static bool is_joined_alike(const struct key_template *form)
{
    for (size_t i = 1; i < form->columns; i++)
        if (form->literal[i].length != 1 || *form->literal[i].at != *joint.at)
            return false;
    return true;
}

/* A text with fewer ':' than lie between the columns cannot be all of them. */
static bool has_all_columns(const struct key_template *form, struct span item)
{
    size_t joints = 0;
    if (form->columns == 1)
        return true;
    for (size_t i = 0; i < item.length && joints + 1 < form->columns; i++)
        joints += item.at[i] == *joint.at;
    return joints + 1 >= form->columns;
}

static int add_as_it_is(const struct key_template *form, struct span item, struct found *found)
{
    struct span prefix = form->literal[0], suffix = form->literal[form->columns];
    size_t at = buffer_length(found->text);
    if (!has_all_columns(form, item))
        return 0;
    if (found->count == found->room)
        return -E2BIG;
    buffer_append(found->text, prefix.at, prefix.length);
    buffer_append(found->text, item.at, item.length);
    buffer_append(found->text, suffix.at, suffix.length);
    end_key(found, at);
    return 0;
}

/* A column's text may have a ':' in it: each way to split the item is a key of its own. */
static int add_split(const struct key_template *form, struct span item, struct found *found)
{
    struct span ways[WAYS_MAX][KEY_COLUMNS_MAX];
    struct key_template joined = {.columns = form->columns, .least = form->columns - 1};
    size_t most = found->room - found->count < WAYS_MAX ? found->room - found->count : WAYS_MAX;
    joined.literal[0] = joined.literal[form->columns] = (struct span){"", 0};
    for (size_t i = 1; i < form->columns; i++)
        joined.literal[i] = joint;
    size_t count = key_template_split(&joined, item, ways, most);
    if (count > most)
        return -E2BIG;
    for (size_t i = 0; i < count; i++) {
        size_t at = buffer_length(found->text);
        key_template_render(form, ways[i], found->text);
        end_key(found, at);
    }
    return 0;
}

int item_keys_add(const struct key_template *form, struct span item, struct buffer *text,
                  struct item_key *keys, size_t room)
{
    struct found found = {.text = text, .keys = keys, .room = room};
    if (key_template_matches(form, item)) {
        size_t at = buffer_length(text);
        if (!room)
            return -E2BIG;
        buffer_append(text, item.at, item.length);
        end_key(&found, at);
    }
    int status =
        is_joined_alike(form) ? add_as_it_is(form, item, &found) : add_split(form, item, &found);
    return status < 0 ? status : (int)found.count;
}
