#include "cache/greeting.h"

#include "redis/redis_login.h"
#include "resp/resp.h"

static struct redis_login login_of(const struct cache_url *cache)
{
    return (struct redis_login){
        .user = cache->user, .password = cache->password, .db = cache->db, .selects_always = true};
}

static void write_step(struct buffer *out, const struct redis_login_step *step)
{
    struct span words[REDIS_LOGIN_WORDS];
    for (size_t i = 0; i < step->count; i++)
        words[i] = span_of(step->words[i]);
    resp_write_command(out, words, step->count);
}

void greeting_write_auth(struct buffer *out, const struct cache_url *cache)
{
    struct redis_login login = login_of(cache);
    struct redis_login_step step;
    redis_login_auth(&step, &login);
    write_step(out, &step);
}

unsigned greeting_write(struct buffer *out, const struct cache_url *cache, bool resp3,
                        const char *name)
{
    struct redis_login_step steps[REDIS_LOGIN_STEPS];
    struct redis_login login = login_of(cache);
    login.resp3 = resp3;
    login.name = name;
    size_t count = redis_login_steps(steps, &login);
    for (size_t i = 0; i < count; i++)
        write_step(out, &steps[i]);
    return (unsigned)count;
}

int greeting_judge(struct span reply, bool resp3)
{
    const struct redis_login login = {.resp3 = resp3};
    bool is_error = reply.length && reply.at[0] == '-';
    return redis_login_judge(&login, is_error ? reply.at + 1 : NULL, reply.length - is_error);
}
