/* A change of a key by a transaction is a mention. A key is unseen while it is mentioned at all:
 *
 *   transaction 901 ─▶ mention ─▶ mention           a snapshot is held against the transactions,
 *                        │           │              not against the keys: each mention is made
 *                        ▼           ▼              once and dropped once
 *   keys              item:7 (2)  item:8 (1)
 *                        ▲
 *   transaction 905 ─▶ mention
 *
 * Two transactions may be unseen for one key at a time, and become visible in either order, where
 * several rows may have the same key.
 */
#include "database/commit_visibility.h"

#include "base/clock.h"
#include "base/keymap.h"
#include "base/memory.h"

#include <stdlib.h>

enum { HURRY_MS = 10 };

struct visibility_key {
    struct keymap_node node;
    size_t mentions;
    const struct transaction *last; /* that has mentioned it; not to be followed */
    char text[];
};

struct mention {
    struct mention *next;
    struct visibility_key *key;
};

struct transaction {
    struct keymap_node node; /* by its id's bytes */
    uint32_t xid;
    bool everything; /* has changed keys that are not mentioned */
    struct mention *mentions;
};

struct commit_visibility {
    struct visibility_options options;
    struct keymap keys, transactions;
    size_t mentioned, running; /* mentions; transactions */
    size_t everything;         /* transactions with that mark */
    bool has_horizon;          /* nothing is seen until all below it are over */
    uint32_t horizon;
    struct snapshot begin; /* of a log, the latest: nothing is seen until all that was over is */
    bool has_begin;
    struct snapshot newest;
    bool has_newest;
    uint64_t hurried; /* clock_ms() */
};

struct commit_visibility *visibility_create(const struct visibility_options *options)
{
    struct commit_visibility *visibility = xcalloc(1, sizeof *visibility);
    visibility->options = *options;
    keymap_init(&visibility->keys);
    keymap_init(&visibility->transactions);
    return visibility;
}

/* ---- forgetting ---- */

static void drop_mention(struct commit_visibility *visibility, struct mention *mention)
{
    struct visibility_key *key = mention->key;
    visibility->mentioned--;
    free(mention);
    key->last = NULL;
    if (--key->mentions)
        return;
    keymap_remove(&visibility->keys, &key->node);
    free(key);
}

static void drop_transaction(struct commit_visibility *visibility, struct transaction *transaction)
{
    struct mention *next;
    for (struct mention *mention = transaction->mentions; mention; mention = next) {
        next = mention->next;
        drop_mention(visibility, mention);
    }
    visibility->everything -= transaction->everything;
    visibility->running--;
    keymap_remove(&visibility->transactions, &transaction->node);
    free(transaction);
}

static bool is_over(const struct commit_visibility *visibility, uint32_t xid)
{
    return visibility->has_newest && snapshot_is_over(&visibility->newest, xid);
}

/* With all: also those that are not over. */
static void drop_transactions(struct commit_visibility *visibility, bool all)
{
    struct keymap_node *next;
    for (struct keymap_node *node = visibility->transactions.oldest; node; node = next) {
        struct transaction *transaction = container_of(node, struct transaction, node);
        next = node->newer;
        if (all || is_over(visibility, transaction->xid))
            drop_transaction(visibility, transaction);
    }
}

static void forget_newest(struct commit_visibility *visibility)
{
    if (visibility->has_newest)
        snapshot_finish(&visibility->newest);
    visibility->has_newest = false;
}

static void forget_begin(struct commit_visibility *visibility)
{
    if (visibility->has_begin)
        snapshot_finish(&visibility->begin);
    visibility->has_begin = false;
}

void visibility_destroy(struct commit_visibility *visibility)
{
    if (!visibility)
        return;
    drop_transactions(visibility, true);
    forget_newest(visibility);
    forget_begin(visibility);
    keymap_finish(&visibility->keys);
    keymap_finish(&visibility->transactions);
    free(visibility);
}

/* ---- remembering ---- */

static void raise_horizon(struct commit_visibility *visibility, uint32_t horizon)
{
    if (!visibility->has_horizon || xid_precedes(visibility->horizon, horizon))
        visibility->horizon = horizon;
    visibility->has_horizon = true;
}

static struct span bytes_of(const uint32_t *xid)
{
    return (struct span){(const char *)xid, sizeof *xid};
}

/* NULL when there is no room: then the horizon covers the transaction, and all that run longer. So
 * those that change much leave the room for transactions to the others. */
