/* `nestguard check` is asked before the first start, where a port that somebody else has would end
 * it, and beside a running guard, which has its ports itself.
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
    else if (status < 0)
        problems_add(problems, PROBLEM_WARNING, config->file, NULL,
                     "%s: %s cannot be listened on: %s", setting, address->text, strerror(-status));
}

void check_ports(const struct config *config, struct problems *problems)
{
    for (size_t i = 0; i < config->listens; i++)
        check_one(config, "listen", &config->listen[i], problems);
    if (config->has_control)
        check_one(config, "control", &config->control, problems);
}
