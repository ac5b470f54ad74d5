#include "ctl/ctl_body.h"

#include "base/clock.h"
#include "cli/terminal/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From where it stands: a shell may have read some of standard input. */
static int find_length(struct ctl_body *body)
{
    struct stat status;
    if (fstat(body->fd, &status))
        return -errno;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    off_t at = lseek(body->fd, 0, SEEK_CUR);
    body->length = -1;
    if (S_ISREG(status.st_mode) && at >= 0)
        body->length = status.st_size > at ? (int64_t)(status.st_size - at) : 0;
    return 0;
}

int ctl_body_open(struct ctl_body *body, const char *name)
{
    bool is_input = !name || !strcmp(name, "-");
    *body = (struct ctl_body){.fd = is_input ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC)};
    int status = body->fd < 0 ? -errno : find_length(body);
    if (status < 0) {
        ctl_body_close(body);
        return status;
    }
    struct pollfd file = {.fd = body->fd, .events = POLLIN};
    while (poll(&file, 1, -1) < 0 && errno == EINTR)
        ;
    body->moved = clock_ms();
    return 0;
}

/* libcurl does not ask for more than the length that it was told. */
static void show(struct ctl_body *body, size_t got)
{
    bool has_length = body->length >= 0;
    body->sent += got;
    if (got && !(has_length && body->sent >= (uint64_t)body->length)) {
        progress_show("bytes sent", body->sent, has_length ? (uint64_t)body->length : 0);
    } else if (!body->is_waiting) {
        body->is_waiting = true;
        progress_end();
        progress_wait_begin("all is sent, waiting for the answer");
    }
}

ssize_t ctl_body_read(struct ctl_body *body, char *into, size_t room)
{
    ssize_t got;
    do {
        got = read(body->fd, into, room);
    } while (got < 0 && errno == EINTR);
    body->moved = clock_ms();
    if (got < 0) {
        body->failed = -errno;
        return body->failed;
    }
    show(body, (size_t)got);
    return got;
}

bool ctl_body_stands_still(const struct ctl_body *body)
{
    return clock_ms() - body->moved > UINT64_C(60000) * CTL_BODY_MINUTES;
}

void ctl_body_hide(struct ctl_body *body)
{
    progress_end();
    if (body->is_waiting)
        progress_wait_end();
    body->is_waiting = false;
}

void ctl_body_close(struct ctl_body *body)
{
    ctl_body_hide(body);
    if (body->fd > STDIN_FILENO)
        close(body->fd);
    body->fd = -1;
}
