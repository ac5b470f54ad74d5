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
#include "database/unseen.h"

#include "base/clock.h"
#include "base/keymap.h"
#include "base/memory.h"

#include <stdlib.h>

enum { HURRY_MS = 10 };

struct unseen_key {
    struct keymap_node node;
    size_t mentions;
    const struct transaction *last; /* that has mentioned it; not to be followed */
    char text[];
};

struct mention {
    struct mention *next;
    struct unseen_key *key;
};

struct transaction {
    struct keymap_node node; /* by its id's bytes */
    uint32_t xid;
    bool everything; /* has changed keys that are not mentioned */
    struct mention *mentions;
};

struct unseen {
    struct unseen_options options;
    struct keymap keys, transactions;
    size_t remembered; /* mentions and transactions */
    size_t everything; /* transactions with that mark */
    bool has_horizon;  /* nothing is seen until all below it are over */
    uint32_t horizon;
    struct snapshot begin; /* of a log, the latest: nothing is seen until all that was over is */
    bool has_begin;
    struct snapshot newest;
    bool has_newest;
    uint64_t hurried; /* clock_ms() */
};

struct unseen *unseen_create(const struct unseen_options *options)
{
    struct unseen *unseen = xcalloc(1, sizeof *unseen);
    unseen->options = *options;
    keymap_init(&unseen->keys);
    keymap_init(&unseen->transactions);
    return unseen;
}

/* ---- forgetting ---- */

static void drop_mention(struct unseen *unseen, struct mention *mention)
{
    struct unseen_key *key = mention->key;
    unseen->remembered--;
    free(mention);
    key->last = NULL;
    if (--key->mentions)
        return;
    keymap_remove(&unseen->keys, &key->node);
    free(key);
}

static void drop_transaction(struct unseen *unseen, struct transaction *transaction)
{
    struct mention *next;
    for (struct mention *mention = transaction->mentions; mention; mention = next) {
        next = mention->next;
        drop_mention(unseen, mention);
    }
    unseen->everything -= transaction->everything;
    unseen->remembered--;
    keymap_remove(&unseen->transactions, &transaction->node);
    free(transaction);
}

static bool is_over(const struct unseen *unseen, uint32_t xid)
{
    return unseen->has_newest && snapshot_is_over(&unseen->newest, xid);
}

/* With all: also those that are not over. */
static void drop_transactions(struct unseen *unseen, bool all)
{
    struct keymap_node *next;
    for (struct keymap_node *node = unseen->transactions.oldest; node; node = next) {
        struct transaction *transaction = container_of(node, struct transaction, node);
        next = node->newer;
        if (all || is_over(unseen, transaction->xid))
            drop_transaction(unseen, transaction);
    }
}

static void forget_newest(struct unseen *unseen)
{
    if (unseen->has_newest)
        snapshot_finish(&unseen->newest);
    unseen->has_newest = false;
}

static void forget_begin(struct unseen *unseen)
{
    if (unseen->has_begin)
        snapshot_finish(&unseen->begin);
    unseen->has_begin = false;
}

void unseen_destroy(struct unseen *unseen)
{
    if (!unseen)
        return;
    drop_transactions(unseen, true);
    forget_newest(unseen);
    forget_begin(unseen);
    keymap_finish(&unseen->keys);
    keymap_finish(&unseen->transactions);
    free(unseen);
}

/* ---- remembering ---- */

static void raise_horizon(struct unseen *unseen, uint32_t horizon)
{
    if (!unseen->has_horizon || xid_precedes(unseen->horizon, horizon))
        unseen->horizon = horizon;
    unseen->has_horizon = true;
}

static struct span bytes_of(const uint32_t *xid)
{
    return (struct span){(const char *)xid, sizeof *xid};
}

/* NULL when there is no room: then the horizon covers the transaction. */
static struct transaction *transaction_of(struct unseen *unseen, uint32_t xid)
{
    uint64_t hash = keymap_hash(bytes_of(&xid));
    struct keymap_node *known = keymap_find(&unseen->transactions, bytes_of(&xid), hash);
    if (known)
        return container_of(known, struct transaction, node);
    if (unseen->remembered >= unseen->options.max_remembered) {
        raise_horizon(unseen, xid + 1);
        return NULL;
    }
    struct transaction *transaction = xcalloc(1, sizeof *transaction);
    transaction->xid = xid;
    transaction->node.key = bytes_of(&transaction->xid);
    transaction->node.hash = hash;
    keymap_insert(&unseen->transactions, &transaction->node);
    unseen->remembered++;
    return transaction;
}

static void mark_everything(struct unseen *unseen, struct transaction *transaction)
{
    unseen->everything += !transaction->everything;
    transaction->everything = true;
}

static struct unseen_key *remember(struct unseen *unseen, struct key key)
{
    struct keymap_node *known = key_find(&unseen->keys, key);
    if (known)
        return container_of(known, struct unseen_key, node);
    struct unseen_key *fresh = xcalloc(1, sizeof *fresh + key.text.length);
    key_insert(&unseen->keys, &fresh->node, key_copy(key, fresh->text));
    return fresh;
}

static void mention(struct unseen *unseen, struct transaction *transaction, struct key changed)
{
    struct unseen_key *key = remember(unseen, changed);
    if (key->last == transaction)
        return;
    struct mention *mention = xmalloc(sizeof *mention);
    *mention = (struct mention){transaction->mentions, key};
    transaction->mentions = mention;
    key->last = transaction;
    key->mentions++;
    unseen->remembered++;
}

void unseen_changed(struct unseen *unseen, struct key key, uint32_t xid)
{
    if (is_over(unseen, xid)) /* who catches up is told of little else */
        return;
    struct transaction *transaction = transaction_of(unseen, xid);
    if (!transaction || transaction->everything)
        return;
    if (unseen->remembered >= unseen->options.max_remembered)
        mark_everything(unseen, transaction);
    else
        mention(unseen, transaction, key);
}

void unseen_all_changed(struct unseen *unseen, uint32_t xid)
{
    struct transaction *transaction = is_over(unseen, xid) ? NULL : transaction_of(unseen, xid);
    if (transaction)
        mark_everything(unseen, transaction);
}

/* An earlier log's beginning needs no remembering: all that was over then is over in this one, too.
 */
void unseen_follow(struct unseen *unseen, struct snapshot *begin, bool alone)
{
    forget_newest(unseen);
    forget_begin(unseen);
    if (alone) {
        drop_transactions(unseen, true);
        unseen->has_horizon = false;
    }
    unseen->begin = *begin;
    unseen->has_begin = true;
    *begin = (struct snapshot){0};
}

/* ---- the database's word ---- */

void unseen_learn(struct unseen *unseen, const char *text)
{
    forget_newest(unseen);
    unseen->has_newest = snapshot_read(&unseen->newest, text) == 0;
    if (!unseen->has_newest)
        return;
    if (unseen->has_horizon && snapshot_has_passed(&unseen->newest, unseen->horizon))
        unseen->has_horizon = false;
    if (unseen->has_begin && snapshot_covers(&unseen->newest, &unseen->begin))
        forget_begin(unseen);
    drop_transactions(unseen, false);
}

bool unseen_has(const struct unseen *unseen, struct key key)
{
    return unseen && (unseen->has_horizon || unseen->has_begin || unseen->everything ||
                      key_find(&unseen->keys, key) != NULL);
}

void unseen_hurry(struct unseen *unseen)
{
    uint64_t now = clock_ms();
    if (!unseen || !unseen->options.wanted || now - unseen->hurried < HURRY_MS)
        return;
    unseen->hurried = now;
    unseen->options.wanted(unseen->options.arg);
}
