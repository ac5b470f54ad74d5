/* Of the files that the process may open the reserve comes first. Where the rest is less than what
 * is wanted, connections of clients' own get a share of it at most, and clients what is left.
 */
#include "config/file_limits.h"

#include <errno.h>
#include <sys/resource.h>

enum {
    OF_PROCESS = 32,  /* standard channels, signals, the resolver, a file that is read again */
    OF_KEEPER = 32,   /* the cache, the log's streams, probes, checks */
    OF_WORKER = 12,   /* its loop's, and a client that is just being refused */
    OF_CONTROL = 272, /* http_server.c's limit, http_linger.c's, and some */
    OWN_SHARE = 4     /* a part of this many */
};

/* Two generations may be under way at once: one that serves, one that is built. */
uint64_t file_limits_reserve(const struct config *config)
{
    uint64_t of_worker = OF_WORKER + config->listens + 2 * (uint64_t)config->cache_connections;
    uint64_t of_control = config->has_control ? OF_CONTROL : 0;
    return OF_PROCESS + OF_KEEPER + of_control + config->load_connections +
           2 * (uint64_t)config->build_connections + config->workers * of_worker;
}

uint64_t file_limits_wanted(const struct config *config)
{
    return file_limits_reserve(config) + config->max_clients +
           (uint64_t)config->own_connections * config->workers;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Own connections never take more than is left: either all that was wanted is there, or they get a
 * share. */
struct file_limits file_limits_of(const struct config *config, uint64_t files)
{
    uint64_t reserve = file_limits_reserve(config);
    uint64_t left = files > reserve ? files - reserve : 0;
    uint64_t own = config->own_connections;
    if (files < file_limits_wanted(config))
        own = lesser(own, left / OWN_SHARE / config->workers);
    uint64_t clients = lesser(config->max_clients, left - own * config->workers);
    return (struct file_limits){files, (unsigned)clients, (unsigned)own};
}

bool file_limits_are_low(const struct config *config)
{
    return config->limits.clients < config->max_clients ||
           config->limits.own_connections < config->own_connections;
}

uint64_t file_limits_hard(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : (uint64_t)limit.rlim_max;
}

int file_limits_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return -errno;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}
