/* What it means to the rest of the keeper that one guard follows another; see succession.h. */
#include "keeper/keeper_internal.h"

#include "base/log/log.h"
#include "base/log/service.h"
#include "base/memory.h"
#include "config/syntax/cache_url.h"
#include "keeper/keeper_run.h"
#include "redis/redis.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the cache, by which each knows the other's ---- */

/* The caller's. */
static char *own_cache(const struct keeper *keeper)
{
    return cache_url_place(&keeper->cache.here->config->config->cache);
}

static bool has_cache(void *arg, struct span cache)
{
    char *own = own_cache(arg);
    bool is_own = span_is(cache, own);
    free(own);
    return is_own;
}

/* While another cache is to take its place, the successor may be led to that one, under whatever
 * name. */
static bool is_settled(const struct keeper *keeper)
{
    return keeper->cache.change == CACHE_STAYS;
}

/* One that is away may come back as another server, which only who knew the last one doubts; or
 * with what is to be deleted from it. */
static bool is_sound(const struct keeper *keeper)
{
    return is_settled(keeper) && redis_is_up(keeper->cache.here->redis) &&
           !purging_doubts(&keeper->purging);
}

static void tell_cache(void *arg)
{
    struct keeper *keeper = arg;
    char *cache = is_sound(keeper) ? own_cache(keeper) : xstrdup("");
    succession_tell_cache(&keeper->succession, cache, false);
    free(cache);
}

void keeper_tell_purged(struct keeper *keeper)
{
    if (!is_settled(keeper))
        return;
    char *cache = own_cache(keeper);
    succession_tell_cache(&keeper->succession, cache, true);
    free(cache);
}

/* ---- the successor ---- */

/* A keyspace that cannot be had is tried for so long; then it is better to serve without it than
 * never to take over: its keys pass, which is true of them, and what keeps it from being guarded
 * here would keep any other process that starts from it, too. */
enum { LEFT_OUT_PATIENCE_MS = 10000 };

static bool is_ready(void *arg)
{
    const struct publishing *publishing = &((const struct keeper *)arg)->publishing;
    if (!publishing_is_everywhere(publishing) ||
        !publishing_guards_what_it_can(publishing, LEFT_OUT_PATIENCE_MS))
        return false;
    if (publishing_left_out(publishing))
        log_warning("taking over without a keyspace that cannot be guarded: %s",
                    publishing_left_out(publishing));
    return true;
}

/* Times are of whole milliseconds: what was asked within the same one may have been asked before.
 */
static bool knows(void *arg, uint64_t time)
{
    const struct keeper *keeper = arg;
    return !publishing_guards_any(&keeper->publishing) ||
           replication_has_followed(&keeper->replication, time + 1);
}

/* From here on the predecessor confirms no more than what is known here. */
static void share(void *arg)
{
    replication_share(&((struct keeper *)arg)->replication);
}

static void lacks(void *arg, struct span keyspace)
{
    keeper_lacks(arg, keyspace);
}

/* The control port's socket is the predecessor's, who has stopped taking calls by it. */
static void let_in(void *arg)
{
    struct keeper *keeper = arg;
    keeper_open_control(keeper);
    if (!keeper->draining)
        keeper_tell_workers(keeper, MESSAGE_ACCEPT);
    service_ready();
}

static void doubt_cache(void *arg)
{
    purging_doubt(&((struct keeper *)arg)->purging,
                  "the predecessor has another one, or does not believe it");
}

/* Commits are this process' to confirm from here on. What the predecessor was still to delete from
 * the cache when it ended, or was ended, nobody knows. */
static void stand_alone(void *arg, bool has_purged)
{
    struct keeper *keeper = arg;
    replication_speak(&keeper->replication);
    if (has_purged || keeper->draining)
        return;
    log_warning(
        "the predecessor has not deleted from the cache all that it had to: all keys of the "
        "keyspaces will be");
    purging_missed(&keeper->purging);
    purging_doubt(&keeper->purging, "the predecessor has not deleted all that it had to");
}

/* ---- the predecessor ---- */

static void limit(void *arg, uint64_t position)
{
    replication_limit(&((struct keeper *)arg)->replication, position);
}

/* The control port answers what it was asked, and takes no more. Clients that are here stay until
 * they leave, or drain_timeout is over. */
static void yield(void *arg)
{
    struct keeper *keeper = arg;
    if (keeper->http)
        http_server_quiesce(keeper->http);
    keeper->handed_over = true;
    tell_cache(keeper);
    keeper_tell_lacking(keeper);
    if (keeper->draining)
        return;
    keeper->leaving.letting_in = keeper->worker_count;
    keeper_tell_workers(keeper, MESSAGE_YIELD);
    keeper_leave(keeper, keeper_config(keeper)->drain_timeout_ms, true);
}

/* Lists are sent to the successor from here on, and nobody tells of them here. */
static bool give_way(void *arg)
{
    struct keeper *keeper = arg;
    if (!keeper->publishing.gives_way) {
        publishing_give_way(&keeper->publishing, true);
        keeper_publish(keeper, NULL);
    }
    return publishing_is_everywhere(&keeper->publishing);
}

