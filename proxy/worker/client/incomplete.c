/* Spans of arguments are kept from turn to turn, and point into the input: nothing else may become
 * of that meanwhile. Where it has moved all the same, all is read anew.
 */
#include "worker/client/incomplete.h"

#include "worker/reply/piecemeal.h"

#include <stdlib.h>

enum {
    GUEST_ARGUMENTS = 10, /* what may be sent before AUTH, as in Redis */
    GUEST_BULK = 16 * 1024,
    GUEST_COMMAND = GUEST_ARGUMENTS * (GUEST_BULK + RESP_HEADER_ROOM),
    INLINE_BYTES = 64 * 1024
};

/* In a turn, in some 50 us each. */
enum {
    MEASURED_AT_ONCE = 8192,
    READ_AT_ONCE = 4096 /* of new memory, which the kernel clears */
};

struct incomplete {
    const char *input, *at; /* where the command begins; the next argument */
    struct span *arguments; /* of malloc(), for all that were measured */
    size_t count;           /* so many were read */
    size_t bytes;           /* of serving->piecemeal */
};

struct resp_limits incomplete_limits(const struct client *client)
{
    const struct config *config = serving_config(client->serving);
    if (!client->authenticated)
        return (struct resp_limits){GUEST_ARGUMENTS, GUEST_BULK, GUEST_COMMAND, GUEST_BULK,
                                    client->serving->max_bulk};
    return (struct resp_limits){config->max_arguments, client->serving->max_bulk,
                                config->max_command, INLINE_BYTES, 0};
}

/* ---- measuring ---- */

bool incomplete_stays(struct client *client, const char *input, size_t length)
{
    struct resp_limits limits = incomplete_limits(client);
    bool had_key = client->measure.passed >= 2;
    size_t need = resp_measure(&client->measure, input, length, &limits, MEASURED_AT_ONCE);
    if (need == length) {
        turn_worked(&client->serving->turn, MEASURED_AT_ONCE);
        client_queue_input(client);
        return true;
    }
    if (!need || (need > UPLOAD_BYTES && (client->need <= UPLOAD_BYTES || !had_key)))
        return false;
    client->need = need;
    return true;
}

/* ---- reading ---- */

static bool is_whole(const struct client *client)
{
    const struct resp_measure *measure = &client->measure;
    return client->need && measure->scanned && !measure->left;
}

size_t incomplete_bytes(const struct client *client)
{
    return client->incomplete ? client->incomplete->bytes : 0;
}

void incomplete_drop(struct client *client)
{
    struct incomplete *incomplete = client->incomplete;
    if (!incomplete)
        return;
    client->serving->piecemeal -= incomplete_bytes(client);
    client->incomplete = NULL;
    free(incomplete->arguments);
    free(incomplete);
}

static struct incomplete *create(const char *input, size_t bytes)
{
    struct incomplete *incomplete = malloc(sizeof *incomplete);
    struct span *arguments = malloc(bytes);
    if (!incomplete || !arguments) {
        free(incomplete);
        free(arguments);
        return NULL;
    }
    *incomplete = (struct incomplete){
        .input = input, .at = resp_measured_open(input), .arguments = arguments, .bytes = bytes};
    return incomplete;
}

static bool begin(struct client *client, const char *input)
{
    size_t bytes = client->measure.passed * sizeof(struct span);
    if (client->incomplete && client->incomplete->input == input)
        return true;
    incomplete_drop(client);
    if (piecemeal_has_room(client->serving, bytes))
        client->incomplete = create(input, bytes);
    client->serving->piecemeal += incomplete_bytes(client);
    return client->incomplete != NULL;
}

/* Limits may have been lowered since it was measured. */
static bool is_allowed(const struct client *client)
{
    const struct resp_limits limits = incomplete_limits(client);
    const struct resp_measure *measure = &client->measure;
    return measure->scanned <= limits.max_command && measure->passed <= limits.max_arguments;
}

/* False: one of these is too long by now. */
static bool read_some(struct client *client, struct incomplete *incomplete)
{
    struct span *next = incomplete->arguments + incomplete->count;
    size_t left = client->measure.passed - incomplete->count;
    size_t count = left < READ_AT_ONCE ? left : READ_AT_ONCE, longest = 0;
    resp_measured_next(&incomplete->at, next, count);
    for (size_t i = 0; i < count; i++)
        longest = next[i].length > longest ? next[i].length : longest;
    incomplete->count += count;
    turn_worked(&client->serving->turn, count);
    return longest <= client->serving->max_bulk;
}

/* Whoever reads it at once says what is wrong with it. */
static bool can_go_on(struct client *client, const char *input)
{
    return is_allowed(client) && begin(client, input) && read_some(client, client->incomplete);
}

enum reading incomplete_read(struct client *client, const char *input,
                             struct resp_arguments *arguments, struct resp_command *command)
{
    const struct resp_measure *measure = &client->measure;
    if (!is_whole(client) || measure->passed <= READ_AT_ONCE)
        return READING_AT_ONCE;
    if (!can_go_on(client, input)) {
        incomplete_drop(client);
        return READING_AT_ONCE;
    }
    if (client->incomplete->count < measure->passed) {
        client_queue_input(client);
        return READING_ON;
    }
    *command = (struct resp_command){.count = measure->passed, .length = measure->scanned};
    *arguments = (struct resp_arguments){
        .at = client->incomplete->arguments, .count = measure->passed, .size = measure->passed};
    client->incomplete->arguments = NULL;
    incomplete_drop(client);
    return READING_WHOLE;
}
