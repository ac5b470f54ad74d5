#include "fakes/redis.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fake_redis fake_redis = {.up = true};

struct redis *fake_other_redis(void)
{
    return (struct redis *)&fake_redis;
}

struct redis *fake_redis_node(int number)
{
    return (struct redis *)&fake_redis.calls[number];
}

static void must_be_one(const struct redis *redis)
{
    assert_true(!redis || redis == fake_other_redis() || redis == fake_redis_node(0) ||
                redis == fake_redis_node(1));
}

bool redis_is_up(const struct redis *redis)
{
    must_be_one(redis);
    return fake_redis.up;
}

struct redis *redis_next_node(const struct redis *redis, int *number)
{
    (void)redis;
    return fake_redis.is_led && *number < 2 ? fake_redis_node(*number) : NULL;
}

unsigned redis_left_out(const struct redis *redis)
{
    (void)redis;
    return 0;
}

bool redis_is_cluster(const struct redis *redis)
{
    (void)redis;
    return false;
}

int redis_number_of(const struct redis *redis, struct redis_bytes key)
{
    (void)key;
    (void)redis;
    return fake_redis.owner;
}

size_t redis_node_count(const struct redis *redis)
{
    must_be_one(redis);
    return 1;
}

void redis_describe(const struct redis *redis, size_t number, struct redis_node *node)
{
    must_be_one(redis);
    assert_int_equal(number, 0);
    *node = (struct redis_node){.up = fake_redis.up, .role = REDIS_PRIMARY};
}

const char *redis_run_id(const struct redis *redis)
{
    (void)redis;
    return fake_redis.run_id;
}

const char *redis_doubt(const struct redis *redis)
{
    must_be_one(redis);
    assert_true(fake_redis.up);
    return fake_redis.doubt;
}

static struct fake_call *add_call(const struct redis *redis, redis_answer_cb done, void *arg)
{
    must_be_one(redis);
    assert_true(fake_redis.up);
    assert_true(fake_redis.count < FAKE_CALLS);
    struct fake_call *call = &fake_redis.calls[fake_redis.count++];
    *call = (struct fake_call){.redis = redis, .done = done, .arg = arg};
    return call;
}

static void add_keys(struct fake_call *call, const struct redis_bytes *keys, size_t count)
{
    assert_in_range(count, 1, FAKE_KEYS);
    for (size_t i = 0; i < count; i++) {
        call->keys[i] = xstrndup(keys[i].at, keys[i].length);
        call->lengths[i] = keys[i].length;
    }
    call->count = count;
}

void redis_fill(struct redis *redis, struct redis_bytes key, struct redis_bytes value,
                uint64_t ttl_ms, redis_answer_cb done, void *arg)
{
    struct fake_call *call = add_call(redis, done, arg);
    add_keys(call, &key, 1);
    call->value = xstrndup(value.at, value.length);
    call->ttl_ms = ttl_ms;
}

void redis_fill_hash(struct redis *redis, struct redis_bytes key, struct redis_hash hash,
                     uint64_t ttl_ms, redis_answer_cb done, void *arg)
{
    struct fake_call *call = add_call(redis, done, arg);
    struct buffer text = {0};
    assert_true(hash.pairs > 0);
    add_keys(call, &key, 1);
    for (size_t i = 0; i < 2 * hash.pairs; i++)
        buffer_printf(&text, "%.*s ", (int)hash.words[i].length, (const char *)hash.words[i].at);
    call->hash = buffer_string(&text);
    call->ttl_ms = ttl_ms;
}

void redis_purge(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg)
{
    add_keys(add_call(redis, done, arg), &key, 1);
}

void redis_exists(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg)
{
    struct fake_call *call = add_call(redis, done, arg);
    add_keys(call, &key, 1);
    call->exists = true;
}

void redis_purge_many(struct redis *redis, const struct redis_bytes *keys, size_t count,
                      redis_answer_cb done, void *arg)
{
    add_keys(add_call(redis, done, arg), keys, count);
}

void redis_scan(struct redis *redis, const char *cursor, struct redis_bytes pattern, unsigned count,
                redis_answer_cb done, void *arg)
{
    struct fake_call *call = add_call(redis, done, arg);
    assert_int_equal(count, 1000);
    call->cursor = xstrdup(cursor);
    call->pattern = xstrndup(pattern.at, pattern.length);
}

/* Its words, as keys. */
void redis_send(struct redis *redis, const struct redis_bytes *words, size_t count,
                redis_answer_cb done, void *arg)
{
    add_keys(add_call(redis, done, arg), words, count);
}

void fake_redis_reset(void)
{
    fake_redis.up = true;
    fake_redis.doubt = NULL;
    fake_redis.run_id = "";
    fake_redis.is_led = false;
    fake_redis.owner = 0;
    fake_redis.count = 0;
}

struct fake_call fake_redis_take(void)
{
    assert_true(fake_redis.count > 0);
    struct fake_call call = fake_redis.calls[0];
    fake_redis.count--;
    memmove(fake_redis.calls, fake_redis.calls + 1, fake_redis.count * sizeof call);
    return call;
}

void fake_redis_forget(struct fake_call *call)
{
    for (size_t i = 0; i < call->count; i++)
        free(call->keys[i]);
    free(call->value);
    free(call->hash);
    free(call->cursor);
    free(call->pattern);
}

void fake_redis_answer(const struct redis_answer *answer)
{
    struct fake_call call = fake_redis_take();
    call.done(call.arg, answer);
    fake_redis_forget(&call);
}

void fake_redis_ends(enum redis_outcome outcome)
{
    fake_redis_answer(&(struct redis_answer){.outcome = outcome, .error = "LOADING"});
}
