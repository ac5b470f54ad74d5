/* What is said is redis_login.h's, the same for the guard's own connection and for those of
 * workers; here it is put into a buffer, since workers read and write by themselves.
 */
#include "cache/greeting.h"

#include "redis/protocol/redis_login.h"
#include "redis/protocol/redis_role.h"
#include "resp/reply.h"
#include "resp/resp.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t standard;
} limits[CACHE_LIMITS] = {[LIMIT_BULK] = {"proto-max-bulk-len", 512 * 1024 * 1024},
                          [LIMIT_CLIENTS] = {"maxclients", 10000}};

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

void greeting_write_hello(struct buffer *out, const struct cache_url *cache, bool resp3)
{
    const struct span words[] = {span_of("HELLO"), span_of(resp3 ? "3" : "2"), span_of("AUTH"),
                                 span_of(cache->user ? cache->user : "default"),
                                 span_of(cache->password ? cache->password : "")};
    resp_write_command(out, words, sizeof words / sizeof *words);
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
    greeting_write_role(out);
    return (unsigned)count + 1;
}

const char greeting_out_of_step[] = "the cache's replies are out of step";

static bool is_welcome(struct span reply, bool is_hello)
{
    return is_hello ? span_starts(reply, "%") && reply_is_hello(reply) : reply_is_ok(reply);
}

int greeting_judge(struct span reply, bool is_hello)
{
    const struct redis_login login = {.resp3 = is_hello};
    if (greeting_is_passing_trouble(reply))
        return -EBUSY;
    if (span_starts(reply, "-"))
        return redis_login_judge(&login, reply.at + 1, reply.length - 1);
    return is_welcome(reply, is_hello) ? 0 : -EPROTO;
}

void greeting_write_role(struct buffer *out)
{
    struct span word = span_of("ROLE");
    resp_write_command(out, &word, 1);
}

/* An array whose first element is the role's name, as a bulk string; or it is not for everybody. */
const char *greeting_judge_role(struct span reply)
{
    const char *at;
    if (reply_is_error(reply))
        return NULL;
    if (!reply_is_list(reply) || resp_array_open(reply, &at) < 1)
        return greeting_out_of_step;
    struct span role = resp_bulk_text(resp_array_next(&at, reply.at + reply.length));
    if (!role.length)
        return greeting_out_of_step;
    return redis_role_objection(redis_role_of(role.at, role.length));
}

bool greeting_is_passing_trouble(struct span reply)
{
    return span_starts(reply, "-") && redis_is_passing_trouble(reply.at + 1, reply.length - 1);
}

bool greeting_is_readonly(struct span reply)
{
    return span_starts(reply, "-") && redis_is_readonly(reply.at + 1, reply.length - 1);
}

void greeting_write_stay(struct buffer *out)
{
    resp_write_command(out, (struct span[]){span_of("CLIENT"), span_of("NO-EVICT"), span_of("ON")},
                       3);
}

void greeting_write_limits(struct buffer *out)
{
    for (int limit = 0; limit < CACHE_LIMITS; limit++) {
        struct span words[] = {span_of("CONFIG"), span_of("GET"), span_of(limits[limit].name)};
        resp_write_command(out, words, 3);
    }
}

/* Up to the first that is no digit; a number that is too long stays below what it says. */
static uint64_t read_number(const char *at, const char *end)
{
    uint64_t value = 0;
    for (; at < end && *at >= '0' && *at <= '9' && value < UINT64_MAX / 10 - 9; at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return value;
}

/* An array or a map of one name and its value, or an empty one: the last line counts. */
uint64_t greeting_read_limit(enum cache_limit limit, struct span reply)
{
    const char *end = reply.at + reply.length;
    const char *at = reply.length > 2 ? memrchr(reply.at, '\n', reply.length - 1) : NULL;
    if (!at || (reply.at[0] != '*' && reply.at[0] != '%'))
        return limits[limit].standard;
    uint64_t value = read_number(at + 1, end);
    return value ? value : limits[limit].standard;
}

void greeting_write_server(struct buffer *out)
{
    resp_write_command(out, (struct span[]){span_of("INFO"), span_of("server")}, 2);
}

/* Of the text that INFO gives, as a bulk string or a verbatim one. */
void greeting_read_run_id(char run_id[RUN_ID_SIZE], struct span reply)
{
    static const char field[] = "\nrun_id:";
    const char *line = memmem(reply.at, reply.length, field, sizeof field - 1);
    const char *at = line ? line + sizeof field - 1 : reply.at;
    size_t room = line ? (size_t)(reply.at + reply.length - at) : 0;
    size_t length = 0;
    while (length < room && length < RUN_ID_SIZE - 1 && isxdigit((unsigned char)at[length]))
        length++;
    memcpy(run_id, at, length);
    run_id[length] = '\0';
}

void greeting_write_node(struct buffer *out)
{
    resp_write_command(out, (struct span[]){span_of("CLUSTER"), span_of("MYID")}, 2);
}

/* A bulk string. */
struct span greeting_read_node(struct span reply)
{
    return resp_bulk_text(reply);
}

void greeting_write_id(struct buffer *out)
{
    resp_write_command(out, (struct span[]){span_of("CLIENT"), span_of("ID")}, 2);
}

uint64_t greeting_read_id(struct span reply)
{
    return reply_is_number(reply) ? read_number(reply.at + 1, reply.at + reply.length) : 0;
}
