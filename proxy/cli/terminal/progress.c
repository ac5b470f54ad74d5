/* Two kinds of work that takes its time, and one line of the terminal for both:
 *
 *   progress_show()         ─▶ the work comes by and says how far it is
 *   progress_wait_begin()   ─▶ it hangs in one call: a thread of its own counts the seconds
 *
 * Standard error, so that what is printed for programs stays clean; nothing where that is a file.
 */
#include "cli/terminal/progress.h"

#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

/* Between two lines; and how long somebody waits before he is told so. */
enum { EVERY_MS = 100, PATIENCE_S = 2 };

#define SECOND_NS UINT64_C(1000000000)

static uint64_t shown_at; /* clock_ms(); 0: nothing is shown */

/* What is measured: since `began` it has come from `first`, which is more than 0 where somebody
 * else had done a part before. */
static struct {
    const char *what;
    uint64_t began, first;
} course;

/* A rate that is not a second old says little. */
static void print_rate(uint64_t now, uint64_t done, uint64_t total)
{
    double seconds = (double)(now - course.began) / 1000;
    double rate = (double)(done - course.first) / seconds;
    if (seconds < 1 || rate <= 0)
        return;
    fprintf(stderr, ", %.0f a second", rate);
    if (total > done)
        fprintf(stderr, ", %.0f s left", (double)(total - done) / rate);
}

void progress_show(const char *what, uint64_t done, uint64_t total)
{
    uint64_t now = clock_ms();
    if (!course.what || strcmp(course.what, what) != 0 || done < course.first) {
        course.what = what;
        course.began = now;
        course.first = done;
    }
    if (now - shown_at < EVERY_MS || !isatty(STDERR_FILENO))
        return;
    shown_at = now;
    fprintf(stderr, "\r\033[K%s: %llu", what, (unsigned long long)done);
    if (total)
        fprintf(stderr, " of %llu (%.0f %%)", (unsigned long long)total,
                100 * (double)done / (double)total);
    print_rate(now, done, total);
    fflush(stderr);
}

void progress_end(void)
{
    if (shown_at)
        fputs("\r\033[K", stderr);
    shown_at = 0;
    course.what = NULL;
}

/* ---- waiting ---- */

/* The thread lives from begin to end, and the lock guards `is_over`: nothing else changes while it
 * lives. Without a terminal there is no thread. */
static struct {
    const char *what;
    bool shows, is_over; /* the thread is there; and is to end */
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t over;
} wait;

static void show_waiting(void *arg)
{
    (void)arg;
    uv_mutex_lock(&wait.lock);
    for (unsigned seconds = 1; !wait.is_over; seconds++) {
        uint64_t until = uv_hrtime() + SECOND_NS, now;
        while (!wait.is_over && (now = uv_hrtime()) < until)
            uv_cond_timedwait(&wait.over, &wait.lock, until - now);
        if (wait.is_over || seconds < PATIENCE_S)
            continue;
        fprintf(stderr, "\r\033[K%s: %u s", wait.what, seconds);
        fflush(stderr);
    }
    uv_mutex_unlock(&wait.lock);
}

void progress_wait_begin(const char *what)
{
    wait.what = what;
    wait.is_over = false;
    wait.shows = isatty(STDERR_FILENO);
    if (!wait.shows)
        return;
    uv_mutex_init(&wait.lock);
    uv_cond_init(&wait.over);
    wait.shows = uv_thread_create(&wait.thread, show_waiting, NULL) == 0;
}

void progress_wait_end(void)
{
    if (!wait.shows)
        return;
    uv_mutex_lock(&wait.lock);
    wait.is_over = true;
    uv_cond_signal(&wait.over);
    uv_mutex_unlock(&wait.lock);
    uv_thread_join(&wait.thread);
    uv_cond_destroy(&wait.over);
    uv_mutex_destroy(&wait.lock);
    fputs("\r\033[K", stderr);
}
