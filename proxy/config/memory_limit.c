/* libuv knows the outermost control group alone, which is the process's own in a container. A
 * service's (MemoryMax= of systemd) is further in, and each around it bounds it, too.
 */
#include "config/memory_limit.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define VERSION_2 "0::" /* cgroups(7): the line that there is one of */

/* A new string, without the slash behind the last name; NULL: the system does not tell. */
static char *group_of_process(const char *root)
{
    char *path = xasprintf("%s/proc/self/cgroup", root), *line = NULL, *group = NULL;
    FILE *file = fopen(path, "r");
    size_t room = 0;
    free(path);
    while (file && !group && getline(&line, &room, file) >= 0)
        if (strncmp(line, VERSION_2, strlen(VERSION_2)) == 0)
            group = xstrdup(line + strlen(VERSION_2));
    free(line);
    if (file)
        fclose(file);
    if (group)
        group[strcspn(group, "\n")] = '\0';
    return group;
}

/* What stands there; UINT64_MAX: "max", or nothing that can be read. A container may see its own
 * group as the outermost and be told the whole way to it: what is not there says nothing. */
static uint64_t limit_at(const char *root, const char *group)
{
    char *path = xasprintf("%s/sys/fs/cgroup%s/memory.max", root, group);
    FILE *file = fopen(path, "r");
    uint64_t limit;
    bool is_said = file && fscanf(file, "%" SCNu64, &limit) == 1;
    if (file)
        fclose(file);
    free(path);
    return is_said ? limit : UINT64_MAX;
}

uint64_t memory_limit_of_group(const char *root)
{
    char *group = group_of_process(root);
    uint64_t least = limit_at(root, "");
    while (group && *group) {
        uint64_t limit = limit_at(root, group);
        if (limit < least)
            least = limit;
        char *last = strrchr(group, '/');
        *(last ? last : group) = '\0';
    }
    free(group);
    return least;
}

uint64_t memory_limit(void)
{
    uint64_t machine = uv_get_total_memory(), outermost = uv_get_constrained_memory();
    uint64_t most = outermost && outermost < machine ? outermost : machine;
    uint64_t group = memory_limit_of_group("");
    return group < most ? group : most;
}
