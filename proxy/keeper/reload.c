/* Nobody sits in front of a guard that gets a signal: what is wrong with the file goes to the log.
 */
#include "keeper/reload.h"

#include "base/log/log.h"

static void log_problems(const struct problems *problems)
{
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->at[i];
        log_line(problem->level == PROBLEM_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                 "reload: %s: %s", problem->place, problem->text);
    }
}

struct shared_config *reload_config(const struct shared_config *running)
{
    struct problems problems = {0};
    struct config *fresh = NULL;
    int status = config_load(&fresh, running->config->file, &problems);
    if (!status) {
        config_fixed_differences(running->config, fresh, &problems);
        config_keep_fixed(fresh, running->config);
    }
    if (!status)
        log_configure(fresh->log_format, fresh->log_level);
    log_problems(&problems);
    if (status)
        log_error("reload: the file has errors: nothing was changed");
    problems_finish(&problems);
    return status ? NULL : shared_config_create(fresh);
}
