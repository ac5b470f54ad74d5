/* From a file to a process that serves:
 *
 *   file ─▶ check of cache and database ─▶ open files' limit ─▶ ports, bound here or before ─▶
 *   keeper_run()
 *
 * Ports are bound before any worker begins, so that a mistake in an address ends the start with a
 * plain message. Socket files are removed at the end, by paths that were noted before: the
 * configuration in force may be another one by then.
 */
#include "cli/serve.h"

#include "base/log/log.h"
#include "base/log/log_problems.h"
#include "base/memory.h"
#include "base/text/byte_unit.h"
#include "check/check.h"
#include "cli/inherited.h"
#include "config/file_limits.h"
#include "control/admin.h"
#include "handover/handover.h"
#include "keeper/keeper_run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What this process listens on, open before there is a worker. */
struct ports {
    struct inherited inherited;
    bool follows;                  /* a predecessor has one of our addresses */
    struct keeper_socket *sockets; /* by the order of `listen`; at least one a worker for each */
    size_t count;
    int control;   /* -1: there is no control port */
    char **places; /* of socket files that are ours to remove */
    size_t place_count;
};

static bool concerns(const struct problems *problems, const struct keyspace *keyspace)
{
    for (size_t i = 0; i < problems->count; i++)
        if (problems->at[i].level == PROBLEM_ERROR && problems->at[i].about == keyspace)
            return true;
    return false;
}

/* Every error is of one keyspace alone, and there is one without any. */
static bool leaves_some(const struct config *config, const struct problems *problems)
{
    size_t left = 0;
    for (size_t i = 0; i < config->keyspace_count; i++)
        left += !concerns(problems, &config->keyspaces[i]);
    return left && !concerns(problems, NULL);
}

/* Their keys pass until what is wrong with them is mended. */
static void tell_who_waits(const struct config *config, const struct problems *problems)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (concerns(problems, &config->keyspaces[i]))
            log_error(
                "keyspace %s cannot be guarded, or its rows not be loaded, for what is said above; "
                "the others are not concerned",
                config->keyspaces[i].name);
}

/* At a terminal as `check` shows them: a remedy of several lines can be copied. */
static void tell(const struct problems *problems)
{
    if (log_is_for_programs())
        log_problems("%s: %s%s%s", problems);
    else
        problems_print(problems, stderr);
}

static void tell_of_the_end(const char *file, size_t errors)
{
    const char *s = errors == 1 ? "" : "s";
    if (log_is_for_programs())
        log_error("not started: %zu error%s in %s or behind it; `nestguard check -c %s` shows them "
                  "again",
                  errors, s, file, file);
    else
        fprintf(stderr,
                "nestguard: not started: %zu error%s in %s or behind it; `nestguard check "
                "-c %s` shows them again\n",
                errors, s, file, file);
}

/* A file with errors, or servers that are there and cannot work with it, end the start; a server
 * that is down does not, nor does what is wrong with some of the keyspaces alone. In which form all
 * that is told also a file with errors says, as far as it was understood. */
static struct config *load(const char *file)
{
    struct problems problems = {0};
    struct config *config = NULL;
    int status = config_load_draft(&config, file, &problems);
    if (config)
        log_configure(config->log_format, config->log_level);
    if (!status)
        check_backends(config, &problems);
    tell(&problems);
    if (problems.errors && !status && leaves_some(config, &problems)) {
        tell_who_waits(config, &problems);
    } else if (problems.errors) {
        tell_of_the_end(file, problems.errors);
        config_destroy(config);
        config = NULL;
    }
    problems_finish(&problems);
    return config;
}

/* A client is an open file; the default of 1024 would run out long before max_clients. */
static void raise_file_limit(const struct config *config)
{
    const struct file_limits *limits = &config->limits;
    int status = file_limits_raise();
    if (status < 0)
        log_warning("raising the limit of open files: %s", strerror(-status));
    log_info("%llu open files: %u clients, %u connections to the cache of their own per worker",
             (unsigned long long)limits->files, limits->clients, limits->own_connections);
    const char *unit;
    double memory = byte_unit((double)config->max_client_memory, &unit);
    log_info("%.1f %s of memory for clients", memory, unit);
}

/* Nobody listens yet, so nobody has come in by another mode. */
static int listen_on(const struct config *config, const struct address *address, int *fds,
                     unsigned count)
{
    int status = address_listen(address, fds, count);
    if (!status && address->path &&
        chmod(address->path, (mode_t)strtoul(config->unix_socket_mode, NULL, 8)) < 0)
        status = -errno;
    if (status == -EADDRINUSE)
        log_error("listening on %s: another process has this address, maybe another guard (`ss "
                  "-ltnp` names it): end that, or choose another one",
                  address->text);
    else if (status < 0)
        log_error("listening on %s: %s", address->text, strerror(-status));
    else
        log_info("listening on %s", address->text);
    return status;
}

/* Those that were bound for us, as many as there are: in each of them clients may wait. */
static unsigned take_inherited(struct inherited *inherited, const struct address *address, int *fds)
{
    unsigned count = 0;
    while (count < HANDOVER_SOCKETS_MAX && (fds[count] = inherited_take(inherited, address)) >= 0)
        count++;
    if (count)
        log_info("listening on %s, which was bound before", address->text);
    return count;
}

