/* The table of commands says which keys a command makes, not all that it changes (RENAME's first).
 * So whatever has a guarded key among its arguments, and is not known to read only, counts; and so
 * does what may write without naming a key. What is in the table of those that read may still take
 * its key away (GETEX).
 */
#include "worker/command/reads_order.h"

#include "guard/guard.h"
#include "worker/client/reads.h"
#include "worker/command/keys/vanishing.h"

static bool names_guarded(const struct serving *serving, const struct request *request)
{
    for (size_t i = 1; i < request->count; i++)
        if (guard_match(serving_config(serving), request->arguments[i]) != NOT_GUARDED)
            return true;
    return false;
}

static bool writes_all(const struct request *request)
{
    struct span name = request->arguments[0];
    return span_is_word(name, "flushall") || span_is_word(name, "flushdb") ||
           span_is_word(name, "swapdb") || request->command->proof == PROOF_SCRIPT;
}

static bool may_write(const struct serving *serving, const struct request *request)
{
    switch (request->command->kind) {
    case COMMAND_GET:
    case COMMAND_MGET:
    case COMMAND_EXISTS:
    case COMMAND_MEMBER:
    case COMMAND_FILTER:
    case COMMAND_LOCAL:
        return false;
    case COMMAND_READ:
        return vanishing_has(request) && names_guarded(serving, request);
    case COMMAND_STATEFUL:
        return true;
    default:
        return writes_all(request) || names_guarded(serving, request);
    }
}

bool reads_order_holds(struct client *client, const struct request *request)
{
    if (!may_write(client->serving, request))
        return false;
    if (client->replies.at_replicas)
        return true;
    reads_note_write(client);
    return false;
}
