#include "worker/upstream/learned.h"

#include "base/memory.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>

struct entry {
    struct keymap_node node;
    struct command_info info;
    char name[LEARNED_NAME_BYTES]; /* upper case */
};

static struct span upper_case(struct span name, char upper[LEARNED_NAME_BYTES])
{
    for (size_t i = 0; i < name.length; i++)
        upper[i] = (char)toupper((unsigned char)name.at[i]);
    return (struct span){upper, name.length};
}

static struct entry *find(const struct learned *learned, struct span name)
{
    char upper[LEARNED_NAME_BYTES];
    if (name.length > LEARNED_NAME_BYTES)
        return NULL;
    struct span key = upper_case(name, upper);
    struct keymap_node *node = keymap_find(&learned->names, key, keymap_hash(key));
    return node ? container_of(node, struct entry, node) : NULL;
}

const struct command_info *learned_find(const struct learned *learned, struct span name)
{
    const struct entry *entry = find(learned, name);
    return entry ? &entry->info : NULL;
}

static void drop(struct learned *learned, struct keymap_node *node)
{
    keymap_remove(&learned->names, node);
    free(container_of(node, struct entry, node));
}

void learned_add(struct learned *learned, struct span name, const struct command_info *info)
{
    struct entry *entry = find(learned, name);
    assert(name.length <= LEARNED_NAME_BYTES);
    if (entry)
        drop(learned, &entry->node);
    if (learned->names.count == LEARNED_NAMES)
        drop(learned, learned->names.oldest);
    entry = xcalloc(1, sizeof *entry);
    entry->info = *info;
    entry->node.key = upper_case(name, entry->name);
    entry->node.hash = keymap_hash(entry->node.key);
    keymap_insert(&learned->names, &entry->node);
}

void learned_forget(struct learned *learned)
{
    while (learned->names.oldest)
        drop(learned, learned->names.oldest);
    keymap_finish(&learned->names);
}
