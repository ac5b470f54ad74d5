/* address_listen(): sockets for the ports that we offer.
 *
 * Workers share a TCP port with SO_REUSEPORT. That option would also let us slip in beside a
 * process that is there already and take half of its clients, so a socket without it asks first.
 */
#include "base/text/address.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct endpoint {
    struct sockaddr_storage at;
    socklen_t length;
};

/* The first address of a name is taken: the one that the system prefers. */
static int resolve(const struct address *address, struct endpoint *out)
{
    struct addrinfo *found, hints = {.ai_family = AF_UNSPEC,
                                     .ai_socktype = SOCK_STREAM,
                                     .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)address->port);
    int status = getaddrinfo(address->host, port, &hints, &found);
    if (status == EAI_SYSTEM)
        return errno ? -errno : -EADDRNOTAVAIL;
    if (status)
        return status == EAI_MEMORY ? -ENOMEM : -EADDRNOTAVAIL;
    memcpy(&out->at, found->ai_addr, found->ai_addrlen);
    out->length = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int set_option(int fd, int level, int option)
{
    int on = 1;
    return setsockopt(fd, level, option, &on, sizeof on) ? -errno : 0;
}

/* IPV6_V6ONLY: [::] means the same on every machine, and 0.0.0.0 can be listened on beside it. */
static int set_options(int fd, int family, bool shared)
{
    /* A restart need not wait for the last run's connections to fade out. */
    int status = set_option(fd, SOL_SOCKET, SO_REUSEADDR);
    if (!status && shared)
        status = set_option(fd, SOL_SOCKET, SO_REUSEPORT);
    if (!status && family == AF_INET6)
        status = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    return status;
}

/* A bound socket, or a negative errno. */
static int open_bound(const struct endpoint *endpoint, bool shared)
{
    int family = endpoint->at.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int status = family == AF_UNIX ? 0 : set_options(fd, family, shared);
    if (!status && bind(fd, (const struct sockaddr *)&endpoint->at, endpoint->length))
        status = -errno;
    if (!status)
        return fd;
    close(fd);
    return status;
}

static void close_all(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

/* Finds strangers: 0 when nobody listens there. Port 0 becomes the port that the system chose. */
static int try_endpoint(struct endpoint *endpoint)
{
    int fd = open_bound(endpoint, false);
    if (fd < 0)
        return fd;
    int status = 0;
    if (getsockname(fd, (struct sockaddr *)&endpoint->at, &endpoint->length))
        status = -errno;
    close(fd);
    return status;
}

static int listen_tcp(const struct address *address, int *fds, unsigned count)
{
    struct endpoint endpoint = {.length = 0};
    int status = resolve(address, &endpoint);
    if (!status)
        status = try_endpoint(&endpoint);
    for (unsigned i = 0; !status && i < count; i++) {
        fds[i] = open_bound(&endpoint, count > 1);
        if (fds[i] < 0) {
            status = fds[i];
            close_all(fds, i);
        }
    }
    return status;
}

/* What the file in a socket's place is: 0 nothing or, with *abandoned, a socket that nobody listens
 * on; else a negative errno. */
static int look_at_place(const struct sockaddr_un *at, bool *abandoned)
{
    struct stat file;
    *abandoned = false;
    if (lstat(at->sun_path, &file))
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(file.st_mode))
        return -EEXIST;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int failed = connect(fd, (const struct sockaddr *)at, sizeof *at) ? errno : 0;
    close(fd);
    if (failed == 0 || failed == EAGAIN) /* EAGAIN: its queue of clients is full */
        return -EADDRINUSE;
    if (failed == EPROTOTYPE) /* a datagram socket of somebody else's */
        return -EEXIST;
    *abandoned = failed == ECONNREFUSED;
    return *abandoned || failed == ENOENT ? 0 : -failed;
}

static int clear_place(const struct sockaddr_un *at)
{
    bool abandoned;
    int status = look_at_place(at, &abandoned);
    return !status && abandoned && unlink(at->sun_path) ? -errno : status;
}

static int name_socket(struct sockaddr_un *out, const char *path)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof out->sun_path)
        return -ENAMETOOLONG;
    strcpy(out->sun_path, path);
    return 0;
}

/* Workers share one unix socket: there is nothing like SO_REUSEPORT for them. fds[0] is given. */
static int duplicate(int *fds, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        fds[i] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
        if (fds[i] < 0) {
            int status = -errno;
            close_all(fds, i);
            return status;
        }
    }
    return 0;
}

/* A file may appear between the look and the bind(); then bind() fails, as it should. */
static int listen_unix(const char *path, int *fds, unsigned count)
{
    struct sockaddr_un at;
    struct endpoint endpoint = {.length = sizeof at};
    int status = name_socket(&at, path);
    memcpy(&endpoint.at, &at, sizeof at);
    if (!status)
        status = clear_place(&at);
    if (status)
        return status;
    fds[0] = open_bound(&endpoint, false);
    return fds[0] < 0 ? fds[0] : duplicate(fds, count);
}

int address_listen(const struct address *address, int *fds, unsigned count)
{
    if (count == 0)
        return 0;
    return address->path ? listen_unix(address->path, fds, count) : listen_tcp(address, fds, count);
}

bool address_is_bound(const struct address *address, int fd)
{
    struct endpoint wanted = {.length = 0}, found = {.length = sizeof found.at};
    if (getsockname(fd, (struct sockaddr *)&found.at, &found.length))
        return false;
    if (address->path)
        return found.at.ss_family == AF_UNIX &&
               strcmp(((const struct sockaddr_un *)&found.at)->sun_path, address->path) == 0;
    if (resolve(address, &wanted) || wanted.at.ss_family != found.at.ss_family)
        return false;
    const struct sockaddr_in *a = (const struct sockaddr_in *)&wanted.at,
                             *b = (const struct sockaddr_in *)&found.at;
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&wanted.at,
                              *b6 = (const struct sockaddr_in6 *)&found.at;
    if (found.at.ss_family == AF_INET)
        return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
    return a6->sin6_port == b6->sin6_port &&
           memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
}

int address_try(const struct address *address)
{
    struct endpoint endpoint = {.length = 0};
    struct sockaddr_un at;
    bool abandoned;
    int status = address->path ? name_socket(&at, address->path) : resolve(address, &endpoint);
    if (status)
        return status;
    return address->path ? look_at_place(&at, &abandoned) : try_endpoint(&endpoint);
}
