/* What a doubted server has of a row may be a value that it has forgotten to delete: nobody is told
 * of it, by whatever command. Those that write as well fail as a whole, and are not sent. A write
 * without the old value would be half of what was asked for, and whoever tries again, as the error
 * says, would be told of what he has just written himself. Writes that tell nothing go through as
 * ever, so that who needs no old value need not wait. To the keeper it is like one whose connection
 * was lost: it counts as done, which costs a lookup or a deletion more.
 *
 * The table says of which commands the reply tells nothing (command_telling); all others are taken
 * to tell of every key that is known to be theirs, and those that it does not name of every word.
 *
 * Inside MULTI they are sent, as lookups are: what is answered with an error there and yet not told
 * to the cache would be done by halves. Their EXEC is withheld (withheld.h).
 */
#include "worker/command/keys/telling.h"

#include "guard/guard.h"
#include "resp/command_way.h"
#include "worker/command/keys/write_keys.h"
#include "worker/upstream/upstream.h"

static bool has_option_get(const struct request *request)
{
    for (size_t i = 3; i < request->count; i++)
        if (span_is_word(request->arguments[i], "GET"))
            return true;
    return false;
}

static bool is_quiet(const struct request *request)
{
    enum command_telling telling = request->command->telling;
    return telling == TELLS_NOT || (telling == TELLS_WITH_GET && !has_option_get(request));
}

/* Of the words from `first` up to `end`. */
static bool has_row(const struct serving *serving, const struct request *request, size_t first,
                    size_t end, size_t step)
{
    for (size_t i = first; i < end && i < request->count; i += step) {
        int keyspace = guard_match(serving_config(serving), request->arguments[i]);
        if (keyspace != NOT_GUARDED && keyspace_has_rows(serving_keyspace(serving, keyspace)))
            return true;
    }
    return false;
}

/* Further keys stand behind the first, and nobody else's values: in doubt all words are keys. */
static bool has_row_by_way(const struct serving *serving, const struct request *request)
{
    size_t key = command_way(request->command, request->arguments, request->count).key;
    return key && has_row(serving, request, key, request->count, 1);
}

/* Of a source and a destination the way has one, and these are the other. */
static bool has_row_by_keys(const struct serving *serving, const struct request *request)
{
    const struct command *command = request->command;
    if (command->first_key <= 0 || !command_arity_ok(command, request->count))
        return false;
    struct write_keys keys = write_keys_of(request);
    return has_row(serving, request, keys.first, keys.end, (size_t)command->key_step);
}

bool telling_has_row(const struct serving *serving, const struct request *request)
{
    if (command_is_unnamed(request->command))
        return has_row(serving, request, 1, request->count, 1);
    return !is_quiet(request) &&
           (has_row_by_way(serving, request) || has_row_by_keys(serving, request));
}

bool telling_in_doubt(const struct client *client, const struct request *request)
{
    const struct upstream *upstream = client->upstream;
    if (upstream_is_up(upstream) && !upstream_is_doubted(upstream))
        return false;
    return !(client->pinned.states & PINNED_MULTI) && telling_has_row(client->serving, request);
}

void telling_forward(struct client *client, const struct request *request)
{
    if (telling_in_doubt(client, request))
        request_forward_telling(request, client);
    else
        request_forward(request, client);
}
