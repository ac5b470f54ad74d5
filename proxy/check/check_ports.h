/* Are the addresses that the guard is to listen on free? */
#ifndef NESTGUARD_CHECK_PORTS_H
#define NESTGUARD_CHECK_PORTS_H

#include "config/config.h"

/* Adds a warning for each that is not, since it may be the running guard that has it, and an error
 * for what is no address of this machine. */
void check_ports(const struct config *config, struct problems *problems);

/* Whether somebody listens on one of `listen`, which is mostly the guard itself. */
bool check_ports_are_taken(const struct config *config);

#endif
