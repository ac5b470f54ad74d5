#include "worker/upstream/standing_text.h"

#include "base/memory.h"

enum { MOST_BYTES = 64 * 1024 };

/* A bulk string, or a verbatim one. */
char *standing_text(struct span reply)
{
    const char *line = memchr(reply.at, '\n', reply.length);
    bool is_text = line && (reply.at[0] == '$' || reply.at[0] == '=') && reply.length < MOST_BYTES;
    return is_text ? xasprintf("%.*s", (int)(reply.at + reply.length - line - 1), line + 1) : NULL;
}
