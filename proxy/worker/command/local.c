/* Words and errors are Redis' own wherever it has some, so that client libraries take the guard
 * for a Redis.
 */
#include "worker/command/local.h"

#include "base/memory.h"
#include "base/text/secret.h"
#include "cache/greeting.h"
#include "resp/reply.h"
#include "worker/client/pinned.h"
#include "worker/client/strangers.h"
#include "worker/client/tracking.h"
#include "worker/command/clients/client_command.h"
#include "worker/command/reset.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>

/* ---- who the client is ---- */

/* The guard's own user is Redis' "default"; all others are the cache's to know.
 *
 *   default ─▶ its password is compared here ─▶ welcome, or a refusal that comes late
 *   others  ─▶ a connection of their own ─▶ the cache's word ─▶ become_user(), or the same
 */
static bool is_own_user(struct span user)
{
    return span_is_word(user, "default");
}

static const char long_user[] = "NESTGUARD unsupported: a user's name has 1024 bytes at most";

static const char wrong_password[] =
    "WRONGPASS invalid username-password pair or user is disabled.";

/* NULL: it is the one of the guard's own user; else the error. */
static const char *password_error(const struct client *client, struct span password)
{
    const char *secret = serving_config(client->serving)->password;
    return secret && !secret_equal(password, span_of(secret)) ? wrong_password : NULL;
}

static void welcome(struct client *client)
{
    client->authenticated = true;
    strangers_review(client);
}

static const struct reply_slot_kind refused_kind = {0};

/* The guard's own refusal of a password: it is told late. */
static void refuse(struct client *client, const char *error)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &refused_kind);
    resp_write_error(&slot->reply, "%s", error);
    strangers_refuse(client, slot);
    reply_slot_answered(slot);
}

/* The cache's; likewise. */
static void take_refusal(struct reply_slot *slot, struct span cache_reply)
{
    buffer_append(&slot->reply, cache_reply.at, cache_reply.length);
    strangers_refuse(client_of(slot->replies), slot);
}

/* The cache has taken the client for one of its users: its own connection is that user's. */
static void become_user(struct client *client)
{
    welcome(client);
    pinned_end_login(client);
    introduction_set(&client->self.user, client->self.asked);
    client->self.asked = NULL;
    client->pinned.states |= PINNED_USER;
    client->replies.no_fallback = true;
}

/* The cache alone knows its users and their passwords. */
static void user_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    (void)index;
    if (reply_is_error(cache_reply))
        take_refusal(slot, cache_reply);
    else if (request_take_change(slot, cache_reply, reply_is_ok(cache_reply)))
        become_user(client_of(slot->replies));
}

static const struct reply_slot_kind user_kind = {.on_cache = user_reply,
                                                 .on_cache_failure = request_take_failure};

/* Over a connection of its own, which becomes that user's. The name is remembered until the cache
 * has answered. It is told no words but those that were looked at here: of a HELLO with several
 * AUTHs it would take one after the other, also the one of its own "default". */
static void log_in_user(struct client *client, struct span user, const struct span *words,
                        size_t count, const struct reply_slot_kind *kind)
{
    if (pinned_begin_login(client) < 0)
        return;
    introduction_set(&client->self.asked, xspandup(user));
    struct reply_slot *slot = reply_slot_open(&client->replies, kind);
    resp_write_command(upstream_command(client->upstream, slot, 0), words, count);
    reply_slot_answered(slot);
    client_settle(client);
}

/* From here on the client is the guard's own user, and may be answered without the cache. */
static void become_default(struct client *client)
{
    client->pinned.states &= ~(unsigned)PINNED_USER;
    client->replies.no_fallback = false;
    introduction_set(&client->self.user, NULL);
}

static void default_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    (void)index;
    if (request_take_change(slot, cache_reply, reply_is_ok(cache_reply)))
        become_default(client_of(slot->replies));
}

