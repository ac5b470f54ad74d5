/* An item may mean several keys: all of them are admitted, since any may be the one that will have
 * a row. How large a filter is to be, and whether it is to be made (CAPACITY, NOCREATE, ...), is no
 * matter here: it is there, and grows with the table.
 */
#include "worker/command/keys/admission.h"

#include "base/memory.h"
#include "guard/guard.h"
#include "guard/item_keys.h"
#include "worker/command/keys/item_limit.h"
#include "worker/command/keys/write.h"

#include <stdlib.h>

enum { FIRST_WORD = 2, KEYS_OF_ITEM_MAX = 16 };

/* ---- which arguments are items ---- */

/* How many arguments an option takes, itself included; 0: it is none. */
static size_t option_length(struct span word)
{
    static const char *const alone[] = {"NOCREATE", "NONSCALING"};
    static const char *const with_value[] = {"CAPACITY", "ERROR", "EXPANSION"};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (span_is_word(word, alone[i]))
            return 1;
    for (size_t i = 0; i < sizeof with_value / sizeof *with_value; i++)
        if (span_is_word(word, with_value[i]))
            return 2;
    return 0;
}

/* NULL, or an error; *first is the first item's place. */
static const char *find_items(const struct request *request, size_t *first)
{
    size_t at = FIRST_WORD;
    if (request->command->items & ITEMS_MARKED) {
        while (at < request->count && !span_is_word(request->arguments[at], "ITEMS")) {
            size_t length = option_length(request->arguments[at]);
            if (!length)
                return "ERR Unknown argument received";
            at += length;
        }
        at++;
    }
    *first = at;
    return at < request->count ? NULL : "ERR wrong number of arguments: there are no items";
}

/* ---- their keys ---- */

/* The keys of all items, one behind the other. */
struct admission {
    size_t items, keys;
    size_t *keys_of;    /* of each item */
    struct buffer at;   /* struct item_key, of all keys */
    struct buffer text; /* theirs */
};

static void finish(struct admission *admission)
{
    free(admission->keys_of);
    buffer_finish(&admission->at);
    buffer_finish(&admission->text);
}

/* False: an item cannot be admitted. */
static bool find_keys(struct admission *admission, const struct key_template *form,
                      const struct span *items, size_t count)
{
    struct item_key keys[KEYS_OF_ITEM_MAX];
    *admission = (struct admission){.keys_of = xcalloc(count, sizeof *admission->keys_of)};
    for (; admission->items < count; admission->items++) {
        int found =
            item_keys_add(form, items[admission->items], &admission->text, keys, KEYS_OF_ITEM_MAX);
        if (found <= 0)
            return false;
        buffer_append(&admission->at, keys, (size_t)found * sizeof *keys);
        admission->keys_of[admission->items] = (size_t)found;
        admission->keys += (size_t)found;
    }
    return true;
}

/* When all keys are there: before, the text may move. The caller frees them. */
static struct span *spans_of(const struct admission *admission)
{
    const struct item_key *at =
        (const struct item_key *)(const void *)buffer_span(&admission->at).at;
    struct span *spans = xcalloc(admission->keys, sizeof *spans);
    for (size_t i = 0; i < admission->keys; i++)
        spans[i] = item_key_span(&admission->text, at[i]);
    return spans;
}

/* ---- the reply ---- */

/* An item is new when one of its keys is; CF.ADD and its kin add it in any case. */
static void write_reply(const struct request *request, const struct admission *admission,
                        const bool *are_new, struct reply_slot *slot)
{
    const struct command *command = request->command;
    bool resp3 = slot->resp3 && !(command->items & ITEMS_COUNTED);
    if (command->arity < 0)
        resp_write_array(&slot->reply, admission->items);
    for (size_t i = 0, key = 0; i < admission->items; i++) {
        bool added = command->items & ITEMS_REPEATED;
        for (size_t end = key + admission->keys_of[i]; key < end; key++)
            added |= are_new[key];
        resp_write_truth(&slot->reply, added, resp3);
    }
}

static void admit(struct client *client, const struct request *request,
                  const struct admission *admission)
{
    struct span *keys = spans_of(admission);
    bool *are_new = xcalloc(admission->keys, sizeof *are_new);
    struct reply_slot *slot = write_admit(client, keys, admission->keys, are_new);
    if (slot) {
        write_reply(request, admission, are_new, slot);
        write_admitted(slot);
    } else {
        resp_write_error(client_reply(client), "%s", write_refusal);
    }
    free(are_new);
    free(keys);
}

void admission_dispatch(struct client *client, const struct request *request, int at)
{
    const struct keyspace *keyspace = serving_keyspace(client->serving, at);
    struct admission admission;
    size_t first = 0;
    const char *error = find_items(request, &first);
    if (error) {
        resp_write_error(client_reply(client), "%s", error);
        return;
    }
    if (item_limit_refuses(client, request->count - first))
        return;
    if (find_keys(&admission, &keyspace->key, &request->arguments[first], request->count - first))
        admit(client, request, &admission);
    else
        resp_write_error(client_reply(client),
                         "NESTGUARD item: nothing was added: no key of keyspace %s (%s) is spelled "
                         "like item number %zu, or too many are",
                         keyspace->name, keyspace->key.text, admission.items + 1);
    finish(&admission);
}
