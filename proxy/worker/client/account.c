/* Lookups of one key are counted where they are not rejected: that costs the others nothing. */
#include "worker/client/account.h"

#include "base/keymap.h"
#include "base/text/address.h"
#include "traffic/ledger.h"

void account_open(struct client *client)
{
    char peer[STREAM_PEER_SIZE], network[ADDRESS_NETWORK_SIZE];
    stream_peer(&client->stream, peer);
    char *port = strrchr(peer, ':');
    if (port)
        *port = '\0';
    snprintf(client->address, sizeof client->address, "%.*s", (int)sizeof client->address - 1,
             peer);
    address_network(client->address, network);
    client->replies.origin = keymap_hash(span_of(network));
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
