/* INFO is answered by the cache, and two of its lines are replaced on the way back, which needs the
 * whole reply: its kind takes no parts. The other commands get what a Redis without a cluster says
 * to them.
 */
#include "worker/command/mode.h"

#include "worker/command/stateful.h"

#include <string.h>

/* Lines of INFO, and what a plain Redis has in their place. */
static const struct line {
    const char *cluster, *plain;
} lines[] = {{"redis_mode:cluster\r\n", "redis_mode:standalone\r\n"},
             {"cluster_enabled:1\r\n", "cluster_enabled:0\r\n"}};

/* The line that stands at the beginning of `text`; NULL: none of these does. */
static const struct line *line_at(struct span text)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (span_starts(text, lines[i].cluster))
            return &lines[i];
    return NULL;
}

/* Line by line. The text may have another length then: the reply's header is written anew. */
static void rewrite(struct buffer *out, struct span text)
{
    while (text.length) {
        const struct line *line = line_at(text);
        const char *end = memchr(text.at, '\n', text.length);
        size_t length = end ? (size_t)(end + 1 - text.at) : text.length;
        if (line)
            buffer_append(out, line->plain, strlen(line->plain));
        else
            buffer_append(out, text.at, length);
        text = (struct span){text.at + length, text.length - length};
    }
}

/* A bulk string, or in RESP3 a verbatim one, "=N\r\ntxt:...\r\n". */
static void info_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    const char *head_end = memchr(reply.at, '\n', reply.length);
    size_t head = head_end ? (size_t)(head_end + 1 - reply.at) : 0;
    if ((reply.at[0] != '$' && reply.at[0] != '=') || reply.length < head + 2) {
        request_take_reply(slot, index, reply);
        return;
    }
    struct buffer text = {0};
    struct buffer *out = reply_slot_output(slot);
    rewrite(&text, (struct span){reply.at + head, reply.length - head - 2});
    buffer_printf(out, "%c%zu\r\n", reply.at[0], buffer_length(&text));
    buffer_append(out, buffer_span(&text).at, buffer_length(&text));
    buffer_append(out, "\r\n", 2);
    buffer_finish(&text);
}

static const struct reply_slot_kind info_kind = {.on_cache = info_reply,
                                                 .on_cache_failure = request_take_failure};

/* As if the command had no row of this kind: by what it does to its connection. */
static void pass(struct client *client, const struct request *request)
{
    if (request->command->effect == EFFECT_NONE)
        request_forward(request, client);
    else
        stateful_dispatch(client, request);
}

void mode_dispatch(struct client *client, const struct request *request)
{
    if (serving_config(client->serving)->cluster_commands == CLUSTER_COMMANDS_PASS)
        pass(client, request);
    else if (strcmp(request->command->name, "INFO") == 0)
        request_forward_as(request, client, &info_kind);
    else if (!command_arity_ok(request->command, request->count))
        request_forward(request, client); /* the cache says it best */
    else
        resp_write_error(client_reply(client), "ERR This instance has cluster support disabled");
}