static struct transaction *transaction_of(struct commit_visibility *visibility, uint32_t xid)
{
    uint64_t hash = keymap_hash(bytes_of(&xid));
    struct keymap_node *known = keymap_find(&visibility->transactions, bytes_of(&xid), hash);
    if (known)
        return container_of(known, struct transaction, node);
    if (visibility->running >= visibility->options.max_remembered) {
        raise_horizon(visibility, xid + 1);
        return NULL;
    }
    struct transaction *transaction = xcalloc(1, sizeof *transaction);
    transaction->xid = xid;
    transaction->node.key = bytes_of(&transaction->xid);
    transaction->node.hash = hash;
    keymap_insert(&visibility->transactions, &transaction->node);
    visibility->running++;
    return transaction;
}

static void mark_everything(struct commit_visibility *visibility, struct transaction *transaction)
{
    visibility->everything += !transaction->everything;
    transaction->everything = true;
}

static struct visibility_key *remember(struct commit_visibility *visibility, struct key key)
{
    struct keymap_node *known = key_find(&visibility->keys, key);
    if (known)
        return container_of(known, struct visibility_key, node);
    struct visibility_key *fresh = xcalloc(1, sizeof *fresh + key.text.length);
    key_insert(&visibility->keys, &fresh->node, key_copy(key, fresh->text));
    return fresh;
}

static void mention(struct commit_visibility *visibility, struct transaction *transaction,
                    struct key changed)
{
    struct visibility_key *key = remember(visibility, changed);
    if (key->last == transaction)
        return;
    struct mention *mention = xmalloc(sizeof *mention);
    *mention = (struct mention){transaction->mentions, key};
    transaction->mentions = mention;
    key->last = transaction;
    key->mentions++;
    visibility->mentioned++;
}

void visibility_changed(struct commit_visibility *visibility, struct key key, uint32_t xid)
{
    if (is_over(visibility, xid)) /* who catches up is told of little else */
        return;
    struct transaction *transaction = transaction_of(visibility, xid);
    if (!transaction || transaction->everything)
        return;
    if (visibility->mentioned >= visibility->options.max_remembered)
        mark_everything(visibility, transaction);
    else
        mention(visibility, transaction, key);
}

/* A key that stands for all keys of its keyspace. If there were a key of these bytes, more would be
 * unseen than is. */
static struct key stand_in(const int *keyspace)
{
    return key_make(*keyspace, (struct span){(const char *)keyspace, sizeof *keyspace});
}

void visibility_all_changed(struct commit_visibility *visibility, int keyspace, uint32_t xid)
{
    visibility_changed(visibility, stand_in(&keyspace), xid);
}

/* An earlier log's beginning needs no remembering: all that was over then is over in this one, too.
 */
void visibility_follow(struct commit_visibility *visibility, struct snapshot *begin, bool alone)
{
    forget_newest(visibility);
    forget_begin(visibility);
    if (alone) {
        drop_transactions(visibility, true);
        visibility->has_horizon = false;
    }
    visibility->begin = *begin;
    visibility->has_begin = true;
    *begin = (struct snapshot){0};
}

/* ---- the database's word ---- */

/* Of two answers the later one counts, also where it is not understood: then nothing is known to be
 * over, and what is unseen stays so until the next. */
void visibility_learn(struct commit_visibility *visibility, const char *text)
{
    forget_newest(visibility);
    visibility->has_newest = snapshot_read(&visibility->newest, text) == 0;
    if (!visibility->has_newest)
        return;
    if (visibility->has_horizon && snapshot_has_passed(&visibility->newest, visibility->horizon))
        visibility->has_horizon = false;
    if (visibility->has_begin && snapshot_covers(&visibility->newest, &visibility->begin))
        forget_begin(visibility);
    drop_transactions(visibility, false);
}

bool visibility_has(const struct commit_visibility *visibility, struct key key)
{
    return visibility && (visibility->has_horizon || visibility->has_begin ||
                          visibility->everything || key_find(&visibility->keys, key) ||
                          key_find(&visibility->keys, stand_in(&key.keyspace)));
}

void visibility_hurry(struct commit_visibility *visibility)
{
    uint64_t now = clock_ms();
    if (!visibility || !visibility->options.wanted || now - visibility->hurried < HURRY_MS)
        return;
    visibility->hurried = now;
    visibility->options.wanted(visibility->options.arg);
}
