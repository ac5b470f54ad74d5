/* SIGHUP: reads the file again, keeps what cannot change, and says so. */
#ifndef NESTGUARD_RELOAD_H
#define NESTGUARD_RELOAD_H

#include "guard/view.h"

/* The configuration to use from now on, with one reference; or NULL when the file has errors, which
 * are in the log: then everything stays as it is. */
struct shared_config *reload_config(const struct shared_config *running);

#endif
