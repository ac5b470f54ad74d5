/* Which keyspaces a build is of. What fails for one of them alone, a table that is not there, may
 * not be read, or cannot be followed, need not keep the others from being guarded:
 *
 *   a build fails ─▶ whose fault is it? ─┬─ nobody's alone ─▶ the build has failed
 *                                        └─ one keyspace's ─▶ is it worth going on without?
 *
 *   going on without it         gains another that does   else, a build that is    else
 *                               not guard now             wanted for itself
 *   it does not guard now       yes                       yes                      no
 *   it guards, by the log       yes                       no                       no
 *   it guards, without a log    yes                       yes                      no
 *
 * So a keyspace that is broken for good is tried again and again without the others being built
 * each time; and one that guards on by the log, which still tells of it, is not lost for nothing.
 */
#ifndef NESTGUARD_BUILD_SCOPE_H
#define NESTGUARD_BUILD_SCOPE_H

#include "config/config.h"

struct build_scope {
    const struct config *whole;  /* that it is for */
    const struct config *config; /* the same, but for those that are left out: retired here */
    struct config own;
    bool wanted;   /* for itself, whatever guards now */
    bool *guarded; /* by number: it guards now, by another generation */
    char **faults; /* by number: why it is left out; NULL: it is not */
};

/* Keeps the configuration, which must outlive it; `guarded` is taken. */
void build_scope_init(struct build_scope *scope, const struct config *config, bool wanted,
                      bool *guarded);
void build_scope_finish(struct build_scope *scope);

/* Whether a failure while one keyspace was seen to is that keyspace's alone: an error of the server
 * about its statement (-EPROTO, with this state), or of its filter. */
bool build_scope_is_ones_fault(int status, const char *sqlstate);

/* The build cannot have this keyspace, one of scope->config. True: it is worth going on without,
 * and it is left out from here on; never twice of the same one. */
bool build_scope_leave_out(struct build_scope *scope, const struct keyspace *keyspace,
                           const char *why);

/* The faults, for whoever is told: he frees them. */
char **build_scope_take_faults(struct build_scope *scope);

#endif
