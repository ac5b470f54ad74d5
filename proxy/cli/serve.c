/* From a file to a process that serves:
 *
 *   file ─▶ check of cache and database ─▶ open files' limit ─▶ ports ─▶ keeper_run()
 *
 * Ports are bound before any worker begins, so that a mistake in an address ends the start with a
 * plain message. Socket files are removed at the end, by paths that were noted before: the
 * configuration in force may be another one by then.
 */
#include "cli/serve.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "check/check.h"
#include "config/file_limits.h"
#include "control/admin.h"
#include "keeper/keeper_run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file with errors, or servers that are there and cannot work with it, end the start; a server
 * that is down does not. */
static struct config *load(const char *file)
{
    struct problems problems = {0};
    struct config *config = NULL;
    if (config_load(&config, file, &problems) == 0)
        check_backends(config, &problems);
    problems_print(&problems, stderr);
    if (problems.errors) {
        fprintf(stderr,
                "nestguard: not started: %zu error%s in %s or behind it; `nestguard check "
                "-c %s` shows them again\n",
                problems.errors, problems.errors == 1 ? "" : "s", file, file);
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

static int open_ports(const struct config *config, struct keeper_options *options)
{
    options->fds = xcalloc(config->listens, sizeof *options->fds);
    for (size_t i = 0; i < config->listens; i++) {
        options->fds[i] = xcalloc(config->workers, sizeof **options->fds);
        if (listen_on(config, &config->listen[i], options->fds[i], config->workers) < 0)
            return -1;
    }
    options->control_fd = -1;
    return config->has_control ? listen_on(config, &config->control, &options->control_fd, 1) : 0;
}

/* What a socket file was bound to is gone; the next start shall not have to wonder about it. */
static void unlink_sockets(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unlink(paths[i]);
        free(paths[i]);
    }
    free(paths);
}

static char **socket_paths(const struct config *config, size_t *count)
{
    char **paths = xcalloc(config->listens + 1, sizeof *paths);
    *count = 0;
    for (size_t i = 0; i < config->listens; i++)
        if (config->listen[i].path)
            paths[(*count)++] = xstrdup(config->listen[i].path);
    if (config->has_control && config->control.path)
        paths[(*count)++] = xstrdup(config->control.path);
    return paths;
}

static void free_fds(struct keeper_options *options, size_t listens)
{
    for (size_t i = 0; options->fds && i < listens; i++)
        free(options->fds[i]);
    free(options->fds);
}

/* The configuration is the keeper's from here on. */
static int run(struct config *config, struct keeper_options *options)
{
    size_t socket_count;
    char **sockets = socket_paths(config, &socket_count);
    log_info("nestguard %s: %u workers, %zu keyspaces, sync: %s", NESTGUARD_VERSION,
             config->workers, config->keyspace_count, sync_mode_name(config->sync));
    options->config = config;
    int status = keeper_run(options);
    unlink_sockets(sockets, socket_count);
    return status;
}

int serve_main(const char *file)
{
    struct keeper_options options = {.routes = admin_routes, .on_call = admin_log};
    int status = 1;
    signal(SIGPIPE, SIG_IGN);
    struct config *config = load(file);
    if (!config)
        return status;
    size_t listens = config->listens;
    log_configure(config->log_format, config->log_level);
    raise_file_limit(config);
    if (open_ports(config, &options) == 0)
        status = run(config, &options);
    else
        config_destroy(config);
    free_fds(&options, listens);
    return status;
}