static const struct reply_slot_kind default_kind = {.on_cache = default_reply,
                                                    .on_cache_failure = request_take_failure};

/* A user who logs in as the default one again: so does the connection. */
static void leave_user(struct client *client)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &default_kind);
    greeting_write_auth(upstream_command(client->upstream, slot, 0),
                        &upstream_route(client->upstream)->config->cache);
    reply_slot_answered(slot);
    client_settle(client);
}

/* As the guard's own user. */
static void log_in(struct client *client, struct span password)
{
    const char *error = password_error(client, password);
    if (error) {
        refuse(client, error);
        return;
    }
    welcome(client);
    if (client->pinned.states & PINNED_USER)
        leave_user(client);
    else
        client_answer(client, NULL);
}

/* AUTH password, or AUTH user password. */
static void auth(struct client *client, const struct request *request)
{
    const struct span *words = request->arguments;
    if (request->count != 2 && request->count != 3)
        client_answer(client, request->count < 2
                                  ? "ERR wrong number of arguments for 'auth' command"
                                  : "ERR syntax error");
    else if (request->count == 3 && !introduction_has_room(words[1]))
        client_answer(client, long_user);
    else if (request->count == 3 && !is_own_user(words[1]))
        log_in_user(client, words[1], words, 3, &user_kind);
    else if (request->count == 2 && !serving_config(client->serving)->password)
        client_answer(client,
                      "ERR AUTH <password> called without any password configured for the default "
                      "user. Are you sure your configuration is correct?");
    else
        log_in(client, words[request->count - 1]);
}

/* ---- HELLO ---- */

/* As Redis reads one: no blanks, no sign but a minus, no zeros before it. */
static bool is_integer(struct span text)
{
    size_t sign = text.length > 1 && text.at[0] == '-', digits = text.length - sign;
    if (!digits || digits > 18 || (text.at[sign] == '0' && text.length > 1))
        return false;
    for (size_t i = sign; i < text.length; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return true;
}

/* NULL, or the error that Redis has for it. */
static const char *hello_version(struct span version, bool *resp3)
{
    *resp3 = span_is_word(version, "3");
    if (*resp3 || span_is_word(version, "2"))
        return NULL;
    return is_integer(version) ? "NOPROTO unsupported protocol version"
                               : "ERR Protocol version is not an integer or out of range";
}

/* Valid until the thread's next one. */
static const char *bad_option(struct span option)
{
    static _Thread_local char text[160];
    int length = option.length < 100 ? (int)option.length : 100;
    snprintf(text, sizeof text, "ERR Syntax error in HELLO option '%.*s'", length, option.at);
    return text;
}

struct greeting {
    bool resp3;
    const struct span *user, *password, *name; /* NULL: not given */
};

/* AUTH user password and SETNAME name, in any order; the last of each counts. */
static const char *hello_options(const struct request *request, struct greeting *greeting)
{
    const struct span *words = request->arguments;
    for (size_t i = 2; i < request->count;) {
        if (span_is_word(words[i], "AUTH") && i + 2 < request->count) {
            greeting->user = &words[i + 1];
            greeting->password = &words[i + 2];
            i += 3;
        } else if (span_is_word(words[i], "SETNAME") && i + 1 < request->count) {
            greeting->name = &words[i + 1];
            i += 2;
        } else {
            return bad_option(words[i]);
        }
    }
    return NULL;
}

/* Of a cluster, too, clients see one plain Redis (mode.h), unless they are to see the cluster. */
static void write_mode(struct buffer *out, struct span rest, bool is_plain)
{
    static const char cluster[] = "$4\r\nmode\r\n$7\r\ncluster\r\n";
    static const char plain[] = "$4\r\nmode\r\n$10\r\nstandalone\r\n";
    const char *mode = is_plain ? memmem(rest.at, rest.length, cluster, sizeof cluster - 1) : NULL;
    size_t before = mode ? (size_t)(mode - rest.at) : rest.length;
    buffer_append(out, rest.at, before);
    if (!mode)
        return;
    buffer_append(out, plain, sizeof plain - 1);
    before += sizeof cluster - 1;
    buffer_append(out, rest.at + before, rest.length - before);
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
    write_mode(out, (struct span){rest + 1, (size_t)(end - rest) - 1},
               serving_config(client->serving)->cluster_commands != CLUSTER_COMMANDS_PASS);
}

/* With the cache's yes come the name and the protocol, which is the connection's: the reply has its
 * form. */
static void hello_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    struct client *client = client_of(slot->replies);
    (void)index;
    if (!reply_is_hello(cache_reply)) {
        request_take_change(slot, cache_reply, false);
        return;
    }
    write_hello(reply_slot_output(slot), cache_reply, client);
    client_take_name(client);
    bool before = client->replies.resp3;
    client_speak(client, cache_reply.at[0] == '%');
    if (client->replies.resp3 != before)
        tracking_renew(client);
}

