#include "worker/command/refusals.h"

#include "worker/client/client.h"
#include "worker/command/unnamed.h"

void refusals_say(struct client *client, const struct request *request)
{
    struct span name = request->arguments[0];
    if (command_is_unnamed(request->command)) {
        struct span why = unnamed_error(client);
        resp_write_error(client_reply(client), "%.*s", (int)why.length, why.at);
        return;
    }
    resp_write_error(client_reply(client),
                     "NESTGUARD unsupported: '%.*s' is not supported in a cluster",
                     (int)name.length, name.at);
}

/* As a node says it. */
bool refusals_of_db(struct client *client, const struct request *request)
{
    if (request->count != 2 || span_is_word(request->arguments[1], "0"))
        return false;
    resp_write_error(client_reply(client), "ERR SELECT is not allowed in cluster mode");
    return true;
}

/* Users are the cache's own, and their connection leads to one node alone. */
static bool names_user(const struct request *request)
{
    const char *name = request->command->name;
    if (strcmp(name, "AUTH") == 0)
        return request->count == 3 && !span_is_word(request->arguments[1], "default");
    for (size_t i = 2; strcmp(name, "HELLO") == 0 && i + 1 < request->count; i++)
        if (span_is_word(request->arguments[i], "AUTH") &&
            !span_is_word(request->arguments[i + 1], "default"))
            return true;
    return false;
}

bool refusals_of_user(struct client *client, const struct request *request)
{
    if (!names_user(request))
        return false;
    resp_write_error(
        client_reply(client),
        "NESTGUARD unsupported: '%s' as a user of the cache's own ACL is not supported "
        "in a cluster, only as 'default', with nestguard's password",
        request->command->name);
    return true;
}
