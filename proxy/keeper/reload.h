/* Reading the file again: SIGHUP and POST /v1/reload. */
#ifndef NESTGUARD_RELOAD_H
#define NESTGUARD_RELOAD_H

#include "config/config_reload.h"
#include "guard/view.h"

/* What came of it. Zeroed it is empty. */
struct reload {
    bool refused;             /* the file has errors: everything stays as it is */
    struct problems problems; /* of the file, also those that refuse nothing */
    struct setting_changes changes;
};

/* Frees what it holds; a zeroed one, too. */
void reload_finish(struct reload *reload);

/* What the file has now; NULL when it is refused, which the log was told. */
struct config *reload_read(const struct config *running, struct reload *reload);

/* Makes of it the configuration to use from now on, with one reference; NULL when it is refused
 * after all. changes.cache_stays is set before. Everything goes to the log, too: nobody sits in
 * front of a guard that gets a signal. */
struct shared_config *reload_take(const struct config *running, struct config *fresh,
                                  struct reload *reload);

#endif
