/* A ring: line number n is at n % LOG_KEPT. */
#include "base/log/log_kept.h"

#include "base/utf8.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct log_entry ring[LOG_KEPT];
static uint64_t newest; /* number of the last line; 0: there was none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void log_stamp(char out[LOG_STAMP])
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(out, LOG_STAMP, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + used, LOG_STAMP - used, ".%03dZ", (int)(now.tv_nsec / 1000000 % 1000));
}

static void copy_cut(char to[LOG_KEPT_TEXT], const char *text)
{
    size_t length = strlen(text);
    size_t cut = length < LOG_KEPT_TEXT ? length : utf8_cut(text, LOG_KEPT_TEXT - 4);
    memcpy(to, text, cut);
    strcpy(to + cut, cut < length ? "..." : "");
}

void log_keep(enum log_level level, const char *text)
{
    pthread_mutex_lock(&lock);
    struct log_entry *entry = &ring[++newest % LOG_KEPT];
    entry->number = newest;
    entry->level = level;
    log_stamp(entry->time);
    copy_cut(entry->text, text);
    pthread_mutex_unlock(&lock);
}

size_t log_kept(uint64_t after, struct log_entry to[LOG_KEPT], uint64_t *last)
{
    size_t count = 0;
    pthread_mutex_lock(&lock);
    uint64_t oldest = newest > LOG_KEPT ? newest - LOG_KEPT : 0;
    for (uint64_t number = after > oldest ? after : oldest; number < newest;)
        to[count++] = ring[++number % LOG_KEPT];
    *last = newest;
    pthread_mutex_unlock(&lock);
    return count;
}
