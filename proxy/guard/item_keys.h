/* What an item of a keyspace's filter may mean, where commands name filter and item instead of a
 * key (BF.EXISTS items 42): the text of the key's column, of several joined by ':', or the whole
 * key. Nothing in the item says which, and a column's text may read like a key: then it means all
 * of them.
 */
#ifndef NESTGUARD_ITEM_KEYS_H
#define NESTGUARD_ITEM_KEYS_H

#include "base/buffer.h"
#include "config/syntax/key_template.h"

/* In a buffer, which may move while keys are added. */
struct item_key {
    size_t at, length;
};

static inline struct span item_key_span(const struct buffer *text, struct item_key key)
{
    return (struct span){buffer_span(text).at + key.at, key.length};
}

/* Appends the keys that the item may mean to `text`, each of which matches the template; keys[]
 * gets their places. Returns how many there are: 0 when no key is spelled like that, and -E2BIG
 * when there are more than `room`, or than anybody means; then what was appended is no matter. */
int item_keys_add(const struct key_template *form, struct span item, struct buffer *text,
                  struct item_key *keys, size_t room);

#endif
