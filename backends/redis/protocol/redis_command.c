/* Commands are encoded when they are made: key and value need not outlive the call, and one that
 * waits for the connection is no more than bytes.
 */
#include "redis/protocol/redis_command.h"
#include "net/allocate.h"
#include "redis/protocol/redis_dump.h"

#include <hiredis.h>

enum {
    ARGUMENTS_MAX = 6, /* SET key value PX ttl NX; all but DEL with many keys */
    HEADER_ROOM = 24   /* a marker, 20 digits, CR LF */
};

struct arguments {
    size_t count;
    struct redis_bytes at[ARGUMENTS_MAX];
};

static void add(struct arguments *arguments, struct redis_bytes bytes)
{
    arguments->at[arguments->count++] = bytes;
}

static void add_text(struct arguments *arguments, const char *text)
{
    add(arguments, (struct redis_bytes){text, strlen(text)});
}

/* From the last digit to the first; returns how many. */
static size_t put_number(char *out, uint64_t number)
{
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(out, digits + first, sizeof digits - first);
    return sizeof digits - first;
}

static char *put_end(char *out)
{
    memcpy(out, "\r\n", 2);
    return out + 2;
}

static char *put_header(char *out, char marker, uint64_t number)
{
    *out++ = marker;
    return put_end(out + put_number(out, number));
}

static char *put_bulk(char *out, struct redis_bytes bytes)
{
    out = put_header(out, '$', bytes.length);
    if (bytes.length)
        memcpy(out, bytes.at, bytes.length);
    return put_end(out + bytes.length);
}

/* Each number is given the room of the longest, so that lengths are not printed twice. */
static struct redis_command *encode(const struct redis_bytes *arguments, size_t count)
{
    struct redis_command *command = allocate(1, sizeof *command);
    size_t room = HEADER_ROOM;
    for (size_t i = 0; i < count; i++)
        room += HEADER_ROOM + arguments[i].length + 2;
    command->wire = allocated(malloc(room));
    char *at = put_header(command->wire, '*', count);
    for (size_t i = 0; i < count; i++)
        at = put_bulk(at, arguments[i]);
    command->wire_length = (size_t)(at - command->wire);
    return command;
}

static struct redis_command *create(const struct arguments *arguments)
{
    return encode(arguments->at, arguments->count);
}

/* One that is answered with a number. */
static struct redis_command *create_for_key(const char *name, struct redis_bytes key)
{
    struct arguments arguments = {0};
    add_text(&arguments, name);
    add(&arguments, key);
    struct redis_command *command = create(&arguments);
    command->form = REDIS_FORM_NUMBER;
    return command;
}

struct redis_command *redis_command_fill(struct redis_bytes key, struct redis_bytes value,
                                         uint64_t ttl_ms)
{
    char ttl[20]; /* as many digits as 2^64 has */
    struct arguments arguments = {0};
    add_text(&arguments, "SET");
    add(&arguments, key);
    add(&arguments, value);
    if (ttl_ms > 0) {
        add_text(&arguments, "PX");
        add(&arguments, (struct redis_bytes){ttl, put_number(ttl, ttl_ms)});
    }
    add_text(&arguments, "NX");
    struct redis_command *command = create(&arguments);
    command->form = REDIS_FORM_OK_OR_NIL;
    command->writes = true;
    return command;
}

/* RESTORE takes nothing that is there away, as SET does with NX, and does all or nothing: no reader
 * sees half a hash, or one without its TTL. Nothing else does all of that on a connection that
 * other fills share: MULTI has no condition, what WATCH watches the next EXEC forgets for all of
 * them, and a script that is refused its second command has carried out its first. */
struct redis_command *redis_command_fill_hash(struct redis_bytes key, struct redis_hash hash,
                                              uint64_t ttl_ms)
{
    char ttl[20];
    struct redis_bytes dump;
    char *bytes = redis_dump_hash(hash, &dump.length);
    struct arguments arguments = {0};
    dump.at = bytes;
    add_text(&arguments, "RESTORE");
    add(&arguments, key);
    add(&arguments, (struct redis_bytes){ttl, put_number(ttl, ttl_ms)});
    add(&arguments, dump);
    struct redis_command *command = create(&arguments);
    command->form = REDIS_FORM_OK;
    command->writes = true;
    free(bytes);
    return command;
}

struct redis_command *redis_command_purge(struct redis_bytes key)
{
    return create_for_key("DEL", key);
}

struct redis_command *redis_command_purge_many(const struct redis_bytes *keys, size_t count)
{
    struct redis_bytes *arguments = allocate(count + 1, sizeof *arguments);
    arguments[0] = (struct redis_bytes){"DEL", 3};
    memcpy(arguments + 1, keys, count * sizeof *keys);
    struct redis_command *command = encode(arguments, count + 1);
    command->form = REDIS_FORM_NUMBER;
    free(arguments);
    return command;
}

struct redis_command *redis_command_scan(const char *cursor, struct redis_bytes pattern,
                                         unsigned count)
{
    char number[20];
    struct arguments arguments = {0};
    add_text(&arguments, "SCAN");
    add_text(&arguments, cursor);
    add_text(&arguments, "MATCH");
    add(&arguments, pattern);
    add_text(&arguments, "COUNT");
    add(&arguments, (struct redis_bytes){number, put_number(number, count)});
    struct redis_command *command = create(&arguments);
    command->form = REDIS_FORM_LIST;
    return command;
}

struct redis_command *redis_command_exists(struct redis_bytes key)
{
    return create_for_key("EXISTS", key);
}

