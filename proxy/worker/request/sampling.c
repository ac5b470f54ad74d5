/* The distance from one sample to the next is random, so that no rhythm of a client's commands
 * keeps a key out.
 */
#include "worker/request/sampling.h"

#include "guard/guard.h"
#include "traffic/ledger.h"

/* That low numbers are a little more likely is no matter: `below` is small. */
static uint64_t draw(struct sampling *sampling, uint64_t below)
{
    uint64_t random = sampling->random;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    sampling->random = random;
    return random % below;
}

/* The same ruling as the lookup's, or what it would be by now. */
static bool is_rejected(struct serving *serving, int keyspace, struct span key)
{
    struct permission permission = permission_begin(serving->view);
    bool held = guard_holds(serving->view, key_make(keyspace, key));
    return guard_decide(&permission, &serving->overrides, keyspace, key, held).decision ==
           DECISION_REJECT;
}

/* Keys of a command that looks some up: how many, from the first on. */
static size_t keys_of(const struct request *request)
{
    switch (request->command->kind) {
    case COMMAND_GET:
    case COMMAND_READ:
        return request->keyspace != NOT_GUARDED;
    case COMMAND_MGET:
    case COMMAND_EXISTS:
        return request->count - 1;
    default:
        return 0;
    }
}

void sampling_take(struct client *client, const struct request *requests, size_t count)
{
    struct serving *serving = client->serving;
    struct sampling *sampling = &serving->sampling;
    uint64_t commands = counter_read(&serving->counters.commands);
    uint64_t weight = commands - sampling->last;
    const struct request *request = &requests[draw(sampling, count)];
    size_t keys = client_is_ending(client) ? 0 : keys_of(request);
    sampling->last = commands;
    sampling->next = commands + 1 + draw(sampling, 2 * SAMPLING_EACH - 1);
    if (!keys)
        return;
    struct span key =
        request->arguments[(size_t)request->command->first_key + draw(sampling, keys)];
    int keyspace = guard_match(serving_config(serving), key);
    if (keyspace != NOT_GUARDED && is_rejected(serving, keyspace, key))
        ledger_add_key(serving->ledger, keyspace, key, weight * keys);
}
