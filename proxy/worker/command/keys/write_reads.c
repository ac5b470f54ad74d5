/* What a doubted server has of a row may be a value that it has forgotten to delete: nobody is told
 * of it, by whatever command. Those that write as well fail as a whole, and are not sent. A write
 * without the old value would be half of what was asked for, and whoever tries again, as the error
 * says, would be told of what he has just written himself. Writes that do not ask go through as
 * ever, so that who needs no old value need not wait. To the keeper it is like one whose connection
 * was lost: it counts as done, which costs a lookup or a deletion more.
 *
 * Inside MULTI they are sent, as lookups are: what is answered with an error there and yet not told
 * to the cache would be done by halves.
 */
#include "worker/command/keys/write_reads.h"

#include "guard/guard.h"
#include "worker/upstream/upstream.h"

static bool has_option_get(const struct request *request)
{
    for (size_t i = 3; i < request->count; i++)
        if (span_is_word(request->arguments[i], "GET"))
            return true;
    return false;
}

static bool reads(const struct request *request)
{
    const char *name = request->command->name;
    return !strcmp(name, "GETDEL") || !strcmp(name, "GETSET") ||
           (!strcmp(name, "SET") && has_option_get(request));
}

static bool has_row(const struct serving *serving, struct span key)
{
    int keyspace = guard_match(serving_config(serving), key);
    return keyspace != NOT_GUARDED && keyspace_has_rows(serving_keyspace(serving, keyspace));
}

bool write_reads_in_doubt(const struct client *client, const struct request *request)
{
    const struct upstream *upstream = client->upstream;
    if (upstream_is_up(upstream) && !upstream_is_doubted(upstream))
        return false;
    return !(client->pinned.states & PINNED_MULTI) && request->count > 1 && reads(request) &&
           has_row(client->serving, request->arguments[1]);
}
