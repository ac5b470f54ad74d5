/* What the cache says of a command that the table (command.h) does not name: its own, of a module,
 * or of a version that came later. */
#ifndef NESTGUARD_COMMAND_INFO_H
#define NESTGUARD_COMMAND_INFO_H

#include "base/span.h"

struct command_info {
    bool is_known;      /* to the cache */
    bool blocks;        /* it may wait, and let nothing else be served meanwhile */
    bool hides_keys;    /* which of its words are keys only COMMAND GETKEYS tells */
    unsigned first_key; /* else: which word is the first; 0: it has none */
};

/* The whole reply to COMMAND INFO of one name, of any version and in either protocol. False: it is
 * none. */
bool command_info_read(struct span reply, struct command_info *info);

/* The whole reply to COMMAND GETKEYS: the first key; an empty one: there is none, or the command is
 * such that the cache refuses it anyway. False: that is not said. */
bool command_first_key_read(struct span reply, struct span *key);

#endif
