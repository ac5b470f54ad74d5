/* `nestguard check` is asked before the first start, where a port that somebody else has would end
 * it, and beside a running guard, which has its ports itself. What is no address of this machine
 * cannot be had either way; a port that this user may not have another may, and a directory that is
 * missing a service manager makes.
 */
#include "check/check_ports.h"

#include <errno.h>
#include <string.h>

static void check_one(const struct config *config, const char *setting,
                      const struct address *address, struct problems *problems)
{
    int status = address_try(address);
    if (status == -EADDRINUSE)
        problems_add(problems, PROBLEM_WARNING, config->file, NULL,
                     "%s: %s is taken; unless it is this guard that runs there, choose another "
                     "address or end whoever has it",
                     setting, address->text);
    else if (status == -EADDRNOTAVAIL || status == -EAFNOSUPPORT)
        problems_add(problems, PROBLEM_ERROR, config->file, NULL,
                     "%s: %s is no address of this machine, and a guard would not start; choose "
                     "one that it has (`ip address` shows them), or 0.0.0.0 or [::] for all",
                     setting, address->text);
    else if (status == -EEXIST)
        problems_add(
            problems, PROBLEM_WARNING, config->file, NULL,
            "%s: %s cannot be listened on: what stands there is no socket that a guard may "
            "take the place of; remove it, or choose another path",
            setting, address->text);
    else if (status == -EACCES && !address->path)
        problems_add(problems, PROBLEM_WARNING, config->file, NULL,
                     "%s: %s is not for this user: a port below 1024 needs CAP_NET_BIND_SERVICE "
                     "(AmbientCapabilities= in the unit); or choose a higher one",
                     setting, address->text);
    else if (status < 0)
        problems_add(problems, PROBLEM_WARNING, config->file, NULL,
                     "%s: %s cannot be listened on: %s", setting, address->text, strerror(-status));
}

bool check_ports_are_taken(const struct config *config)
{
    for (size_t i = 0; i < config->listens; i++)
        if (address_try(&config->listen[i]) == -EADDRINUSE)
            return true;
    return false;
}

void check_ports(const struct config *config, struct problems *problems)
{
    for (size_t i = 0; i < config->listens; i++)
        check_one(config, "listen", &config->listen[i], problems);
    if (config->has_control)
        check_one(config, "control", &config->control, problems);
}
