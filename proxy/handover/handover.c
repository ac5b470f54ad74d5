/* Sockets travel beside a message of one byte (SCM_RIGHTS, unix(7)): they cannot travel alone, and
 * the byte says whether more of them follow.
 *
 *   AT_ONCE sockets 'm' ─▶ AT_ONCE sockets 'm' ─▶ the rest 'l'
 *
 * The predecessor serves meanwhile and waits for nobody: what its socket does not take at once has
 * failed. The successor has no loop yet, and waits for PATIENCE_S at most with each call.
 */
#include "handover/handover.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    AT_ONCE = 128, /* descriptors in a message; Linux takes 253 */
    PATIENCE_S = 5
};

/* What comes with a message: more of them follow, or it was the last. */
enum { MORE = 'm', LAST = 'l' };

struct name {
    struct sockaddr_un at;
    socklen_t length; /* what counts of it: no zero ends an abstract name */
};

/* FNV-1a (Fowler, Noll, Vo), 64 bits: a path may be longer than a name. Slashes that are doubled
 * and "." say nothing and count for nothing; where ".." leads depends on links, so it stays. */
static unsigned long long hash_on(unsigned long long hash, const char *path)
{
    while (*(path += strspn(path, "/"))) {
        size_t length = strcspn(path, "/");
        bool says_nothing = length == 1 && *path == '.';
        if (!says_nothing)
            hash = (hash ^ '/') * 1099511628211ULL;
        for (size_t i = 0; i < length && !says_nothing; i++)
            hash = (hash ^ (unsigned char)path[i]) * 1099511628211ULL;
        path += length;
    }
    return hash;
}

/* The number is the one of what they say to each other: guards that speak another do not meet. */
static struct name name_by(const char *directory, const char *path)
{
    struct name name = {.at.sun_family = AF_UNIX};
    unsigned long long hash = hash_on(hash_on(14695981039346656037ULL, directory), path);
    int length = snprintf(name.at.sun_path + 1, sizeof name.at.sun_path - 1,
                          "nestguard-1-%u-%016llx", (unsigned)getuid(), hash);
    name.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return name;
}

/* As it is called, and as it really is: the first stays when a link leads elsewhere by now, which
 * is how releases and Kubernetes replace a file; under the second it is found however it is called,
 * and whoever comes before or after finds it that knows this one only. Where no link is they are
 * one. */
static int names_of(const char *file, struct name names[HANDOVER_NAMES], unsigned *count)
{
    char directory[PATH_MAX] = "", real[PATH_MAX];
    if (!realpath(file, real) || (*file != '/' && !getcwd(directory, sizeof directory)))
        return -errno;
    names[0] = name_by(directory, file);
    names[1] = name_by("", real);
    *count =
        memcmp(names[0].at.sun_path, names[1].at.sun_path, sizeof names[0].at.sun_path) ? 2 : 1;
    return 0;
}

/* The system's word for who was at the other end when the connection came about. */
static bool is_ours(int fd, pid_t *process)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != getuid())
        return false;
    *process = peer.pid;
    return true;
}

pid_t handover_peer(int channel)
{
    pid_t process = 0;
    return is_ours(channel, &process) ? process : 0;
}

/* Closes, and gives the status on. */
static int fail(int fd, int status)
{
    close(fd);
    return status;
}

/* Whether the system broke a call off that is to be made again. A call with a limit of time is
 * never begun anew by the system itself, also when the process has no handler for any signal (man 7
 * signal, "by stop signals"): it is enough that somebody stops it and lets it go on, a debugger or
 * the freezer of its container. To make the call again is right whatever it was: broken off, it has
 * sent, received and connected nothing, and the limit holds for the new one. */
static bool broken_off(ssize_t result)
{
    return result < 0 && errno == EINTR;
}

/* ---- the predecessor ---- */

static int bind_to(const struct name *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *)&name->at, name->length) < 0)
        return fail(fd, -errno);
    return fd;
}

/* All or none. Nobody is let in before all can be had: who was asked and ends has hung up. */
int handover_listen(const char *file, int fds[HANDOVER_NAMES])
{
    struct name names[HANDOVER_NAMES];
    unsigned count, bound = 0;
    int status = names_of(file, names, &count);
    while (!status && bound < count) {
        int fd = bind_to(&names[bound]);
        if (fd < 0)
            status = fd;
        else
            fds[bound++] = fd;
    }
    for (unsigned i = 0; i < bound && !status; i++)
        status = listen(fds[i], 4) < 0 ? -errno : 0;
    while (status && bound)
        close(fds[--bound]);
    return status ? status : (int)bound;
}

int handover_accept(int listening)
{
    int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return -EAGAIN;
    return handover_peer(fd) ? fd : fail(fd, -EAGAIN);
}

/* At most AT_ONCE of them, and one byte. None is allowed: then the byte travels alone. */
static int send_some(int channel, const int *fds, unsigned count, char word)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(AT_ONCE * sizeof(int))];
    } control = {0};
    struct iovec data = {&word, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (count) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
        control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS,
                                          .cmsg_len = CMSG_LEN(count * sizeof *fds)};
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof *fds);
    }
    ssize_t sent;
    do
        sent = sendmsg(channel, &message, MSG_NOSIGNAL);
    while (broken_off(sent));
    return sent < 0 ? -errno : 0;
}

int handover_give(int channel, const int *fds, unsigned count)
{
    int status = 0;
    do {
        unsigned some = count < AT_ONCE ? count : AT_ONCE;
        status = send_some(channel, fds, some, some < count ? MORE : LAST);
        fds += some;
        count -= some;
    } while (!status && count);
    return status;
}

/* ---- the successor ---- */

/* Past the most that are wanted they are closed. */
static void keep(const struct cmsghdr *header, int *fds, unsigned *count)
{
    size_t come = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < come; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        if (*count < HANDOVER_SOCKETS_MAX)
            fds[(*count)++] = fd;
        else
            close(fd);
    }
}

/* The word that came with some of them, or a negative errno. */
static int receive_some(int channel, int *fds, unsigned *count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(AT_ONCE * sizeof(int))];
    } control;
    char word;
    struct iovec data = {&word, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    do
        got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
    while (broken_off(got));
    if (got <= 0)
        return got < 0 ? -errno : -ECONNRESET;
    for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each))
        if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SCM_RIGHTS)
            keep(each, fds, count);
    return word;
}

/* All or none: what came before a failure is closed. */
static int receive(int channel, int *fds, unsigned *count)
{
    int word = MORE;
    *count = 0;
    while (word == MORE)
        word = receive_some(channel, fds, count);
    if (word == LAST)
        return 0;
    while (*count)
        close(fds[--*count]);
    return word < 0 ? word : -EPROTO;
}

/* Connected, or a negative errno; a name that nobody listens by is that of no guard. */
static int reach(const struct name *name)
{
    static const struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int status;
    do
        status = connect(fd, (const struct sockaddr *)&name->at, name->length);
    while (broken_off(status));
    if (status < 0)
        return fail(fd, errno == ECONNREFUSED ? -ENOENT : -errno);
    return handover_peer(fd) ? fd : fail(fd, -EPERM);
}

int handover_ask(const char *file, int *fds, unsigned *count)
{
    struct name names[HANDOVER_NAMES];
    unsigned known;
    int status = names_of(file, names, &known), channel = -ENOENT;
    if (status < 0)
        return status;
    for (unsigned i = 0; i < known && channel == -ENOENT; i++)
        channel = reach(&names[i]);
    if (channel < 0)
        return channel;
    status = receive(channel, fds, count);
    return status < 0 ? fail(channel, status) : channel;
}
