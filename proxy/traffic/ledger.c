/* A summary for each burden, since the heaviest by one may be nobody by another; and one of keys.
 * Items are compared as bytes, so every byte of them is set: what a text leaves free is zero.
 */
#include "traffic/ledger.h"

#include "base/memory.h"
#include "base/text/address.h"

#include <stdlib.h>

enum { PLACES = 128 }; /* who has more than so small a part of all has a place */

struct ledger {
    struct heavy *parties[BURDENS];   /* of struct party */
    struct heavy *addresses[BURDENS]; /* of their address_network() alone */
    struct heavy *keys;               /* of struct asked_key */
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
    for (int i = 0; i < BURDENS; i++) {
        ledger->parties[i] = heavy_create(PLACES, sizeof(struct party));
        ledger->addresses[i] = heavy_create(PLACES, ADDRESS_NETWORK_SIZE);
    }
    ledger->keys = heavy_create(PLACES, sizeof(struct asked_key));
    return ledger;
}

void ledger_destroy(struct ledger *ledger)
{
    if (!ledger)
        return;
    for (int i = 0; i < BURDENS; i++) {
        heavy_destroy(ledger->parties[i]);
        heavy_destroy(ledger->addresses[i]);
    }
    heavy_destroy(ledger->keys);
    free(ledger);
}

void ledger_clear(struct ledger *ledger)
{
    for (int i = 0; i < BURDENS; i++) {
        heavy_clear(ledger->parties[i]);
        heavy_clear(ledger->addresses[i]);
    }
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
    char network[ADDRESS_NETWORK_SIZE] = {0};
    address_network(party->address, network);
    for (int i = 0; i < BURDENS; i++) {
        if (!amounts[i])
            continue;
        heavy_add(ledger->parties[i], party, amounts[i]);
        heavy_add(ledger->addresses[i], network, amounts[i]);
    }
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
    for (int i = 0; i < BURDENS; i++) {
        heavy_merge(into->parties[i], from->parties[i]);
        heavy_merge(into->addresses[i], from->addresses[i]);
    }
    heavy_merge(into->keys, from->keys);
}

const struct heavy *ledger_parties(const struct ledger *ledger, enum burden burden)
{
    return ledger->parties[burden];
}

const struct heavy *ledger_addresses(const struct ledger *ledger, enum burden burden)
{
    return ledger->addresses[burden];
}

const struct heavy *ledger_keys(const struct ledger *ledger)
{
    return ledger->keys;
}

/* NULL: none of this network has a place. */
static const struct heavy_entry *heaviest_of(const struct heavy_entry *all, size_t count,
                                             const char *network)
{
    char its[ADDRESS_NETWORK_SIZE];
    for (size_t i = 0; i < count; i++) {
        address_network(((const struct party *)all[i].item)->address, its);
        if (strcmp(its, network) == 0)
            return &all[i];
    }
    return NULL;
}

bool ledger_suspect(const struct ledger *ledger, enum burden burden, struct ledger_suspect *out)
{
    struct heavy_entry first, parties[PLACES];
    const struct heavy *addresses = ledger_addresses(ledger, burden);
    if (!heavy_top(addresses, &first, 1))
        return false;
    size_t count = heavy_top(ledger_parties(ledger, burden), parties, PLACES);
    const struct heavy_entry *party = heaviest_of(parties, count, first.item);
    *out = (struct ledger_suspect){
        .is_most = party && party->count > first.count / 2,
        .part = (double)first.count / (double)heavy_total(addresses),
    };
    party_set(&out->party, first.item, "", "");
    if (out->is_most)
        out->party = *(const struct party *)party->item;
    return true;
}
