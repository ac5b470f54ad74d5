/* Redis looks at authentication behind a command's name and the number of its words, and EXEC says
 * every refusal in words of its own. Of subcommands, and of the words of commands whose arity the
 * table does not have, nothing is known here: there authentication comes first.
 */
#include "worker/command/noauth.h"

#include <ctype.h>

enum { QUOTED = 128 }; /* bytes of a name that is quoted, and about as many of what is behind it */

static bool is_open(const struct command *command)
{
    static const char *const names[] = {"AUTH", "HELLO", "QUIT", "RESET"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], command->name) == 0)
            return true;
    return false;
}

static bool has_its_words(const struct request *request)
{
    if (request->command->effect == EFFECT_EXEC)
        return request->count == 1;
    return command_arity_ok(request->command, request->count);
}

/* A name with a dot is a module's, which the cache may have. */
static bool is_unknown(const struct request *request)
{
    struct span name = request->arguments[0];
    return command_is_unnamed(request->command) && !memchr(name.at, '.', name.length);
}

static int at_most(size_t length, int most)
{
    return length < (size_t)most ? (int)length : most;
}

static void write_unknown(struct buffer *out, const struct request *request)
{
    char given[2 * QUOTED];
    int length = 0;
    struct span name = request->arguments[0];
    for (size_t i = 1; i < request->count && length < QUOTED; i++) {
        struct span word = request->arguments[i];
        length += snprintf(given + length, sizeof given - (size_t)length, "'%.*s' ",
                           at_most(word.length, QUOTED - length), word.at);
    }
    resp_write_error(out, "ERR unknown command '%.*s', with args beginning with: %.*s",
                     at_most(name.length, QUOTED), name.at, length, given);
}

static void write_arity(struct buffer *out, const struct command *command, const char *code)
{
    char name[QUOTED];
    size_t length = 0;
    for (; command->name[length]; length++)
        name[length] = (char)tolower((unsigned char)command->name[length]);
    resp_write_error(out, "%s wrong number of arguments for '%.*s' command", code, (int)length,
                     name);
}

bool noauth_refuses(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    bool counts = has_its_words(request), is_exec = strcmp(command->name, "EXEC") == 0;
    if (counts && is_open(command))
        return false;
    if (command->effect == EFFECT_HANG_UP) {
        client_close(client);
        return true;
    }
    struct buffer *out = client_reply(client);
    if (is_unknown(request))
        write_unknown(out, request);
    else if (!counts)
        write_arity(out, command, is_exec ? "EXECABORT Transaction discarded because of:" : "ERR");
    else
        resp_write_error(out, "%sNOAUTH Authentication required.",
                         is_exec ? "EXECABORT Transaction discarded because of: " : "");
    return true;
}
