/* What a write has come to, by its reply: whether its keys are there now. */
#ifndef NESTGUARD_WRITE_PROOF_H
#define NESTGUARD_WRITE_PROOF_H

#include "resp/command.h"

/* That of the command's row, or what its arguments make of it. */
enum command_proof write_proof(const struct command *command, const struct span *arguments,
                               size_t count);

enum write_outcome {
    WRITE_REFUSED, /* nothing has changed */
    WRITE_RUN,     /* and has made none of its keys; it may have taken them away, or have been to
                      change what was there */
    WRITE_DONE
};

/* By a reply of the cache. Whatever leaves it open is taken for done: QUEUED, the error of a script
 * that may have written before. */
enum write_outcome write_outcome(enum command_proof proof, struct span reply);

#endif
