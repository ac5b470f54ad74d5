#include "check/check_versions.h"

#include <stdlib.h>
#include <string.h>

static void name_node(struct check_version *one, const char *node)
{
    if (one->count++ < VERSION_NODES_TOLD)
        buffer_printf(&one->nodes, "%s%s", one->count > 1 ? ", " : "", node);
}

void check_versions_add(struct check_versions *versions, const char *version, const char *node)
{
    size_t i = 0;
    while (i < VERSIONS_TOLD && versions->at[i].count &&
           strcmp(versions->at[i].version, version) != 0)
        i++;
    if (i == VERSIONS_TOLD || !version[0])
        return;
    struct check_version *one = &versions->at[i];
    snprintf(one->version, sizeof one->version, "%s", version);
    name_node(one, node);
}

void check_versions_end(struct check_versions *versions, struct problems *problems)
{
    struct buffer text = {0};
    for (size_t i = 0; i < VERSIONS_TOLD && versions->at[i].count; i++) {
        struct check_version *one = &versions->at[i];
        char *nodes = buffer_string(&one->nodes);
        buffer_printf(&text, "%s%s (%s", i ? ", " : "", one->version, nodes);
        if (one->count > VERSION_NODES_TOLD)
            buffer_printf(&text, " and %zu more", one->count - VERSION_NODES_TOLD);
        buffer_append(&text, ")", 1);
        free(nodes);
    }
    char *all = buffer_string(&text);
    if (versions->at[1].count)
        problems_add(problems, PROBLEM_WARNING, "cache", NULL,
                     "the cluster's nodes run different versions, and a command that is newer than "
                     "one of them depends on its key: %s",
                     all);
    free(all);
}
