/* Whether a write's reply says that its keys are there now. What was refused, or wrote nothing, has
 * no effect.
 */
#ifndef NESTGUARD_WRITE_PROOF_H
#define NESTGUARD_WRITE_PROOF_H

#include "resp/command.h"

/* That of the command's row, or what its arguments make of it. */
enum command_proof write_proof(const struct command *command, const struct span *arguments,
                               size_t count);

/* A reply of the cache. Whatever leaves it open is taken for done: QUEUED, the error of a script
 * that may have written before. */
bool write_is_done(enum command_proof proof, struct span reply);

#endif
