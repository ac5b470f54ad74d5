/* What a program does with hiredis: hiredis_client PORT [cluster]
 *
 * Prints every reply. Run against the guard and against Redis, the output must be alike. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print(const redisReply *reply, int depth)
{
    printf("%*s%d ", depth, "", reply->type);
    if (reply->type == REDIS_REPLY_INTEGER)
        printf("%lld", reply->integer);
    else if (reply->type != REDIS_REPLY_NIL && reply->type != REDIS_REPLY_ARRAY)
        fwrite(reply->str, 1, reply->len, stdout);
    putchar('\n');
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
        print(reply->element[i], depth + 2);
}

static redisContext *connect_to(int port)
{
    redisContext *context = redisConnect("127.0.0.1", port);
    if (context && !context->err)
        return context;
    fprintf(stderr, "no connection\n");
    exit(1);
}

static void take(redisContext *context)
{
    redisReply *reply = NULL;
    if (redisGetReply(context, (void **)&reply) != REDIS_OK) {
        fprintf(stderr, "%s\n", context->errstr);
        exit(1);
    }
    print(reply, 0);
    freeReplyObject(reply);
}

static void ask(redisContext *context, const char *command)
{
    redisAppendCommand(context, command);
    take(context);
}

/* Many commands of every kind are on their way before the first reply is read. In a cluster the
 * keys of a transaction have one slot. */
static void pipeline(redisContext *context, const char *const *commands, int count)
{
    enum { TURNS = 50 };
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < count; i++)
            redisAppendCommand(context, commands[i]);
    for (int i = 0; i < count * TURNS; i++)
        take(context);
}

static void pipelines(redisContext *context, int cluster)
{
    static const char *const commands[] = {"GET item:901",
                                           "INCR counter{item:901}",
                                           "MULTI",
                                           "GET item:901",
                                           "INCR counter{item:901}",
                                           "EXEC",
                                           "GET item:902",
                                           "BLPOP none 0.01",
                                           "LPUSH counter{item:901} x",
                                           "MGET item:901 counter{item:901}"};
    static const char *const elsewhere[] = {"SELECT 2", "GET counter{item:901}", "SELECT 0",
                                            "GET counter{item:901}", "MGET item:901 none"};
    pipeline(context, commands, sizeof commands / sizeof *commands);
    if (!cluster)
        pipeline(context, elsewhere, sizeof elsewhere / sizeof *elsewhere);
}

static void binary(redisContext *context)
{
    static const char bytes[] = "a\0b\r\n%s";
    redisAppendCommand(context, "SET %b %b", bytes, sizeof bytes, bytes, sizeof bytes);
    redisAppendCommand(context, "GET %b", bytes, sizeof bytes);
    take(context);
    take(context);
}

/* How many have heard a message is known to each node of a cluster for its own clients alone. */
static void publish(redisContext *context, int cluster)
{
    redisReply *reply = redisCommand(context, "PUBLISH news one");
    if (!reply || reply->type != REDIS_REPLY_INTEGER)
        exit(1);
    if (!cluster)
        print(reply, 0);
    freeReplyObject(reply);
}

static void subscribe(int port, redisContext *publisher, int cluster)
{
    redisContext *context = connect_to(port);
    redisAppendCommand(context, "SUBSCRIBE news weather");
    take(context);
    take(context);
    publish(publisher, cluster);
    take(context);
    redisAppendCommand(context, "UNSUBSCRIBE news weather");
    take(context);
    take(context);
    ask(context, "GET item:901");
    redisFree(context);
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    int port = (int)strtol(arguments[1], NULL, 10);
    redisContext *context = connect_to(port);
    ask(context, "PING");
    ask(context, "GET item:901");
    ask(context, "HGETALL item:901");
    if (count == 2)
        ask(context, "NOSUCH command");
    binary(context);
    pipelines(context, count > 2);
    subscribe(port, context, count > 2);
    redisFree(context);
    return 0;
}
