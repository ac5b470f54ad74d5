/* A guard that cannot have all the clients that its file allows is a guard for fewer, and says so.
 * One that lacks the files which it needs itself could not serve the first.
 */
#include "check/check_files.h"

#include "base/memory.h"
#include "config/file_limits.h"

#include <stdlib.h>

void check_files(const struct config *config, struct problems *problems)
{
    const struct file_limits *limits = &config->limits;
    if (!file_limits_are_low(config))
        return;
    unsigned long long wanted = file_limits_wanted(config), files = limits->files;
    char *remedy = xasprintf("LimitNOFILE=%llu in the unit, or ulimit -n %llu", wanted, wanted);
    if (!limits->clients)
        problems_add(problems, PROBLEM_ERROR, config->file, remedy,
                     "the system allows this process %llu open files, and it needs %llu before "
                     "the first client",
                     files, (unsigned long long)file_limits_reserve(config));
    else
        problems_add(problems, PROBLEM_WARNING, config->file, remedy,
                     "the system allows this process %llu open files: instead of max_clients, %u, "
                     "that is enough for %u clients, and instead of own_connections, %u, for %u "
                     "per worker",
                     files, config->max_clients, limits->clients, config->own_connections,
                     limits->own_connections);
    free(remedy);
}
