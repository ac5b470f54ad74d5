/* Managed PostgreSQL: its owner may not ALTER SYSTEM, and calls settings by names of his own. */
#ifndef NESTGUARD_CHECK_PROVIDER_H
#define NESTGUARD_CHECK_PROVIDER_H

#include "database/catalogue/questions.h"

enum provider { PROVIDER_NONE, PROVIDER_RDS, PROVIDER_CLOUD_SQL, PROVIDER_AZURE };

/* By the roles that such a server has; PROVIDER_NONE also when it cannot be asked. */
enum provider provider_find(struct questions *questions);

/* A new string: how wal_level becomes logical. */
char *provider_remedy_of_level(enum provider provider);

/* A new string: how another setting gets its value, which may take a restart of the server. Where
 * it takes none the value is quoted as text, so that it may have a unit. */
char *provider_remedy_of_setting(enum provider provider, const char *setting, const char *value,
                                 bool takes_restart);

/* A new string: how a role, quoted, may follow the log. */
char *provider_remedy_of_right(enum provider provider, const char *role);

#endif
