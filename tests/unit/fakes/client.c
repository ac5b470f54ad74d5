#include "fakes/client.h"

#include "base/clock.h"
#include "base/container_of.h"
#include "fakes/upstream.h"
#include "worker/client/incomplete.h"
#include "worker/client/pinned.h"
#include "worker/client/roster.h"
#include "worker/upstream/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct fake_clients *fake_of(struct client *client)
{
    return container_of(client->clients, struct fake_clients, clients);
}

void fake_clients_init(struct fake_clients *fake, const char *settings, mailbox_deliver deliver,
                       void *arg)
{
    *fake = (struct fake_clients){.total = 0};
    fake_serving_init(&fake->serving, 1, settings, deliver, arg);
    fake->clients.serving = fake->serving.serving;
    fake->serving.serving->hosts = &fake->clients.hosts;
    fake->clients.total = &fake->total;
    fake->serving.serving->pool =
        pool_create(fake->serving.serving, fake->serving.serving->route, NULL);
}

/* ---- a turn, as connection.c has it, without the socket ---- */

static void serve_input(struct turn_task *task)
{
    struct client *client = container_of(task, struct client, input_task);
    struct span input = client_input(client);
    if (input.length && fake_of(client)->serve)
        fake_of(client)->serve(client, input);
    else
        client_took(client, 0);
}

static void flush(struct turn_task *task)
{
    struct client *client = container_of(task, struct client, output_task);
    if (client->state == CLIENT_CLOSED)
        return;
    if (client->replies.end != REPLIES_OPEN)
        client_close(client);
    if (client->state < CLIENT_CLOSING) {
        pinned_flush(client);
        pinned_pace(client);
        if (client_input(client).length && fake_of(client)->serve)
            turn_add(&client->serving->turn, &client->input_task);
    }
    if (client->state == CLIENT_CLOSING) {
        incomplete_drop(client);
        pinned_finish(client);
        client_set_state(client, CLIENT_CLOSED);
    }
}

struct client *client_add(struct fake_clients *fake)
{
    struct client *client = xcalloc(1, sizeof *client);
    struct clients *clients = &fake->clients;
    client->clients = clients;
    client->serving = clients->serving;
    client->id = ++clients->last_id;
    client->authenticated = !serving_config(clients->serving)->password;
    client->input_task = (struct turn_task){.run = serve_input, .phase = TURN_READ};
    client->output_task = (struct turn_task){.run = flush, .phase = TURN_WRITE};
    client->replies.serving = clients->serving;
    client->replies.task = &client->output_task;
    roster_enter(clients, client);
    client->upstream = client_shared(client, false);
    client->replies.origin = client->id;
    client->host = host_enter(&clients->hosts, client->serving, client->replies.origin);
    client_set_state(client, CLIENT_OPEN);
    return client;
}

static void end_turn(struct client *client)
{
    struct turn *turn = &client->serving->turn;
    do {
        turn_empty_line(turn);
        turn_run(turn, TURN_WRITE);
    } while (turn->front);
}

void type_bytes(struct client *client, const char *bytes, size_t length)
{
    if (!buffer_try_append(&client->in, bytes, length))
        client_close(client); /* as without memory to read into */
    turn_add(&client->serving->turn, &client->input_task);
    end_turn(client);
}

void type(struct client *client, const char *text)
{
    type_bytes(client, text, strlen(text));
}

void must_reply(struct client *client, const char *wanted)
{
    end_turn(client);
    struct span out = buffer_span(&client->replies.out);
    if (out.length != strlen(wanted) || memcmp(out.at, wanted, out.length) != 0)
        fail_msg("not \"%s\" was replied, but \"%.*s\"", wanted, (int)out.length, out.at);
    buffer_clear(&client->replies.out);
}

/* ---- the end ---- */

static void remove_closed(struct client *client)
{
    roster_leave(client);
    host_leave(&client->clients->hosts, client->serving, client->host);
    buffer_finish(&client->in);
    buffer_finish(&client->replies.out);
    buffer_finish(&client->replies.unheard);
    introduction_end(&client->self, true);
    free(client);
}

void client_remove(struct client *client)
{
    client_close(client);
    turn_run(&client->serving->turn, TURN_WRITE);
    remove_closed(client);
}

void fake_clients_finish(struct fake_clients *fake)
{
    struct client *client = fake->clients.first;
    fake->serving.serving->ending = true;
    for (; client; client = client->following)
        client_close(client);
    turn_run(&fake->serving.serving->turn, TURN_WRITE);
    upstreams_finish();
    turn_run(&fake->serving.serving->turn, TURN_WRITE);
    while ((client = fake->clients.first))
        remove_closed(client);
    hosts_finish(&fake->clients.hosts);
    keymap_finish(&fake->clients.ids);
    pool_destroy(fake->serving.serving->pool);
    fake_serving_finish(&fake->serving);
}
