/* Words and errors are Redis' own wherever it has some, so that client libraries take the guard
 * for a Redis.
 */
#include "local.h"

#include "memory.h"
#include "upstream.h"

#include <stdlib.h>

static bool word_is(struct span word, const char *text)
{
    return word.length == strlen(text) && strncasecmp(word.at, text, word.length) == 0;
}

/* Takes as long for every wrong password of a length. */
static bool same_secret(struct span given, const char *secret)
{
    size_t length = strlen(secret);
    unsigned char difference = given.length != length;
    for (size_t i = 0; i < given.length; i++)
        difference |= (unsigned char)(given.at[i] ^ secret[length ? i % length : 0]);
    return !difference;
}

/* The one user is Redis' "default". NULL: welcome; else the error. */
static const char *authenticate(struct client *client, const struct span *user,
                                struct span password)
{
    const char *secret = serving_config(client->serving)->password;
    if (secret && !((!user || word_is(*user, "default")) && same_secret(password, secret)))
        return "WRONGPASS invalid username-password pair or user is disabled.";
    client->authenticated = true;
    return NULL;
}

static void reply(struct client *client, const char *error)
{
    struct buffer *out = client_reply(client);
    if (error)
        resp_write_error(out, "%s", error);
    else
        resp_write_status(out, "OK");
}

static void auth(struct client *client, const struct request *request)
{
    const struct span *words = request->arguments;
    if (request->count != 2 && request->count != 3)
        reply(client, request->count < 2 ? "ERR wrong number of arguments for 'auth' command"
                                         : "ERR syntax error");
    else if (!serving_config(client->serving)->password)
        reply(client, "ERR AUTH <password> called without any password configured for the default "
                      "user. Are you sure your configuration is correct?");
    else
        reply(client, request->count == 2 ? authenticate(client, NULL, words[1])
                                          : authenticate(client, &words[1], words[2]));
}

static const char *set_name(struct client *client, struct span name)
{
    for (size_t i = 0; i < name.length; i++)
        if (name.at[i] < '!' || name.at[i] > '~')
            return "ERR Client names cannot contain spaces, newlines or special characters.";
    free(client->name);
    client->name = name.length ? xstrndup(name.at, name.length) : NULL;
    return NULL;
}

static const char *hello_version(struct span version, bool *resp3)
{
    *resp3 = word_is(version, "3");
    if (*resp3 || word_is(version, "2"))
        return NULL;
    for (size_t i = 0; i < version.length; i++)
        if (version.at[i] < '0' || version.at[i] > '9')
            return "ERR Protocol version is not an integer or out of range";
    return "NOPROTO unsupported protocol version";
}

/* Valid until the thread's next one. */
static const char *bad_option(struct span option)
{
    static _Thread_local char text[160];
    int length = option.length < 100 ? (int)option.length : 100;
    snprintf(text, sizeof text, "ERR Syntax error in HELLO option '%.*s'", length, option.at);
    return text;
}

static const char *hello_options(struct client *client, const struct request *request)
{
    const struct span *words = request->arguments;
    const char *error = NULL;
    for (size_t i = 2; i < request->count && !error;) {
        if (word_is(words[i], "AUTH") && i + 2 < request->count) {
            error = authenticate(client, &words[i + 1], words[i + 2]);
            i += 3;
        } else if (word_is(words[i], "SETNAME") && i + 1 < request->count) {
            error = set_name(client, words[i + 1]);
            i += 2;
        } else {
            error = bad_option(words[i]);
        }
    }
    return error;
}

/* The value behind the key "id" is the connection's, and here it is the client's. */
static void write_hello(struct buffer *out, struct span reply, const struct client *client)
{
    static const char key[] = "$2\r\nid\r\n";
    const char *end = reply.at + reply.length;
    const char *id = memmem(reply.at, reply.length, key, sizeof key - 1);
    const char *rest =
        id ? memchr(id + sizeof key - 1, '\n', (size_t)(end - id) - sizeof key + 1) : NULL;
    if (!rest) {
        buffer_append(out, reply.at, reply.length);
        return;
    }
    buffer_append(out, reply.at, (size_t)(id - reply.at) + sizeof key - 1);
    resp_write_integer(out, (int64_t)client->id);
    buffer_append(out, rest + 1, (size_t)(end - rest) - 1);
}

