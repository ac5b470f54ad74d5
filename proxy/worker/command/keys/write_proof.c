/* In doubt a write counts as done. A hint that nothing stands behind costs a lookup that is passed
 * on; one that is missing, a row that clients are told is not there.
 */
#include "worker/command/keys/write_proof.h"

#include "resp/reply.h"
#include "worker/command/keys/vanishing.h"

static bool has_word(const struct span *arguments, size_t count, size_t from, const char *word)
{
    for (size_t i = from; i < count; i++)
        if (span_is_word(arguments[i], word))
            return true;
    return false;
}

static bool is_option_of_zadd(struct span word)
{
    static const char *const options[] = {"XX", "NX", "GT", "LT", "CH", "INCR"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (span_is_word(word, options[i]))
            return true;
    return false;
}

/* Behind the options of ZADD and GEOADD stand scores and members, which may be called like one. */
static bool has_option_xx(const struct span *arguments, size_t count)
{
    size_t end = 2;
    while (end < count && is_option_of_zadd(arguments[end]))
        end++;
    return has_word(arguments, end, 2, "XX");
}

/* SET k v EXAT time, RESTORE k time value ABSTTL: at a time that is over nothing is made. */
static bool has_expired(const char *name, const struct span *arguments, size_t count)
{
    if (!strcmp(name, "RESTORE"))
        return has_word(arguments, count, 4, "ABSTTL") && vanishing_is_long_over(arguments[2], 1);
    for (size_t i = 3; !strcmp(name, "SET") && i + 1 < count; i++)
        if (span_is_word(arguments[i], "EXAT") || span_is_word(arguments[i], "PXAT"))
            return vanishing_is_long_over(arguments[i + 1],
                                          span_is_word(arguments[i], "EXAT") ? 1000 : 1);
    return false;
}

/* SET k v GET answers what was there before; with XX, if nothing was, it writes nothing. */
enum command_proof write_proof(const struct command *command, const struct span *arguments,
                               size_t count)
{
    const char *name = command->name;
    if (has_expired(name, arguments, count))
        return PROOF_NEVER;
    if (!strcmp(name, "SET") && has_word(arguments, count, 3, "GET") &&
        !has_word(arguments, count, 3, "XX"))
        return PROOF_NO_ERROR;
    /* Without a condition it is a DEL: what it found says nothing of a fill that is on its way. */
    if (!strcmp(name, "DELEX") && count == 2)
        return PROOF_NO_ERROR;
    /* 0 is also the answer where nothing new was added to what is there. */
    if ((!strcmp(name, "ZADD") || !strcmp(name, "GEOADD")) && has_option_xx(arguments, count))
        return PROOF_NOT_ZERO;
    return command->proof;
}

/* Said before anything of a script ran, by Redis or Valkey: a script of its own may choose the same
 * code, but not by chance the words behind it. One that ends in the middle says where ("script:
 * ..."); but it may also return an error of one of its commands, as Redis said that: what a
 * script's commands are refused with once it has written is not among these. */
static bool never_ran(struct span error)
{
    static const char *const words[] = {"-NOPERM this user has no permissions",
                                        "-NOPERM User ",
                                        "-NOPERM No permissions to access",
                                        "-NOAUTH Authentication required",
                                        "-NOAUTH HELLO must be called",
                                        "-NOSCRIPT No matching script",
                                        "-READONLY You can't write against a read only",
                                        "-READONLY Can not run script",
                                        "-OOM command not allowed",
                                        "-OOM allow-oom flag is not set",
                                        "-MISCONF Redis is configured",
                                        "-MISCONF Valkey is configured",
                                        "-MISCONF Errors writing to the AOF",
                                        "-NOREPLICAS Not enough good replicas",
                                        "-LOADING Redis is loading",
                                        "-LOADING Valkey is loading",
                                        "-BUSY Redis is busy",
                                        "-BUSY Valkey is busy",
                                        "-MASTERDOWN Link with MASTER",
                                        "-CLUSTERDOWN The cluster is down",
                                        "-CLUSTERDOWN Hash slot",
                                        "-CROSSSLOT Keys in request",
                                        "-ERR Number of keys ",
                                        "-ERR Error compiling script",
                                        "-ERR Function not found",
                                        "-ERR unknown command '"};
    if (memmem(error.at, error.length, " script:", 8))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (span_starts(error, words[i]))
            return true;
    return false;
}

static bool is_nil(struct span reply)
{
    return span_is(reply, "$-1\r\n") || span_is(reply, "*-1\r\n") || span_is(reply, "_\r\n");
}

enum write_outcome write_outcome(enum command_proof proof, struct span reply)
{
    if (reply_is_error(reply))
        return proof == PROOF_SCRIPT && !never_ran(reply) ? WRITE_DONE : WRITE_REFUSED;
    if (proof == PROOF_NEVER || (proof == PROOF_NOT_ZERO && span_is(reply, ":0\r\n")))
        return WRITE_RUN;
    bool nil_too = proof == PROOF_NO_ERROR || proof == PROOF_SCRIPT;
    return nil_too || !is_nil(reply) ? WRITE_DONE : WRITE_RUN;
}
