/* What a cache has said of commands that the table does not name, so that it is asked once: by name
 * in any case. There are so many names at most, and the oldest goes first. */
#ifndef NESTGUARD_LEARNED_H
#define NESTGUARD_LEARNED_H

#include "base/keymap.h"
#include "resp/command_info.h"

enum { LEARNED_NAMES = 256, LEARNED_NAME_BYTES = 64 };

/* Zeroed: nothing. */
struct learned {
    struct keymap names;
};

/* Good until something is added or forgotten; NULL: nothing is known of that name. */
const struct command_info *learned_find(const struct learned *learned, struct span name);

/* Of a name of LEARNED_NAME_BYTES at most, in the place of what was known. */
void learned_add(struct learned *learned, struct span name, const struct command_info *info);

void learned_forget(struct learned *learned);

#endif
