/* Of the files that the process may open the reserve comes first, and of the rest connections that
 * may come: to nodes and replicas that are not known at the start, and to another cache while it is
 * moved to. Those get half of it at most, so that no assumption keeps a guard from starting. Where
 * what is left is less than what is wanted, connections of clients' own get a share of it at most,
 * and clients what is left then.
 */
#include "config/file_limits.h"

#include <errno.h>
#include <sys/resource.h>

enum {
    OF_PROCESS = 32,  /* standard channels, signals, the resolver, a file that is read again */
    OF_KEEPER = 32,   /* the cache, the log's streams, probes, checks */
    OF_WORKER = 12,   /* its loop's, and a client that is just being refused */
    OF_CONTROL = 272, /* http_server.c's limit, http_linger.c's, and some */
    OWN_SHARE = 4,    /* a part of this many */
    COMING_SHARE = 2, /* likewise */
    PROTOCOLS = 2,
    LARGE = 1, /* a shared connection beside cache_connections, of a protocol (pool.h) */
    /* More are believed (redis_map.h, replicas.h), and hardly anybody has them. */
    NODES = 16,               /* of a cluster: its primaries */
    REPLICAS = 2 * NODES,     /* in a cluster */
    REPLICAS_OF_SENTINELS = 8 /* of the one primary */
};

/* What a worker's clients share. */
static uint64_t to_node(const struct config *config)
{
    return PROTOCOLS * ((uint64_t)config->cache_connections + LARGE);
}

/* Two generations may be under way at once: one that serves, one that is built. */
uint64_t file_limits_reserve(const struct config *config)
{
    uint64_t of_worker = OF_WORKER + config->listens + to_node(config);
    uint64_t of_control = config->has_control ? OF_CONTROL : 0;
    return OF_PROCESS + OF_KEEPER + of_control + config->load_connections +
           2 * (uint64_t)config->build_connections + config->workers * of_worker;
}

/* What a worker has to a cache like this one: to its primaries, and to replicas. */
static uint64_t of_worker_to_cache(const struct config *config, uint64_t nodes)
{
    uint64_t replicas = config->cache.is_cluster ? REPLICAS
                        : config->cache.primary  ? REPLICAS_OF_SENTINELS
                                                 : 0;
    bool reads_there = config->cache_reads == CACHE_READS_REPLICA;
    return nodes * to_node(config) + (reads_there ? PROTOCOLS * replicas : 0);
}

/* Behind the reserve, which has one server's: twice, for while the cache moves both are served.
 * The keeper has one to each node. */
static uint64_t coming(const struct config *config)
{
    uint64_t nodes = config->cache.is_cluster ? NODES : 1;
    uint64_t of_worker = 2 * of_worker_to_cache(config, nodes) - to_node(config);
    return config->workers * of_worker + 2 * (nodes - 1);
}

uint64_t file_limits_wanted(const struct config *config)
{
    return file_limits_reserve(config) + coming(config) + config->max_clients +
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
    left -= lesser(coming(config), left / COMING_SHARE);
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
