/* Steps are words, and not yet bytes: the guard's own connection encodes them as commands of its
 * own, workers write them into buffers that they have. What is said and how an answer is judged is
 * the same for both, and stands here alone.
 */
#include "redis/protocol/redis_login.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* `words` ends with NULL. */
static void say(struct redis_login_step *step, const char *name, const char *const *words)
{
    step->name = name;
    for (step->count = 0; words[step->count]; step->count++)
        step->words[step->count] = words[step->count];
}

void redis_login_auth(struct redis_login_step *step, const struct redis_login *login)
{
    const char *password = login->password ? login->password : "";
    const char *user = login->user ? login->user : "default";
    if (login->user || !login->password)
        say(step, "AUTH", (const char *[]){"AUTH", user, password, NULL});
    else
        say(step, "AUTH", (const char *[]){"AUTH", password, NULL});
}

static void say_select(struct redis_login_step *step, int db)
{
    snprintf(step->db, sizeof step->db, "%d", db);
    say(step, "SELECT", (const char *[]){"SELECT", step->db, NULL});
}

/* Without a password AUTH is not sent: it would be an error where none is set. */
size_t redis_login_steps(struct redis_login_step steps[REDIS_LOGIN_STEPS],
                         const struct redis_login *login)
{
    size_t count = 0;
    if (login->password)
        redis_login_auth(&steps[count++], login);
    if (login->db != 0 || login->selects_always)
        say_select(&steps[count++], login->db);
    if (login->resp3)
        say(&steps[count++], "HELLO", (const char *[]){"HELLO", "3", NULL});
    if (login->name)
        say(&steps[count++], "CLIENT SETNAME",
            (const char *[]){"CLIENT", "SETNAME", login->name, NULL});
    return count;
}

static bool starts(const char *error, size_t length, const char *with)
{
    return length >= strlen(with) && memcmp(error, with, strlen(with)) == 0;
}

/* A server before 6.0 does not know HELLO; one that does says NOPROTO to a version that it does not
 * speak. */
int redis_login_judge(const struct redis_login *login, const char *error, size_t length)
{
    if (!error)
        return 0;
    bool is_unknown =
        starts(error, length, "ERR unknown command") || starts(error, length, "NOPROTO");
    return login->resp3 && is_unknown ? -EPROTONOSUPPORT : -EACCES;
}
