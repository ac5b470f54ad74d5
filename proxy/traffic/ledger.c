/* A summary for each burden, since the heaviest by one may be nobody by another; and one of keys.
 * Items are compared as bytes, so every byte of them is set: what a text leaves free is zero.
 */
#include "traffic/ledger.h"

#include "base/memory.h"

#include <stdlib.h>

enum { PLACES = 128 }; /* who has more than so small a part of all has a place */

struct ledger {
    struct heavy *parties[BURDENS]; /* of struct party */
    struct heavy *keys;             /* of struct asked_key */
};

#define BURDEN_NAME(name) #name,

const char *burden_name(enum burden burden)
{
    static const char *const names[] = {BURDENS_OF(BURDEN_NAME)};
    return names[burden];
}

struct ledger *ledger_create(void)
{
    struct ledger *ledger = xcalloc(1, sizeof *ledger);
    for (int i = 0; i < BURDENS; i++)
        ledger->parties[i] = heavy_create(PLACES, sizeof(struct party));
    ledger->keys = heavy_create(PLACES, sizeof(struct asked_key));
    return ledger;
}

void ledger_destroy(struct ledger *ledger)
{
    if (!ledger)
        return;
    for (int i = 0; i < BURDENS; i++)
        heavy_destroy(ledger->parties[i]);
    heavy_destroy(ledger->keys);
    free(ledger);
}

void ledger_clear(struct ledger *ledger)
{
    for (int i = 0; i < BURDENS; i++)
        heavy_clear(ledger->parties[i]);
    heavy_clear(ledger->keys);
}

static void copy(char *to, size_t size, const char *from)
{
    strncpy(to, from ? from : "", size - 1);
    to[size - 1] = '\0';
}

/* strncpy() fills up with zeros: parties are compared as bytes. */
void party_set(struct party *party, const char *address, const char *name, const char *user)
{
    copy(party->address, sizeof party->address, address);
    copy(party->name, sizeof party->name, name);
    copy(party->user, sizeof party->user, user);
}

void ledger_add_party(struct ledger *ledger, const struct party *party,
                      const uint64_t amounts[BURDENS])
{
    for (int i = 0; i < BURDENS; i++)
        if (amounts[i])
            heavy_add(ledger->parties[i], party, amounts[i]);
}

/* Keys that are longer than there is room for are one when they begin alike and are as long. */
void ledger_add_key(struct ledger *ledger, int keyspace, struct span text, uint64_t weight)
{
    struct asked_key key = {.keyspace = (uint32_t)keyspace, .length = (uint32_t)text.length};
    memcpy(key.text, text.at, text.length < ASKED_KEY_SIZE ? text.length : ASKED_KEY_SIZE);
    heavy_add(ledger->keys, &key, weight);
}

void ledger_merge(struct ledger *into, const struct ledger *from)
{
    for (int i = 0; i < BURDENS; i++)
        heavy_merge(into->parties[i], from->parties[i]);
    heavy_merge(into->keys, from->keys);
}

const struct heavy *ledger_parties(const struct ledger *ledger, enum burden burden)
{
    return ledger->parties[burden];
}

const struct heavy *ledger_keys(const struct ledger *ledger)
{
    return ledger->keys;
}

/* The counts of all places come to what all parties weigh, or with two summaries in one to more,
 * however many parties share a place. */
static uint64_t weight_of(const struct heavy_entry *all, size_t count, const char *address)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(((const struct party *)all[i].item)->address, address) == 0)
            sum += all[i].count;
    return sum;
}

bool ledger_suspect(const struct ledger *ledger, enum burden burden, struct ledger_suspect *out)
{
    struct heavy_entry all[PLACES];
    const struct heavy *parties = ledger_parties(ledger, burden);
    size_t count = heavy_top(parties, all, PLACES);
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        const struct party *party = all[i].item;
        uint64_t weight = weight_of(all, count, party->address);
        if (weight <= most)
            continue;
        most = weight;
        uint64_t total = heavy_total(parties);
        *out = (struct ledger_suspect){.party = *party,
                                       .is_most = all[i].count > weight / 2,
                                       .part = weight < total ? (double)weight / (double)total : 1};
    }
    return count;
}
