/* Three keyspaces and the keys that their filters hold: item:0 to item:99, shadow:0 to shadow:99
 * (not enforced), passed:0 to passed:99 (the application loads by itself, and an absent key has the
 * value "nope"). */
#ifndef NESTGUARD_FAKES_KEYSPACES_H
#define NESTGUARD_FAKES_KEYSPACES_H

#include "guard/view.h"

enum { ITEMS, SHADOWS, PASSED, KEYSPACES };

/* With one connection to a cache on this port; `settings` are more lines of the file. */
struct shared_config *keyspaces_config(uint16_t cache_port, const char *settings);
struct generation *keyspaces_generation(void);
/* All keyspaces in one state. */
struct view *keyspaces_view(struct shared_config *shared, struct generation *generation,
                            enum keyspace_state state, unsigned holders);

#endif
