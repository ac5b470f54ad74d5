/* Read, compared with what is in force, told, and then given to whoever makes it the one in force:
 * a file with errors changes nothing, nor does one for which the database has not what it wants.
 * Only the log's own settings hold from here on.
 */
#include "keeper/reload.h"

#include "base/log/log.h"
#include "base/log/log_problems.h"

/* One that cannot be taken is a warning: the file says something else than what holds. */
static void log_change(const struct setting_change *change)
{
    if (change->why)
        log_warning("reload: %s stays %s for now, not %s: %s", change->what, change->before,
                    change->after, change->why);
    else if (!change->taken)
        log_warning("reload: %s cannot change while the guard runs; restart it for the new value, "
                    "or have it hand over without a gap (SIGUSR2): %s (now %s)",
                    change->what, change->after, change->before);
    else if (!change->before[0])
        log_info("reload: %s: added, %s", change->what, change->after);
    else if (!change->after[0])
        log_info("reload: %s: removed, it was %s", change->what, change->before);
    else
        log_info("reload: %s: %s, was %s", change->what, change->after, change->before);
}

static void tell(const struct reload *reload)
{
    log_problems("reload: %s: %s%s%s", &reload->problems);
    for (size_t i = 0; i < reload->changes.count && !reload->refused; i++)
        log_change(&reload->changes.at[i]);
    if (reload->refused)
        log_error("reload: %s", reload_refusal(reload));
}

const char *reload_refusal(const struct reload *reload)
{
    return reload->by_database
               ? "the database has not what the file wants of it: nothing was changed"
               : "the file has errors: nothing was changed";
}

static int follow(struct config *fresh, const struct config *running, struct reload *reload)
{
    int status = config_follow(fresh, running, &reload->changes);
    if (status == -ENOTSUP)
        problems_add(&reload->problems, PROBLEM_ERROR, fresh->file, NULL,
                     "this process was started without a database, and the file has a table now: "
                     "restart it");
    else if (status == -EINVAL && running->sync == SYNC_NONE)
        problems_add(
            &reload->problems, PROBLEM_ERROR, fresh->file, NULL,
            "it has a new table or query, whose new rows would be denied: this process runs "
            "with sync: none until a restart, not %s; restart it, or have it hand over "
            "without a gap (SIGUSR2)",
            sync_mode_name(fresh->sync));
    else if (status == -EINVAL)
        problems_add(&reload->problems, PROBLEM_ERROR, fresh->file, NULL,
                     "it has a query, or a filter that cannot remove, for which sync: %s needs a "
                     "restart: until then sync is %s",
                     sync_mode_name(fresh->sync), sync_mode_name(running->sync));
    else if (status)
        problems_add(&reload->problems, PROBLEM_ERROR, fresh->file, NULL,
                     "this process has had %d keyspaces, which is all that it can number; restart "
                     "it for others",
                     KEYSPACES_MAX);
    return status;
}

struct config *reload_read(const struct config *running, struct reload *reload)
{
    struct config *fresh = NULL;
    reload->refused = config_load(&fresh, running->file, &reload->problems) != 0;
    if (reload->refused)
        tell(reload);
    return fresh;
}

struct config *reload_follow(const struct config *running, struct config *fresh,
                             struct reload *reload)
{
    reload->refused = follow(fresh, running, reload) != 0;
    if (!reload->refused)
        return fresh;
    tell(reload);
    config_destroy(fresh);
    return NULL;
}

bool reload_asks_database(const struct config *running, const struct config *fresh,
                          const struct reload *reload)
{
    const struct setting_changes *changes = &reload->changes;
    bool asks = config_moves_database(running, fresh) ||
                fresh->load_connections > running->load_connections;
    for (size_t i = 0; i < changes->count; i++)
        asks |= changes->at[i].keyspace && changes->at[i].taken &&
                changes->at[i].kind != CHANGE_REMOVED;
    return asks && config_has_rows(fresh);
}

struct shared_config *reload_take(struct config *fresh, struct reload *reload)
{
    reload->refused = reload->problems.errors > 0;
    if (!reload->refused)
        log_configure(fresh->log_format, fresh->log_level);
    tell(reload);
    if (!reload->refused)
        return shared_config_create(fresh);
    config_destroy(fresh);
    return NULL;
}

void reload_finish(struct reload *reload)
{
    problems_finish(&reload->problems);
    setting_changes_finish(&reload->changes);
}
