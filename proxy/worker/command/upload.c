/*   *3 $3 SET $8 item:new $536870912 ...........................
 *   └──── looked at ────┘            └─ counted down, passed on ─┘
 *
 * The cache runs nothing before the last byte is there: a write is noted just before that goes.
 */
#include "worker/command/upload.h"

#include "base/memory.h"
#include "resp/command.h"
#include "resp/resp_number.h"
#include "worker/client/pinned.h"
#include "worker/command/keys/write.h"
#include "worker/request/request.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>

struct upload {
    struct reply_slot *slot; /* waits for the end of the upload as for an answer */
    size_t arguments;        /* still to come, the present one included */
    size_t body;             /* bytes of it still to come, CR LF included; 0: its header is next */
    size_t room;             /* bytes that the command may still take */
    struct span key;         /* of a write: in `bytes`; else empty */
    const struct command *command;
    size_t options; /* arguments behind the value of a SET */
    bool may_get;   /* one of these may be GET, by its length: its words are not looked at */
    char bytes[];
};

/* One argument that is all there. */
static bool read_word(const char **at, const char *end, struct span *word)
{
    int64_t length;
    if (*at == end || *(*at)++ != '$' || resp_read_number(at, end, &length) != RESP_DONE ||
        length < 0 || end - *at < length + 2)
        return false;
    *word = (struct span){*at, (size_t)length};
    *at += length + 2;
    return true;
}

/* Name and first argument, and behind the array's header `*at`. 0, or the number of arguments. */
static size_t read_beginning(const char **at, const char *end, struct span words[2])
{
    int64_t count;
    if (*at == end || *(*at)++ != '*' || resp_read_number(at, end, &count) != RESP_DONE ||
        count < 3)
        return 0;
    const char *word = *at;
    if (!read_word(&word, end, &words[0]) || !read_word(&word, end, &words[1]))
        return 0;
    return (size_t)count;
}

/* With one key, which stands first: so it is known before the rest has come. */
static bool is_write(const struct command *command)
{
    return command->kind == COMMAND_WRITE && command->first_key == 1 && command->last_key == 1;
}

/* What it tells of a row is withheld when its key and its options are known (telling.h). */
static bool may_tell_in_doubt(const struct client *client, const struct command *command)
{
    return command->telling != TELLS_NOT && upstream_is_doubted(client->upstream);
}

/* A node of a cluster may send the command on to another, and it would have to be sent anew; for
 * what was gathered nodes.c sees to it. */
static bool may_have_own(const struct client *client, const struct command *command)
{
    bool has_room = client->pinned.own || pinned_has_room(client, 1);
    return has_room && !pool_is_cluster(client_pool(client)) && !may_tell_in_doubt(client, command);
}

/* Only a client without any state, and a command that its beginning says all of: others are
 * gathered, as far as limits let them. */
static bool may_begin(const struct client *client, const struct command *command, size_t count)
{
    const struct config *config = serving_config(client->serving);
    bool forwarded = command->kind == COMMAND_FORWARD || command->kind == COMMAND_STATEFUL;
    bool plain = forwarded && command->effect == EFFECT_NONE;
    return client->authenticated && !client->pinned.states && may_have_own(client, command) &&
           (plain || is_write(command)) && command_arity_ok(command, count) &&
           count <= config->max_arguments;
}

/* Of what is asked key by key little may come to the cache. What waits for a connection of its own
 * leaves when that comes up, and would not be told at once that the server is doubted. */
void upload_lead(struct client *client, const struct request *request)
{
    enum command_kind kind = request->command->kind;
    bool asks_each = kind == COMMAND_MGET || kind == COMMAND_EXISTS;
    bool is_large = request->raw.length > UPLOAD_BYTES && !asks_each;
    if (is_large && may_have_own(client, request->command))
        pinned_begin(client);
}