struct redis_command *redis_command_any(const struct redis_bytes *words, size_t count)
{
    return encode(words, count);
}

struct redis_command *redis_command_of(const char *const *words, size_t count)
{
    struct arguments arguments = {0};
    for (size_t i = 0; i < count; i++)
        add_text(&arguments, words[i]);
    return create(&arguments);
}

char *redis_command_take_wire(struct redis_command *command)
{
    char *wire = command->wire;
    command->wire = NULL;
    return wire;
}

/* The keys of a SCAN's reply, in an array that the caller frees; NULL when that is no list of
 * strings. */
static struct redis_bytes *keys_of(const redisReply *list)
{
    if (list->type != REDIS_REPLY_ARRAY)
        return NULL;
    struct redis_bytes *keys = allocate(list->elements, sizeof *keys);
    for (size_t i = 0; i < list->elements; i++) {
        if (list->element[i]->type != REDIS_REPLY_STRING) {
            free(keys);
            return NULL;
        }
        keys[i] = (struct redis_bytes){list->element[i]->str, list->element[i]->len};
    }
    return keys;
}

/* False when the reply is not a cursor and a list of keys. */
static bool read_page(struct redis_page *page, const redisReply *reply)
{
    if (reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING)
        return false;
    page->cursor = reply->element[0]->str;
    page->keys = keys_of(reply->element[1]);
    page->count = reply->element[1]->elements;
    return page->keys != NULL;
}

static struct redis_answer refusal(const char *error)
{
    return (struct redis_answer){.outcome = REDIS_REFUSED, .error = error};
}

/* What RESTORE says where SET with NX says nil: the key is there. */
static bool says_taken(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "BUSYKEY ", 8) == 0;
}

/* CONFIG GET's: a name and its value. */
static bool is_pair(const redisReply *reply)
{
    return reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
           reply->element[1]->type == REDIS_REPLY_STRING;
}

/* BITFIELD's. */
static bool are_numbers(const redisReply *reply)
{
    for (size_t i = 0; i < reply->elements; i++)
        if (reply->element[i]->type != REDIS_REPLY_INTEGER)
            return false;
    return reply->elements > 0;
}

static struct redis_bytes head_of(const redisReply *reply)
{
    const redisReply *first =
        reply->type == REDIS_REPLY_ARRAY && reply->elements ? reply->element[0] : NULL;
    if (!first || first->type != REDIS_REPLY_STRING)
        return (struct redis_bytes){0};
    return (struct redis_bytes){first->str, first->len};
}

/* The few kinds of replies that these commands have: a status or nil, an integer, a string, a pair,
 * numbers, SCAN's array, an error. `page.keys` is the caller's to free. */
static struct redis_answer answer_of(const redisReply *reply)
{
    struct redis_answer answer = {.outcome = REDIS_DONE, .found = true, .error = ""};
    if (reply->type == REDIS_REPLY_NIL || says_taken(reply))
        answer.found = false;
    else if (reply->type == REDIS_REPLY_ERROR)
        return refusal(reply->str);
    else if (reply->type == REDIS_REPLY_INTEGER)
        answer.number = reply->integer;
    else if (reply->type == REDIS_REPLY_STRING)
        answer.text = (struct redis_bytes){reply->str, reply->len};
    else if (reply->type == REDIS_REPLY_ARRAY && is_pair(reply))
        answer.text = (struct redis_bytes){reply->element[1]->str, reply->element[1]->len};
    else if (reply->type == REDIS_REPLY_ARRAY && !are_numbers(reply) &&
             !read_page(&answer.page, reply))
        answer = refusal("a reply of an unknown form");
    answer.head = head_of(reply);
    return answer;
}

static bool is_status(const redisReply *reply, const char *text)
{
    return reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, text) == 0;
}

bool redis_command_is_answered_by(const struct redis_command *command,
                                  const struct redisReply *reply)
{
    if (!command || reply->type == REDIS_REPLY_ERROR)
        return command;
    switch (command->form) {
    case REDIS_FORM_ANY:
        break;
    case REDIS_FORM_OK:
        return is_status(reply, "OK");
    case REDIS_FORM_OK_OR_NIL:
        return is_status(reply, "OK") || reply->type == REDIS_REPLY_NIL;
    case REDIS_FORM_PONG:
        return is_status(reply, "PONG");
    case REDIS_FORM_NUMBER:
        return reply->type == REDIS_REPLY_INTEGER;
    case REDIS_FORM_TEXT:
        return reply->type == REDIS_REPLY_STRING;
    case REDIS_FORM_LIST:
        return reply->type == REDIS_REPLY_ARRAY;
    }
    return true;
}

void redis_command_deliver(struct redis_command *command, const struct redisReply *reply,
                           const char *reason)
{
    redis_answer_cb done = command->done;
    void *arg = command->arg;
    struct redis_answer answer = {.outcome = REDIS_DOWN, .error = reason};
    if (reply)
        answer = answer_of(reply);
    free(command->wire);
    free(command);
    if (done)
        done(arg, &answer);
    free((struct redis_bytes *)answer.page.keys);
}

void redis_commands_append(struct redis_commands *commands, struct redis_command *command)
{
    command->next = NULL;
    if (commands->first)
        commands->last->next = command;
    else
        commands->first = command;
    commands->last = command;
}

struct redis_command *redis_commands_take(struct redis_commands *commands)
{
    struct redis_command *command = commands->first;
    if (command)
        commands->first = command->next;
    return command;
}