static const struct reply_slot_kind hello_kind = {.on_cache = hello_reply,
                                                  .on_cache_failure = request_take_failure};

/* HELLO with AUTH as one of the cache's users: both at once, or nothing. */
static void hello_user_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    if (reply_is_error(cache_reply)) {
        take_refusal(slot, cache_reply);
        return;
    }
    if (reply_is_hello(cache_reply))
        become_user(client_of(slot->replies));
    hello_reply(slot, index, cache_reply);
}

static const struct reply_slot_kind hello_user_kind = {.on_cache = hello_user_reply,
                                                       .on_cache_failure = request_take_failure};

/* The same of one of these who becomes the guard's own user again. */
static void hello_default_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    if (reply_is_hello(cache_reply))
        become_default(client_of(slot->replies));
    hello_reply(slot, index, cache_reply);
}

static const struct reply_slot_kind hello_default_kind = {.on_cache = hello_default_reply,
                                                          .on_cache_failure = request_take_failure};

/* What the guard decides by itself; NULL: the cache may be asked. Nothing has changed by it. All
 * that the HELLO is for is looked at before any of it holds. */
static const char *hello_error(const struct client *client, const struct greeting *greeting)
{
    const char *error = greeting->name ? client_name_error(*greeting->name) : NULL;
    if (error)
        return error;
    if (greeting->user && is_own_user(*greeting->user))
        return password_error(client, *greeting->password);
    if (greeting->user)
        return introduction_has_room(*greeting->user) ? NULL : long_user;
    if (client->authenticated)
        return NULL;
    return "NOAUTH HELLO must be called with the client already authenticated, otherwise the "
           "HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client "
           "and select the RESP protocol version at the same time";
}

/* What HELLO tells of the server, the cache itself tells. On a shared connection a HELLO without
 * arguments changes nothing; the client's own one must change with it. */
static void ask_hello(struct client *client, bool resp3)
{
    static const struct span bare = {"*1\r\n$5\r\nHELLO\r\n", 15};
    static const struct span versions[] = {{"*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n", 22},
                                           {"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", 22}};
    struct reply_slot *slot = reply_slot_open(&client->replies, &hello_kind);
    if (client->pinned.own)
        upstream_send(client->pinned.own, slot, 0, versions[resp3]);
    else
        upstream_send(client_shared(client, resp3), slot, 0, bare);
    reply_slot_answered(slot);
    client_settle(client);
}

static void ask_hello_as_default(struct client *client, bool resp3)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &hello_default_kind);
    greeting_write_hello(upstream_command(client->upstream, slot, 0),
                         &upstream_route(client->upstream)->config->cache, resp3);
    reply_slot_answered(slot);
    client_settle(client);
}