/* At least one for each worker: two of them may share one. */
static int spread(int *fds, unsigned *count, unsigned workers)
{
    for (unsigned had = *count; *count < workers; ++*count) {
        fds[*count] = fcntl(fds[*count % had], F_DUPFD_CLOEXEC, 0);
        if (fds[*count] < 0)
            return -errno;
    }
    return 0;
}

/* The workers take turns: each has one at least, and whoever has two accepts from both. */
static void add_sockets(struct ports *ports, size_t address, const int *fds, unsigned count,
                        unsigned workers)
{
    ports->sockets = xrealloc(ports->sockets, (ports->count + count) * sizeof *ports->sockets);
    for (unsigned i = 0; i < count; i++)
        ports->sockets[ports->count++] = (struct keeper_socket){address, i % workers, fds[i]};
}

/* A manager goes on listening by the file of its socket. */
static void note_place(struct ports *ports, const struct address *address, int fd)
{
    if (!address->path || inherited_is_managers(fd))
        return;
    ports->places = xrealloc(ports->places, (ports->place_count + 1) * sizeof *ports->places);
    ports->places[ports->place_count++] = xstrdup(address->path);
}

/* What was bound for us is not bound again: its sockets are shared by as many workers as there are.
 */
static int open_port(const struct config *config, size_t address, struct ports *ports)
{
    int fds[HANDOVER_SOCKETS_MAX];
    unsigned count = take_inherited(&ports->inherited, &config->listen[address], fds);
    ports->follows |= count > 0 && ports->inherited.predecessor >= 0;
    int status = count ? spread(fds, &count, config->workers)
                       : listen_on(config, &config->listen[address], fds, config->workers);
    if (status < 0)
        return status;
    note_place(ports, &config->listen[address], fds[0]);
    add_sockets(ports, address, fds, count ? count : config->workers, config->workers);
    return 0;
}

static int open_control(const struct config *config, struct ports *ports)
{
    ports->control = -1;
    if (!config->has_control)
        return 0;
    ports->control = inherited_take(&ports->inherited, &config->control);
    int status = ports->control >= 0 ? 0 : listen_on(config, &config->control, &ports->control, 1);
    if (!status)
        note_place(ports, &config->control, ports->control);
    return status;
}

static int open_ports(const struct config *config, struct ports *ports)
{
    for (size_t i = 0; i < config->listens; i++)
        if (open_port(config, i, ports) < 0)
            return -1;
    return open_control(config, ports);
}

/* What a socket file was bound to is gone, unless a successor has it: the next start shall not have
 * to wonder about it. */
static void unlink_sockets(const struct ports *ports)
{
    for (size_t i = 0; i < ports->place_count; i++)
        unlink(ports->places[i]);
}

static void ports_finish(struct ports *ports)
{
    for (size_t i = 0; i < ports->place_count; i++)
        free(ports->places[i]);
    free(ports->places);
    free(ports->sockets);
}

/* The configuration is the keeper's from here on. A successor is started by the path that this
 * program has now: by then an upgraded one may be there. */
static int run(struct config *config, const char *file, struct ports *ports)
{
    bool handed_over = false;
    char program[PATH_MAX] = "";
    char *restart[] = {program, "serve", "-c", (char *)file, NULL};
    (void)!readlink("/proc/self/exe", program, sizeof program - 1);
    log_info("nestguard %s: %u worker%s, %zu keyspace%s, sync: %s", NESTGUARD_VERSION,
             config->workers, config->workers == 1 ? "" : "s", config->keyspace_count,
             config->keyspace_count == 1 ? "" : "s", sync_mode_name(config->sync));
    struct keeper_options options = {.config = config,
                                     .file = file,
                                     .sockets = ports->sockets,
                                     .socket_count = ports->count,
                                     .control_fd = ports->control,
                                     .predecessor = -1,
                                     .restart = restart,
                                     .routes = admin_routes,
                                     .on_call = admin_log};
    if (ports->follows) {
        options.predecessor = ports->inherited.predecessor; /* the keeper's from here on */
        ports->inherited.predecessor = -1;
    }
    inherited_finish(&ports->inherited);
    int status = keeper_run(&options, &handed_over);
    if (!handed_over)
        unlink_sockets(ports);
    return status;
}

/* What malloc() learns by itself is to keep up to 64 MB at the end of each thread's heap, where
 * malloc_trim() does not look. It would learn the other bound, too: from there on memory is mapped.
 */
static void bound_what_is_kept(void)
{
    mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
    mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);
}

int serve_main(const char *file)
{
    struct ports ports = {0};
    int status = 1;
    bound_what_is_kept();
    signal(SIGPIPE, SIG_IGN); /* who writes to a client that has left gets an error, no signal */
    struct config *config = load(file);
    if (!config)
        return status;
    raise_file_limit(config);
    inherited_open(&ports.inherited, file);
    if (open_ports(config, &ports) == 0) {
        status = run(config, file, &ports);
    } else {
        inherited_finish(&ports.inherited);
        config_destroy(config);
    }
    ports_finish(&ports);
    return status;
}
