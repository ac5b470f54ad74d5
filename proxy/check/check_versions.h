/* Which version each node of a cluster runs, for a warning when they are several. */
#ifndef NESTGUARD_CHECK_VERSIONS_H
#define NESTGUARD_CHECK_VERSIONS_H

#include "base/buffer.h"
#include "base/problem.h"

enum { VERSIONS_TOLD = 8, VERSION_NODES_TOLD = 4 };

/* Zeroed: of no node as yet. */
struct check_versions {
    struct check_version {
        char version[64];
        struct buffer nodes; /* the first of them, as they are told */
        size_t count;
    } at[VERSIONS_TOLD];
};

/* "": it does not say, and counts for nothing. */
void check_versions_add(struct check_versions *versions, const char *version, const char *node);

/* Tells, and frees what was added. */
void check_versions_end(struct check_versions *versions, struct problems *problems);

#endif