static void ask_hello_as_user(struct client *client, const struct greeting *greeting)
{
    const struct span words[] = {span_of("HELLO"),
                                 span_of(greeting->resp3 ? "3" : "2"),
                                 span_of("AUTH"),
                                 *greeting->user,
                                 *greeting->password,
                                 span_of("SETNAME"),
                                 greeting->name ? *greeting->name : span_of("")};
    log_in_user(client, *greeting->user, words, greeting->name ? 7 : 5, &hello_user_kind);
}

/* Who knows the guard's password is no stranger while the cache is waited for, or when it fails. */
static void ask_by_hello(struct client *client, const struct greeting *greeting)
{
    const struct span *user = greeting->user;
    client_ask_for_name(client, greeting->name);
    if (user && !is_own_user(*user)) {
        ask_hello_as_user(client, greeting);
        return;
    }
    if (user)
        welcome(client);
    if (user && client->pinned.states & PINNED_USER)
        ask_hello_as_default(client, greeting->resp3);
    else
        ask_hello(client, greeting->resp3);
}

static void hello(struct client *client, const struct request *request)
{
    struct greeting greeting = {.resp3 = client->replies.resp3};
    const char *error = NULL;
    if (request->count > 1)
        error = hello_version(request->arguments[1], &greeting.resp3);
    if (!error)
        error = hello_options(request, &greeting);
    if (!error)
        error = hello_error(client, &greeting);
    if (error == wrong_password)
        refuse(client, error);
    else if (error)
        client_answer(client, error);
    else
        ask_by_hello(client, &greeting);
}

/* ---- SELECT ---- */

/* In another database than that of the shared connections nothing that this client asks is about
 * guarded keys. */
static void db_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    struct client *client = client_of(slot->replies);
    struct pinned *pinned = &client->pinned;
    (void)index;
    if (!request_take_change(slot, cache_reply, reply_is_ok(cache_reply)))
        return;
    pinned->db = pinned->asked_db;
    if (pinned->db == upstream_route(client->upstream)->config->cache.db)
        pinned->states &= ~(unsigned)PINNED_OTHER_DB;
    else
        pinned->states |= PINNED_OTHER_DB;
}

static const struct reply_slot_kind db_kind = {.on_cache = db_reply,
                                               .on_cache_failure = request_take_failure};

/* Whatever is no number, the cache refuses; spelt otherwise than here it counts as another. */
static int number_of(struct span text)
{
    char digits[12];
    snprintf(digits, sizeof digits, "%.*s", text.length < 12 ? (int)text.length : 12, text.at);
    int number = atoi(digits);
    snprintf(digits, sizeof digits, "%d", number);
    return span_is(text, digits) ? number : -1;
}

/* Libraries select a database when they connect: that of the shared connections needs no other. A
 * user of the cache's own may not be allowed to. */
static void select_db(struct client *client, const struct request *request)
{
    char db[16];
    snprintf(db, sizeof db, "%d", upstream_route(client->upstream)->config->cache.db);
    bool same = request->count == 2 && span_is_word(request->arguments[1], db);
    if (request->count != 2) {
        client_answer(client, "ERR wrong number of arguments for 'select' command");
    } else if (same && !(client->pinned.states & (PINNED_OTHER_DB | PINNED_USER))) {
        client_answer(client, NULL);
    } else if (pinned_begin_state(client) == 0) {
        client->pinned.asked_db = number_of(request->arguments[1]);
        request_forward_as(request, client, &db_kind);
        client_settle(client);
    }
}

/* ---- the end ---- */

static void quit(struct client *client, const struct request *request)
{
    (void)request;
    client_answer(client, NULL);
    client_leave(client);
}

void local_dispatch(struct client *client, const struct request *request)
{
    static const struct {
        const char *name;
        void (*run)(struct client *, const struct request *);
    } rows[] = {{"AUTH", auth},        {"HELLO", hello},
                {"QUIT", quit},        {"RESET", reset_dispatch},
                {"SELECT", select_db}, {"CLIENT", client_command}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, request->command->name) == 0) {
            rows[i].run(client, request);
            return;
        }
    }
}
