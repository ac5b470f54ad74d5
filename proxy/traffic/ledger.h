/* Who has asked for how much, and for which absent keys: the heaviest of some stretch of time. A
 * worker keeps one of its clients, the keeper merges them.
 */
#ifndef NESTGUARD_LEDGER_H
#define NESTGUARD_LEDGER_H

#include "base/span.h"
#include "traffic/heavy.h"

/* By what clients are heavy: X(name) */
#define BURDENS_OF(X) X(rejects) X(loads) X(bytes) X(commands)

#define BURDEN_MEMBER(name) BURDEN_##name,
enum burden { BURDENS_OF(BURDEN_MEMBER) BURDENS };

/* "rejects", "loads", "bytes", "commands": static. */
const char *burden_name(enum burden burden);

/* Clients of one address, name and user are one party, however often they connect. */
struct party {
    char address[48];        /* without the port, or "unix" */
    char name[32], user[32]; /* as far as there is room */
};

/* Copies what there is room for. */
void party_set(struct party *party, const char *address, const char *name, const char *user);

enum { ASKED_KEY_SIZE = 88 };

struct asked_key {
    uint32_t keyspace;
    uint32_t length;
    char text[ASKED_KEY_SIZE]; /* as far as there is room */
};

struct ledger;

/* Empty. One thread at a time has a ledger: whoever is given it. */
struct ledger *ledger_create(void);
void ledger_destroy(struct ledger *ledger); /* NULL is allowed */
void ledger_clear(struct ledger *ledger);

/* What the party has asked for since it was last added, by each burden. */
void ledger_add_party(struct ledger *ledger, const struct party *party,
                      const uint64_t amounts[BURDENS]);
/* `weight`: of how many lookups the key is a sample. */
void ledger_add_key(struct ledger *ledger, int keyspace, struct span text, uint64_t weight);

/* As if `into` had heard both; see heavy_merge(). */
void ledger_merge(struct ledger *into, const struct ledger *from);

/* Whose address (address_network(): a network of IPv6 is one) is the heaviest, whatever its clients
 * call themselves. */
struct ledger_suspect {
    bool is_most;       /* most of what the address has is one party's: */
    struct party party; /* that one; else it has an address alone */
    double part;        /* the address's, of all: 0 to 1 */
};

/* False: nobody has asked for any. */
bool ledger_suspect(const struct ledger *ledger, enum burden burden, struct ledger_suspect *out);

/* The summaries themselves, as they are until the ledger is changed. */
const struct heavy *ledger_parties(const struct ledger *ledger,
                                   enum burden burden); /* struct party */
const struct heavy *ledger_addresses(const struct ledger *ledger,
                                     enum burden burden);     /* text: address_network() */
const struct heavy *ledger_keys(const struct ledger *ledger); /* struct asked_key */

#endif