/* The key is copied: the input that it stands in is gone when the end comes. */
static struct upload *create(struct client *client, struct span key, size_t arguments)
{
    struct upload *upload = xcalloc(1, sizeof *upload + key.length);
    memcpy(upload->bytes, key.at, key.length);
    upload->key = (struct span){upload->bytes, key.length};
    upload->arguments = arguments;
    upload->room = serving_config(client->serving)->max_command;
    return upload;
}

/* With GET a SET answers nil though it has written; else as if it was small (write_proof.h). */
static enum command_proof proof_of(const struct upload *upload)
{
    bool may_get = upload->may_get && !strcmp(upload->command->name, "SET");
    return may_get ? PROOF_NO_ERROR : upload->command->proof;
}

/* The slot is answered for the upload; for the command it waits on, until the cache has. */
static void finish(struct client *client, bool whole)
{
    struct upload *upload = client->pinned.upload;
    if (whole && upload->key.length)
        write_note(upload->slot, proof_of(upload), upload->key);
    reply_slot_answered(upload->slot);
    client->pinned.upload = NULL;
    client->pinned.states &= ~(unsigned)PINNED_UPLOAD;
    free(upload);
}

void upload_abort(struct client *client)
{
    if (client->pinned.upload)
        finish(client, false);
}

size_t upload_begin(struct client *client, const char *input, size_t length)
{
    struct span words[2];
    const char *at = input;
    size_t count = read_beginning(&at, input + length, words);
    const struct command *command = count ? command_find(words[0]) : NULL;
    if (!command || !may_begin(client, command, count) || pinned_begin(client) < 0)
        return 0;
    struct span key = is_write(command) ? words[1] : (struct span){"", 0};
    struct upload *upload = create(client, key, count);
    upload->command = command;
    upload->options = count - 3;
    upload->slot = key.length ? write_open(client) : request_open(client);
    client->pinned.upload = upload;
    client->pinned.states |= PINNED_UPLOAD;
    upstream_send(client->upstream, upload->slot, 0, (struct span){input, (size_t)(at - input)});
    upstream_be_patient(client->upstream, true);
    return (size_t)(at - input) + upload_go_on(client, at, length - (size_t)(at - input));
}

/* The next argument's header. RESP_BAD also for what is over a limit. */
static enum resp_status read_header(struct client *client, const char **at, const char *end)
{
    struct upload *upload = client->pinned.upload;
    int64_t length;
    if (*(*at)++ != '$')
        return RESP_BAD;
    enum resp_status status = resp_read_number(at, end, &length);
    if (status != RESP_DONE)
        return status;
    if (length < 0 || (size_t)length > client->serving->max_bulk || (size_t)length > upload->room)
        return RESP_BAD;
    upload->may_get |= length >= 3 && upload->arguments <= upload->options;
    upload->room -= (size_t)length;
    upload->body = (size_t)length + 2;
    return RESP_DONE;
}

/* How many bytes of the input belong to the command. */
static size_t measure(struct client *client, const char *input, size_t length,
                      enum resp_status *status)
{
    struct upload *upload = client->pinned.upload;
    const char *at = input, *end = input + length;
    *status = RESP_DONE;
    while (at < end && upload->arguments) {
        if (!upload->body) {
            const char *next = at;
            *status = read_header(client, &next, end);
            if (*status != RESP_DONE)
                break;
            at = next;
        }
        size_t part = (size_t)(end - at) < upload->body ? (size_t)(end - at) : upload->body;
        at += part;
        upload->body -= part;
        upload->arguments -= !upload->body;
    }
    return (size_t)(at - input);
}

/* What the cache has got of a command that breaks off ends with the connection. */
size_t upload_go_on(struct client *client, const char *input, size_t length)
{
    enum resp_status status;
    size_t taken = measure(client, input, length, &status);
    if (status == RESP_BAD) {
        counter_add(&client->serving->counters.protocol_errors, 1);
        client_close(client);
        return length;
    }
    struct upstream *upstream = client->upstream;
    bool whole = !client->pinned.upload->arguments;
    if (whole)
        finish(client, true);
    upstream_append(upstream, (struct span){input, taken});
    if (whole)
        upstream_be_patient(upstream, false);
    return taken;
}
