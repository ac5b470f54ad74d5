/* Reading the file again: SIGHUP and POST /v1/reload. */
#ifndef NESTGUARD_RELOAD_H
#define NESTGUARD_RELOAD_H

#include "config/config_reload.h"
#include "guard/view.h"

/* What came of it. Zeroed it is empty. */
struct reload {
    bool refused;             /* everything stays as it is: there are errors */
    bool by_database;         /* these are what the database says of a file that has none; else
                                 they are the file's */
    struct problems problems; /* of the file, also those that refuse nothing */
    struct setting_changes changes;
};

/* Frees what it holds; a zeroed one, too. */
void reload_finish(struct reload *reload);

/* What the file has now; NULL when it is refused, which the log was told. */
struct config *reload_read(const struct config *running, struct reload *reload);

/* Makes of it what would be in force, and tells the difference; changes.cache_stays is set before.
 * NULL, and it is freed, when it is refused after all, which the log was told. */
struct config *reload_follow(const struct config *running, struct config *fresh,
                             struct reload *reload);

/* The database has to give more than before, or is another: it is asked whether it can. */
bool reload_asks_database(const struct config *running, const struct config *fresh,
                          const struct reload *reload);

/* Makes of it the configuration to use from now on, with one reference; NULL, and it is freed, when
 * `problems` has errors by now, which the inquiry found. Everything goes to the log, too: nobody
 * sits in front of a guard that gets a signal. */
struct shared_config *reload_take(struct config *fresh, struct reload *reload);

/* Why it was refused, for a person. */
const char *reload_refusal(const struct reload *reload);

#endif
