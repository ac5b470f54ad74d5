/* What a server is, it says in words; what it complains of, by the first word of an error. Only
 * that word is compared, with the blank behind it (BUSY is not BUSYKEY): the rest is prose, and
 * differs from one version to the next.
 */
#include "redis/protocol/redis_role.h"

#include <string.h>

static const struct {
    const char *word, *name, *objection;
} roles[] = {
    [REDIS_ROLE_UNKNOWN] = {"", "unknown", NULL},
    [REDIS_PRIMARY] = {"master", "primary", NULL},
    [REDIS_REPLICA] = {"slave", "replica", "it is a replica, which takes no writes"},
    [REDIS_SENTINEL] = {"sentinel", "sentinel", "it is a sentinel, which holds no keys"},
};

enum { ROLES = sizeof roles / sizeof roles[0] };

static bool is_text(const char *bytes, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(bytes, text, length) == 0;
}

enum redis_role redis_role_of(const char *word, size_t length)
{
    for (int role = REDIS_PRIMARY; role < ROLES; role++)
        if (is_text(word, length, roles[role].word))
            return (enum redis_role)role;
    /* What a server may come to say one day: Redis' own replacement of "slave". */
    return is_text(word, length, "replica") ? REDIS_REPLICA : REDIS_ROLE_UNKNOWN;
}

/* The value of a "name:value" line; its length is 0 when there is none. */
static const char *field(const char *text, const char *name, size_t *length)
{
    for (const char *at = text; (at = strstr(at, name)); at++) {
        if (at != text && at[-1] != '\n')
            continue;
        at += strlen(name);
        *length = strcspn(at, "\r\n");
        return at;
    }
    *length = 0;
    return text;
}

/* The mode first: that is how a sentinel says what it is. */
enum redis_role redis_role_read(const char *info)
{
    size_t length;
    const char *mode = field(info, "redis_mode:", &length);
    if (is_text(mode, length, "sentinel"))
        return REDIS_SENTINEL;
    const char *role = field(info, "role:", &length);
    return redis_role_of(role, length);
}

const char *redis_role_name(enum redis_role role)
{
    return roles[role].name;
}

const char *redis_role_objection(enum redis_role role)
{
    return roles[role].objection;
}

static bool begins(const char *error, size_t length, const char *code)
{
    return length >= strlen(code) && memcmp(error, code, strlen(code)) == 0;
}

static bool begins_with_one(const char *error, size_t length, const char *const codes[3])
{
    for (size_t i = 0; i < 3; i++)
        if (begins(error, length, codes[i]))
            return true;
    return false;
}

bool redis_is_passing_trouble(const char *error, size_t length)
{
    return begins_with_one(error, length,
                           (const char *const[]){"LOADING ", "BUSY ", "MASTERDOWN "});
}

bool redis_is_full(const char *error, size_t length)
{
    return begins_with_one(error, length, (const char *const[]){"OOM ", "MISCONF ", "NOREPLICAS "});
}

bool redis_is_cluster_down(const char *error, size_t length)
{
    return begins(error, length, "CLUSTERDOWN ") || begins(error, length, "TRYAGAIN ");
}

bool redis_may_pass(const char *error)
{
    size_t length = strlen(error);
    return redis_is_passing_trouble(error, length) || redis_is_cluster_down(error, length);
}

bool redis_is_readonly(const char *error, size_t length)
{
    return begins(error, length, "READONLY ");
}
