/* How the keeper trusts generations that follow no log (sync: poll and none):
 *
 *   renewal ─ built ─▶ candidate ─ its self-check passes ─▶ in force ─ a later one fails ─▶
 * passing, and a new generation
 */
#include "keeper/keeper_internal.h"

#include "base/log/log.h"

#include <stdio.h>

static unsigned long long number_of(const struct standing *standing)
{
    return standing_generation(standing)->number;
}

static void on_ready(void *arg, struct standing *standing)
{
    struct keeper *keeper = arg;
    struct standing *replaced = keeper->standing;
    struct generation *generation = standing_generation(standing);
    if (keeper->draining)
        return;
    keeper->standing = standing;
    keeper->standing_candidate = NULL;
    publishing_clear(&keeper->publishing, OBSTACLE_UNFOLLOWED);
    generation->references++;
    keeper_publish(keeper, generation);
    standing_close(replaced);
    log_info("generation %llu: in force", number_of(standing));
    renewal_settle(&keeper->renewal, NULL);
}

static void on_fault(void *arg, struct standing *standing, const char *why)
{
    struct keeper *keeper = arg;
    char text[256];
    if (keeper->draining)
        return;
    snprintf(text, sizeof text, "%s", why);
    if (standing != keeper->standing) {
        keeper->standing_candidate = NULL;
        standing_close(standing);
        renewal_settle(&keeper->renewal, text);
        return;
    }
    publishing_end_lease(&keeper->publishing);
    publishing_obstruct(&keeper->publishing, OBSTACLE_UNFOLLOWED, text);
    keeper->standing = NULL;
    standing_close(standing);
    keeper_publish(keeper, NULL);
    renewal_replace(&keeper->renewal, text);
}

void keeper_leave_standing(struct keeper *keeper, const char *why)
{
    if (keeper->standing)
        on_fault(keeper, keeper->standing, why);
    if (keeper->standing_candidate)
        on_fault(keeper, keeper->standing_candidate, why);
}

void keeper_stand(struct keeper *keeper, struct built *built)
{
    struct generation *generation = built->generation;
    purging_learn_values(&keeper->purging, built->values);
    generation->settled =
        settled_learn(&keeper->settled, generation->number, &built->snapshot, built->next_xid);
    keeper->standing_candidate = standing_create(
        built, &(struct standing_options){.config = publishing_first_config(&keeper->publishing),
                                          .checker = keeper->checker,
                                          .fn_checks = keeper->fn_checks,
                                          .ready = on_ready,
                                          .fault = on_fault,
                                          .arg = keeper});
}

/* The first may end the other's time. */
void keeper_watch_standing(struct keeper *keeper)
{
    if (keeper->standing_candidate)
        standing_tick(keeper->standing_candidate);
    if (keeper->standing)
        standing_tick(keeper->standing);
}

void keeper_close_standing(struct keeper *keeper)
{
    standing_close(keeper->standing_candidate);
    standing_close(keeper->standing);
    keeper->standing_candidate = keeper->standing = NULL;
}

int keeper_open_checker(struct keeper *keeper)
{
    const char *error = NULL;
    int status = checker_create(&keeper->checker, &keeper->loop,
                                publishing_first_config(&keeper->publishing), &error);
    if (status)
        log_error("database: %s", error);
    return status;
}
