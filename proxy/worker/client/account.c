/* Lookups of one key are counted where they are not rejected: that costs the others nothing. */
#include "worker/client/account.h"

#include "base/keymap.h"
#include "traffic/ledger.h"

#include <uv.h>

/* Of an address in brackets: the network that a host has for itself, or the address of IPv4 that it
 * stands for. False: it is none. */
static bool network_of(const char *address, unsigned char bytes[16], struct span *network)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN];
    if (*address != '[')
        return false;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(address + 1, "]"), address + 1);
    if (uv_inet_pton(AF_INET6, text, bytes) != 0)
        return false;
    bool is_mapped = memcmp(bytes, mapped, sizeof mapped) == 0;
    *network = (struct span){(char *)bytes + (is_mapped ? sizeof mapped : 0), is_mapped ? 4 : 8};
    return true;
}

uint64_t account_origin(const char *address)
{
    unsigned char bytes[16];
    struct span network;
    return keymap_hash(network_of(address, bytes, &network) ? network : span_of(address));
}

void account_open(struct client *client)
{
    char peer[STREAM_PEER_SIZE];
    stream_peer(&client->stream, peer);
    char *port = strrchr(peer, ':');
    if (port)
        *port = '\0';
    snprintf(client->address, sizeof client->address, "%.*s", (int)sizeof client->address - 1,
             peer);
    client->replies.origin = account_origin(client->address);
}

/* What is not among the others was a rejected lookup of one key; commands with many keys count
 * theirs. */
static uint64_t rejects_of(const struct account *account)
{
    return account->commands - account->others + account->rejected_keys;
}

void account_settle(struct client *client)
{
    const struct account *now = &client->account, *then = &client->settled;
    struct party party = {0};
    client->account.loads = client->replies.loads;
    if (now->bytes == then->bytes && now->commands == then->commands && now->loads == then->loads)
        return;
    const uint64_t amounts[BURDENS] = {[BURDEN_rejects] = rejects_of(now) - rejects_of(then),
                                       [BURDEN_loads] = now->loads - then->loads,
                                       [BURDEN_bytes] = now->bytes - then->bytes,
                                       [BURDEN_commands] = now->commands - then->commands};
    party_set(&party, client->address, client->self.name,
              client->self.user ? client->self.user : "default");
    ledger_add_party(client->serving->ledger, &party, amounts);
    client->settled = client->account;
}
