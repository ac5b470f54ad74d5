#include "worker/command/clients/leave.h"

const char leave_nobody[] = "9223372036854775807";

/* In any case: Redis before 7.0 begins with a capital. */
static bool is_unknown(struct span reply)
{
    static const char *const words[] = {"-ERR unknown subcommand", "-ERR syntax error"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (reply.length > strlen(words[i]) &&
            strncasecmp(reply.at, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

bool leave_is_given(struct span reply, bool is_answer)
{
    return is_answer || is_unknown(reply);
}
