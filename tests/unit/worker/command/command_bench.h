/* Commands of clients, from their bytes to what the cache, the keeper and the client get of them.
 */
#ifndef NESTGUARD_TEST_COMMAND_BENCH_H
#define NESTGUARD_TEST_COMMAND_BENCH_H

#include "base/memory.h"
#include "fakes/client.h"
#include "fakes/upstream.h"
#include "resp/command.h"
#include "worker/command/dispatch.h"
#include "worker/command/keys/clearing.h"
#include "worker/command/keys/write.h"
#include "worker/command/upload.h"
#include "worker/request/row_loads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Commands as they are on the wire. */
#define GET_ITEM_1 "*2\r\n$3\r\nGET\r\n$6\r\nitem:1\r\n"
#define GET_ITEM_2 "*2\r\n$3\r\nGET\r\n$6\r\nitem:2\r\n"
#define GET_ABSENT "*2\r\n$3\r\nGET\r\n$10\r\nitem:nothe\r\n"
#define GET_PASSED "*2\r\n$3\r\nGET\r\n$8\r\npassed:1\r\n"
#define PING "*1\r\n$4\r\nPING\r\n"
#define SET_NEW "*3\r\n$3\r\nSET\r\n$8\r\nitem:new\r\n$1\r\nv\r\n"
#define MULTI "*1\r\n$5\r\nMULTI\r\n"
#define EXEC "*1\r\n$4\r\nEXEC\r\n"
#define QUEUED "+QUEUED\r\n"
#define NIL "$-1\r\n"

struct bench {
    struct fake_clients clients;
    struct fake_keeper *keeper;
    struct serving *serving;
    struct client *client;
    struct upstream *shared; /* its connection to the cache, while it shares */
};

/* What the worker does with the keeper's answers. */
static inline void take_answer(void *arg, struct message *message)
{
    struct bench *bench = arg;
    bench->serving->asked--;
    if (message->kind == MESSAGE_LOAD) {
        struct load_request *load = (struct load_request *)(void *)message;
        row_loaded(load->lookup, load->outcome, load->value);
        blob_release(load->value);
    } else if (message->kind == MESSAGE_WRITE) {
        write_returned(bench->serving, (struct write_request *)(void *)message);
    } else if (message->kind == MESSAGE_CLEARING) {
        clearing_returned((struct clearing_request *)(void *)message);
        return;
    }
    free(message);
}

static inline void serve(struct client *client, struct span input)
{
    dispatch_input(client, (char *)(size_t)input.at, input.length);
}

static inline void bench_init(struct bench *bench, const char *settings)
{
    commands_prepare();
    fake_clients_init(&bench->clients, settings, take_answer, bench);
    bench->serving = bench->clients.serving.serving;
    bench->keeper = &bench->clients.serving.keeper;
    bench->clients.serve = serve;
    bench->clients.clients.batch = batch_create(bench->serving);
    bench->client = client_add(&bench->clients);
    bench->shared = bench->client->upstream;
}

static inline void bench_finish(struct bench *bench)
{
    struct batch *batch = bench->clients.clients.batch;
    for (struct client *client = bench->clients.clients.first; client; client = client->following)
        upload_abort(client);
    fake_clients_finish(&bench->clients);
    batch_destroy(batch);
}

/* What the keeper returned has arrived, and all that follows from it. */
static inline void hear_keeper(struct bench *bench)
{
    turn_loop(&bench->clients.serving);
}

static inline void load_row(struct bench *bench, const char *key, const char *value)
{
    return_row(next_load(bench->keeper, key), value);
    hear_keeper(bench);
}

static inline void load_outcome(struct bench *bench, const char *key, enum load_outcome outcome)
{
    return_outcome(next_load(bench->keeper, key), outcome);
    hear_keeper(bench);
}

#define COUNTED(bench, keyspace, name)                                                             \
    ((int)counter_read(&(bench)->serving->keyspaces[keyspace].name))

/* Which tells of every row. */
static inline void follow_a_log(struct bench *bench)
{
    ((struct config *)serving_config(bench->clients.serving.serving))->sync = SYNC_REPLICATION;
}

#endif