static void stay(void *arg)
{
    struct keeper *keeper = arg;
    publishing_give_way(&keeper->publishing, false);
    keeper_publish(keeper, NULL);
}

static void stand(void *arg, uint64_t until)
{
    publishing_stand(&((struct keeper *)arg)->publishing, until);
}

static void leave(void *arg)
{
    keeper_leave(arg, 0, false);
}

static void forget_successor(uv_handle_t *handle)
{
    free(handle);
}

static void on_successor_exit(uv_process_t *process, int64_t status, int signal)
{
    struct keeper *keeper = process->data;
    log_warning("the successor that was started has ended by itself (%s %d)",
                signal ? "signal" : "status", signal ? signal : (int)status);
    keeper->successor = NULL;
    uv_close((uv_handle_t *)process, forget_successor);
}

/* A watchdog that was meant for this process is meant for its successor, who has another number
 * (sd_watchdog_enabled(3)). The array is freed by the caller, its texts are the environment's. */
static char **environment_of_successor(void)
{
    static const char whose[] = "WATCHDOG_PID=";
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **list = xcalloc(count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        bool says_whose = strncmp(environ[i], whose, sizeof whose - 1) == 0;
        if (!says_whose || strtol(environ[i] + sizeof whose - 1, NULL, 10) != getpid())
            list[kept++] = environ[i];
    }
    return list;
}

/* The kernel ends all processes of a container with its first one: so that has no successor. */
static bool is_first_of_container(void)
{
    return getpid() == 1;
}

/* As this one was started, from the path that its program had: an upgraded one is there by now. */
static void on_upgrade_signal(uv_signal_t *signal, int number)
{
    struct keeper *keeper = signal->data;
    uv_stdio_container_t same[3];
    (void)number;
    if (keeper->draining || keeper->successor || succession_waits(&keeper->succession))
        return;
    if (is_first_of_container()) {
        log_error("SIGUSR2: this is process 1 of a container, with whose end a successor in it "
                  "would end, too: start another container instead");
        return;
    }
    for (int fd = 0; fd < 3; fd++)
        same[fd] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = fd};
    keeper->successor = xcalloc(1, sizeof *keeper->successor);
    keeper->successor->data = keeper;
    char **environment = environment_of_successor();
    int status = uv_spawn(&keeper->loop, keeper->successor,
                          &(uv_process_options_t){.file = keeper->options->restart[0],
                                                  .args = keeper->options->restart,
                                                  .env = environment,
                                                  .exit_cb = on_successor_exit,
                                                  .stdio = same,
                                                  .stdio_count = 3});
    free(environment);
    if (!status) {
        log_info("SIGUSR2: process %d is started to take over", (int)keeper->successor->pid);
        return;
    }
    log_error("SIGUSR2: starting %s: %s", keeper->options->restart[0], uv_strerror(status));
    uv_close((uv_handle_t *)keeper->successor, forget_successor);
    keeper->successor = NULL;
}

/* ---- life ---- */

void keeper_open_succession(struct keeper *keeper)
{
    const struct keeper_options *options = keeper->options;
    unsigned count = 0;
    int *sockets = xcalloc(options->socket_count + 1, sizeof *sockets);
    for (size_t i = 0; i < options->socket_count; i++)
        sockets[count++] = options->sockets[i].fd;
    if (options->control_fd >= 0)
        sockets[count++] = options->control_fd;
    if (options->predecessor >= 0)
        replication_keep_silent(&keeper->replication);
    uv_signal_init(&keeper->loop, &keeper->on_usr2);
    keeper->on_usr2.data = keeper;
    uv_signal_start(&keeper->on_usr2, on_upgrade_signal, SIGUSR2);
    succession_open(&keeper->succession,
                    &(struct succession_options){.loop = &keeper->loop,
                                                 .file = options->file,
                                                 .predecessor = options->predecessor,
                                                 .is_last = is_first_of_container(),
                                                 .sockets = sockets,
                                                 .socket_count = count,
                                                 .entries = &keeper->entries,
                                                 .is_ready = is_ready,
                                                 .share = share,
                                                 .knows = knows,
                                                 .lacks = lacks,
                                                 .let_in = let_in,
                                                 .has_cache = has_cache,
                                                 .doubt_cache = doubt_cache,
                                                 .stand_alone = stand_alone,
                                                 .meet = tell_cache,
                                                 .limit = limit,
                                                 .yield = yield,
                                                 .leave = leave,
                                                 .give_way = give_way,
                                                 .stay = stay,
                                                 .stand = stand,
                                                 .arg = keeper});
    free(sockets);
}

void keeper_close_succession(struct keeper *keeper)
{
    keeper->handed_over |= succession_waits(&keeper->succession); /* the predecessor has them */
    succession_close(&keeper->succession);
    uv_close((uv_handle_t *)&keeper->on_usr2, NULL);
    if (keeper->successor)
        uv_close((uv_handle_t *)keeper->successor, forget_successor);
}
