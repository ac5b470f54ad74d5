/* What mends a server is a statement where it is one's own, and where it is rented a setting of the
 * provider's console or tool. Each function has an arm for each provider, and ends with the words
 * for a server of one's own.
 */
#include "check/check_provider.h"

#include "base/memory.h"

#include <stdlib.h>

/* Cloud SQL's administrator and RDS' never stand beside each other; a copy of a role's name on a
 * server of one's own is a wish to be spoken to like that. */
static const char find_roles[] =
    "SELECT CASE WHEN 'rds_superuser' = ANY (r) OR 'rds_replication' = ANY (r) THEN 1"
    "            WHEN 'cloudsqlsuperuser' = ANY (r) THEN 2"
    "            WHEN 'azure_pg_admin' = ANY (r) THEN 3 ELSE 0 END"
    "  FROM (SELECT coalesce(array_agg(rolname::text), '{}') FROM pg_roles WHERE rolname IN"
    "   ('rds_superuser', 'rds_replication', 'cloudsqlsuperuser', 'azure_pg_admin')) AS x (r)";

enum provider provider_find(struct questions *questions)
{
    struct pg_error error;
    PGresult *found = questions_ask(questions, find_roles, 0, NULL, &error);
    enum provider provider = found ? (enum provider)atoi(answer_text(found, 0, 0)) : PROVIDER_NONE;
    PQclear(found);
    return provider;
}

/* What stands for NAME is the instance's, which nobody here knows. */
char *provider_remedy_of_level(enum provider provider)
{
    switch (provider) {
    case PROVIDER_RDS:
        return xstrdup("Amazon RDS, Aurora: rds.logical_replication = 1 in the parameter group of "
                       "the instance (of the cluster with Aurora), then reboot the instance");
    case PROVIDER_CLOUD_SQL:
        return xstrdup("Google Cloud SQL: gcloud sql instances patch NAME "
                       "--database-flags=cloudsql.logical_decoding=on (with all other flags that "
                       "are set; it restarts the instance)");
    case PROVIDER_AZURE:
        return xstrdup("Azure: az postgres flexible-server parameter set --server-name NAME "
                       "--resource-group GROUP --name wal_level --value logical, then restart the "
                       "server");
    case PROVIDER_NONE:
        break;
    }
    return provider_remedy_of_setting(PROVIDER_NONE, "wal_level", "logical", true);
}

char *provider_remedy_of_setting(enum provider provider, const char *setting, const char *value,
                                 bool takes_restart)
{
    const char *restart = takes_restart ? ", then restart it" : "";
    switch (provider) {
    case PROVIDER_RDS:
        return xasprintf("Amazon RDS, Aurora: %s = %s in the parameter group of the instance%s",
                         setting, value, restart);
    case PROVIDER_CLOUD_SQL:
        return xasprintf("Google Cloud SQL: gcloud sql instances patch NAME --database-flags=%s=%s "
                         "(with all other flags that are set%s)",
                         setting, value, takes_restart ? "; it restarts the instance" : "");
    case PROVIDER_AZURE:
        return xasprintf("Azure: az postgres flexible-server parameter set --server-name NAME "
                         "--resource-group GROUP --name %s --value %s%s",
                         setting, value, restart);
    case PROVIDER_NONE:
        break;
    }
    return takes_restart
               ? xasprintf("ALTER SYSTEM SET %s = %s; -- takes a restart of the server", setting,
                           value)
               : xasprintf("ALTER SYSTEM SET %s = '%s'; SELECT pg_reload_conf();", setting, value);
}

char *provider_remedy_of_right(enum provider provider, const char *role)
{
    switch (provider) {
    case PROVIDER_RDS:
        return xasprintf("GRANT rds_replication TO %s;", role);
    case PROVIDER_CLOUD_SQL:
        return xasprintf("ALTER ROLE %s REPLICATION; -- as a member of cloudsqlsuperuser", role);
    case PROVIDER_AZURE:
        return xasprintf("ALTER ROLE %s REPLICATION; -- as a member of azure_pg_admin", role);
    case PROVIDER_NONE:
        break;
    }
    return xasprintf("ALTER ROLE %s REPLICATION;", role);
}
