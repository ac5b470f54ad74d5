/* Sockets that somebody else has bound for us, who may already have clients waiting in them: the
 * service manager (sd_listen_fds(3)), or the guard that serves by the same file, whom this one is
 * to follow.
 */
#ifndef NESTGUARD_INHERITED_H
#define NESTGUARD_INHERITED_H

#include "base/text/address.h"

#include <stdbool.h>

struct inherited {
    int *fds;        /* that nobody has taken yet */
    unsigned count;  /* of them */
    int predecessor; /* a channel to it (handover/handover.h); -1: none serves by this file */
};

/* Finds out what there is to take. `file` is the configuration's path, by which guards know each
 * other. Waits for a predecessor for some seconds at most; has no failure, for a guard that was
 * left nothing binds its own. Ended by inherited_finish(). */
void inherited_open(struct inherited *inherited, const char *file);

/* One that is bound to this address, the caller's from here on; -1: there is none any more. */
int inherited_take(struct inherited *inherited, const struct address *address);

/* Whether the unix socket is the service manager's, given to this process or to one before it: then
 * its file is the manager's, too. */
bool inherited_is_managers(int fd);

/* Lets the predecessor go on: nothing of it is ours. Closes what was not taken. */
void inherited_finish(struct inherited *inherited);

#endif
