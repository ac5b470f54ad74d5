/* To standard error, where a service manager, a container or a terminal takes it from. */
#include "base/log/log.h"

#include "base/log/log_kept.h"
#include "base/log/log_values.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 2047 }; /* bytes of it at most */

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

bool log_is_for_programs(void)
{
    return log_format_now() == LOG_JSON || is_journal();
}

/* Without waiting: whether it was taken. A pipe that can be written to takes PIPE_BUF bytes. */
static bool try_write(const char *line)
{
    size_t length = strlen(line);
    ssize_t sent = send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || errno != ENOTSOCK)
        return sent >= 0;
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (length > PIPE_BUF || poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
        return false;
    return write(STDERR_FILENO, line, length) >= 0;
}

/* journald stamps lines itself, and takes their priority from their beginning. */
static char *text_line(enum log_level level, const char *message)
{
    char when[LOG_STAMP];
    if (is_journal())
        return xasprintf("<%d>%-7s %s\n", priorities[level], log_level_name(level), message);
    log_stamp(when);
    return xasprintf("%s %-7s %s\n", when, log_level_name(level), message);
}

/* The message has what room the rest leaves it. */
static void add_message(json_t *json, const char *message, size_t outside)
{
    size_t used = json_dumpb(json, NULL, 0, JSON_COMPACT) + outside;
    size_t room = used < PIPE_BUF ? PIPE_BUF - used : 0;
    json_object_set_new(json, "message", log_text(message, strlen(message), &room));
}

/* `values` is given up. */
static char *json_line(enum log_level level, const char *event, const char *message, json_t *values)
{
    char prefix[8] = "", when[LOG_STAMP];
    log_stamp(when);
    if (is_journal())
        snprintf(prefix, sizeof prefix, "<%d>", priorities[level]);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:o, s:s}", "time", when, "level", log_level_name(level),
                  "event", event, "values", values, "message", "");
    add_message(json, message, strlen(prefix) + strlen("\n"));
    char *text = json_dumps(json, JSON_COMPACT);
    if (!text)
        abort();
    char *line = xasprintf("%s%s\n", prefix, text);
    free(text);
    json_decref(json);
    return line;
}

/* A new string, in the form that is wanted now, with its end; and its message alone. */
static char *make_line(char message[MESSAGE + 1], enum log_level level, const char *format,
                       va_list list)
{
    va_list again;
    va_copy(again, list);
    if (vsnprintf(message, MESSAGE + 1, format, list) > MESSAGE)
        message[utf8_cut(message, MESSAGE - 1)] = '\0';
    for (char *c = message; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    char *line = log_format_now() == LOG_TEXT
                     ? text_line(level, message)
                     : json_line(level, format, message, log_values(format, again));
    va_end(again);
    return line;
}

static bool try_say(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool try_say(enum log_level level, const char *format, ...)
{
    char message[MESSAGE + 1];
    va_list list;
    va_start(list, format);
    char *line = make_line(message, level, format, list);
    va_end(list);
    bool taken = try_write(line);
    free(line);
    return taken;
}

/* Nobody may wait for whoever does not read the log: a line that is not taken is left out, and the
 * next that is taken tells of it. One call a line, so that those of threads do not mix. */
static void write_line(const char *line)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long lost;
    pthread_mutex_lock(&lock);
    if (lost && try_say(LOG_LEVEL_WARNING, "(%lu lines of log were lost)", lost))
        lost = 0;
    lost += !try_write(line);
    pthread_mutex_unlock(&lock);
}

void log_line(enum log_level level, const char *format, ...)
{
    char message[MESSAGE + 1];
    va_list list;
    if (!log_wants(level))
        return;
    va_start(list, format);
    char *line = make_line(message, level, format, list);
    va_end(list);
    log_keep(level, message);
    write_line(line);
    free(line);
}
