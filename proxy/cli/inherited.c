/* Two may have bound sockets for us, and one is asked after the other:
 *
 *   the predecessor ─ gives ─▶ its sockets, and a channel to it
 *        └─ is none, or gives none ─▶ the service manager's, of which the environment tells
 *
 * The predecessor's come first, for in their queues clients are waiting now.
 */
#include "cli/inherited.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "handover/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* The manager goes on holding its socket when this process has ended, and whoever serves by then
 * must know that, too, though it had the socket from a predecessor, or from that one's. So the
 * socket itself keeps it: all who have it see the mark, programs before this one and after it as
 * well. An option that says nothing of a unix socket that listens, and that its connections do not
 * inherit. */
enum { MARK = 2 }; /* of SO_RCVLOWAT, which is 1 */

static void mark(int fd)
{
    static const int value = MARK;
    int domain = AF_UNSPEC;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value);
}

bool inherited_is_managers(int fd)
{
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, &size) == 0 && value == MARK;
}

/* A child of ours is not to take them for its own: the environment forgets them. They are made as
 * address_listen() would have made them: a manager's may be blocking. */
static void take_from_manager(struct inherited *inherited)
{
    int count = sd_listen_fds(true);
    if (count > HANDOVER_SOCKETS_MAX)
        log_warning("the service manager gives %d sockets: no more than %d are taken", count,
                    HANDOVER_SOCKETS_MAX);
    for (int i = 0; i < count; i++) {
        int fd = SD_LISTEN_FDS_START + i;
        if (i >= HANDOVER_SOCKETS_MAX) {
            close(fd);
            continue;
        }
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        mark(fd);
        inherited->fds[inherited->count++] = fd;
    }
}

/* That nobody serves by this file is an ordinary start. From one who serves and gives nothing this
 * process takes nothing: it ends at its ports, if those are taken. */
static void take_from_predecessor(struct inherited *inherited, const char *file)
{
    inherited->predecessor = handover_ask(file, inherited->fds, &inherited->count);
    if (inherited->predecessor >= 0)
        return;
    inherited->count = 0;
    if (inherited->predecessor != -ENOENT)
        log_warning("the guard that serves by this file gives its sockets to nobody now: %s",
                    strerror(-inherited->predecessor));
    inherited->predecessor = -1;
}

void inherited_open(struct inherited *inherited, const char *file)
{
    *inherited = (struct inherited){.fds = xcalloc(HANDOVER_SOCKETS_MAX, sizeof(int))};
    take_from_predecessor(inherited, file);
    if (inherited->predecessor < 0)
        take_from_manager(inherited);
}

int inherited_take(struct inherited *inherited, const struct address *address)
{
    for (unsigned i = 0; i < inherited->count; i++)
        if (address_is_bound(address, inherited->fds[i])) {
            int fd = inherited->fds[i];
            inherited->fds[i] = inherited->fds[--inherited->count];
            return fd;
        }
    return -1;
}

void inherited_finish(struct inherited *inherited)
{
    for (unsigned i = 0; i < inherited->count; i++)
        close(inherited->fds[i]);
    if (inherited->predecessor >= 0)
        close(inherited->predecessor);
    free(inherited->fds);
}
