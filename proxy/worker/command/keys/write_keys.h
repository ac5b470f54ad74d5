/* Which arguments of a write or deletion are the keys that it makes or deletes. */
#ifndef NESTGUARD_WRITE_KEYS_H
#define NESTGUARD_WRITE_KEYS_H

#include "worker/request/request.h"

/* From `first` up to `end`, each the command's key_step behind the one before. */
struct write_keys {
    size_t first, end;
};

/* Of a request whose number of arguments its command allows. */
struct write_keys write_keys_of(const struct request *request);

#endif
