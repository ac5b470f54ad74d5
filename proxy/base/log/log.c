/* To standard error, where a service manager, a container or a terminal takes it from. */
#include "base/log/log.h"

#include "base/log/log_kept.h"
#include "base/log/log_values.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static const int priorities[] = {LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR};

/* systemd names the stream that it gave the service ("device:inode"); it may lead elsewhere by now.
 */
static bool is_journal(void)
{
    const char *named = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat error;
    return named && sscanf(named, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &error) == 0 && error.st_dev == device && error.st_ino == inode;
}

/* Without waiting: whether it was taken. A pipe that can be written to takes PIPE_BUF bytes. */
static bool try_write(struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    ssize_t sent = sendmsg(STDERR_FILENO, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || errno != ENOTSOCK)
        return sent >= 0;
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += parts[i].iov_len;
    if (length > PIPE_BUF || poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
        return false;
    return writev(STDERR_FILENO, parts, (int)count) >= 0;
}

/* Nobody may wait for whoever does not read the log: a line that is not taken is left out, and the
 * next that is taken tells of it. One call a line, so that those of threads do not mix. */
static void write_line(const char *prefix, const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long lost;
    char end[] = "\n", said[64];
    struct iovec parts[] = {{.iov_base = (void *)(uintptr_t)prefix, .iov_len = strlen(prefix)},
                            {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)},
                            {.iov_base = end, .iov_len = 1}};
    pthread_mutex_lock(&lock);
    if (lost) {
        int length = snprintf(said, sizeof said, "(%lu lines of log were lost)\n", lost);
        struct iovec whole = {.iov_base = said, .iov_len = (size_t)length};
        lost = try_write(&whole, 1) ? 0 : lost;
    }
    lost += !try_write(parts, 3);
    pthread_mutex_unlock(&lock);
}

/* journald stamps lines itself, and takes their priority from their beginning. */
static void write_text(enum log_level level, bool journal, const char *line)
{
    char prefix[64], when[LOG_STAMP];
    if (journal) {
        snprintf(prefix, sizeof prefix, "<%d>%-7s ", priorities[level], log_level_name(level));
    } else {
        log_stamp(when);
        snprintf(prefix, sizeof prefix, "%s %-7s ", when, log_level_name(level));
    }
    write_line(prefix, line);
}

/* `values` is given up. */
static void write_json(enum log_level level, const char *event, const char *line, json_t *values)
{
    char prefix[8] = "", when[LOG_STAMP];
    log_stamp(when);
    if (is_journal())
        snprintf(prefix, sizeof prefix, "<%d>", priorities[level]);
    json_t *json =
        json_pack("{s:s, s:s, s:o, s:o, s:o}", "time", when, "level", log_level_name(level),
                  "event", log_text(event), "values", values, "message", log_text(line));
    char *text = json_dumps(json, JSON_COMPACT);
    if (!text)
        abort();
    write_line(prefix, text);
    free(text);
    json_decref(json);
}

void log_line(enum log_level level, const char *format, ...)
{
    char line[2048];
    va_list list;
    if (!log_wants(level))
        return;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    log_keep(level, line);
    if (log_format_now() == LOG_TEXT) {
        write_text(level, is_journal(), line);
        return;
    }
    va_start(list, format);
    write_json(level, format, line, log_values(format, list));
    va_end(list);
}
