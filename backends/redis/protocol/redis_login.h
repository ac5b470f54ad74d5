/* What every connection to the cache begins with, whoever it is for, and how its answers are
 * judged:
 *
 *   AUTH ─▶ SELECT ─▶ HELLO ─▶ CLIENT SETNAME
 *
 * each of them only where it is wanted. Who needs to know more of the server asks behind it. None
 * of it may be refused: commands would run in another database, or for nobody.
 */
#ifndef NESTGUARD_REDIS_LOGIN_H
#define NESTGUARD_REDIS_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

struct redis_login {
    const char *user, *password; /* NULL: none */
    int db;
    /* Database 0 is selected, too: for who asks nothing else, the error to that tells of a cache
     * that wants a password. */
    bool selects_always;
    bool resp3;
    const char *name; /* of the connection; NULL: none */
};

enum { REDIS_LOGIN_STEPS = 4, REDIS_LOGIN_WORDS = 4 };

struct redis_login_step {
    const char *name; /* "AUTH" */
    const char *words[REDIS_LOGIN_WORDS];
    size_t count;
    char db[12]; /* what words[1] of SELECT points to */
};

/* The steps, in order, and how many. They hold pointers into themselves and `login`. */
size_t redis_login_steps(struct redis_login_step steps[REDIS_LOGIN_STEPS],
                         const struct redis_login *login);

/* AUTH by itself, also where no password is configured: a default user without one takes any. */
void redis_login_auth(struct redis_login_step *step, const struct redis_login *login);

/* Of an answer to a step of the login: `error` is its text without the sign, and NULL when it was
 * none. 0, -EACCES: the connection is of no use, or -EPROTONOSUPPORT: nor will another be, the
 * server does not know RESP3. */
int redis_login_judge(const struct redis_login *login, const char *error, size_t length);

#endif