/* The reply has the form of the protocol that the connection speaks, and from now on the client.
 */
static void hello_reply(struct slot *slot, unsigned index, struct span reply)
{
    struct client *client = client_of(slot->replies);
    (void)index;
    write_hello(slot_output(slot), reply, client);
    if (reply.at[0] != '-')
        client_speak(client, reply.at[0] == '%');
}

static void hello_failure(struct slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(slot_output(slot), "%s", why);
}

static const struct slot_kind hello_kind = {.on_cache = hello_reply,
                                            .on_cache_failure = hello_failure};

/* What HELLO tells of the server, the cache itself tells: a bare HELLO changes nothing on a shared
 * connection. */
static void hello(struct client *client, const struct request *request)
{
    static const struct span bare = {"*1\r\n$5\r\nHELLO\r\n", 15};
    bool resp3 = client->replies.resp3;
    const char *error = NULL;
    if (request->count > 1)
        error = hello_version(request->arguments[1], &resp3);
    if (!error)
        error = hello_options(client, request);
    if (!error && !client->authenticated)
        error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the "
                "HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client "
                "and select the RESP protocol version at the same time";
    if (error) {
        reply(client, error);
        return;
    }
    struct slot *slot = slot_open(&client->replies, &hello_kind);
    upstream_send(client_shared(client, resp3), slot, 0, bare);
    slot_answered(slot);
    client_settle(client);
}

/* The one database of the shared connections may be selected, as libraries do when they connect. */
static void select_db(struct client *client, const struct request *request)
{
    char db[16];
    snprintf(db, sizeof db, "%d", serving_config(client->serving)->cache.db);
    if (request->count != 2)
        reply(client, "ERR wrong number of arguments for 'select' command");
    else if (word_is(request->arguments[1], db))
        reply(client, NULL);
    else
        reply(client, "NESTGUARD unsupported: SELECT of a database other than the one of the "
                      "guard's `cache` setting");
}

/* What libraries send when they connect, and no more. */
static void client_command(struct client *client, const struct request *request)
{
    const struct span *words = request->arguments;
    size_t count = request->count;
    if (count == 3 && word_is(words[1], "SETNAME")) {
        reply(client, set_name(client, words[2]));
    } else if (count == 2 && word_is(words[1], "GETNAME")) {
        if (client->name)
            resp_write_bulk(client_reply(client), client->name, strlen(client->name));
        else
            resp_write_nil(client_reply(client), client->replies.resp3);
    } else if (count == 2 && word_is(words[1], "ID")) {
        resp_write_integer(client_reply(client), (int64_t)client->id);
    } else if (count == 4 && word_is(words[1], "SETINFO")) {
        reply(client, NULL);
    } else {
        reply(client, "NESTGUARD unsupported: of CLIENT, only SETNAME, GETNAME, SETINFO and ID "
                      "are answered here");
    }
}

static void quit(struct client *client, const struct request *request)
{
    (void)request;
    reply(client, NULL);
    client_leave(client);
}

void local_dispatch(struct client *client, const struct request *request)
{
    static const struct {
        const char *name;
        void (*run)(struct client *, const struct request *);
        bool open; /* also before AUTH */
    } rows[] = {{"AUTH", auth, true},
                {"HELLO", hello, true},
                {"QUIT", quit, true},
                {"SELECT", select_db, false},
                {"CLIENT", client_command, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, request->command->name) != 0)
            continue;
        if (rows[i].open || client->authenticated)
            rows[i].run(client, request);
        else
            reply(client, "NOAUTH Authentication required.");
        return;
    }
}
