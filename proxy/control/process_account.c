/* As client libraries of Prometheus read it, mostly from proc(5). What the system does not tell
 * stays 0: a guard without /proc is a guard all the same.
 */
#include "control/process_account.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* The first two of proc(5)'s statm, in pages. */
static void read_memory(struct process_account *account)
{
    unsigned long long size, resident;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%llu %llu", &size, &resident) == 2) {
        account->virtual_bytes = size * page;
        account->resident_bytes = resident * page;
    }
    if (file)
        fclose(file);
}

/* Without the two that name the folder itself and the one above, and the one that is read here. */
static uint64_t count_files(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count > 3 ? count - 3 : 0;
}

/* The 22nd of proc(5)'s stat, in ticks since the boot. */
static double start_time(void)
{
    static double started;
    struct timespec now, uptime;
    unsigned long long ticks = 0;
    FILE *file = started > 0 ? NULL : fopen("/proc/self/stat", "re");
    if (!file)
        return started;
    /* The name, in brackets, may hold anything but is cut to 15 bytes. */
    if (fscanf(file,
               "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
               "%*d %*d %llu",
               &ticks) == 1 &&
        clock_gettime(CLOCK_REALTIME, &now) == 0 && clock_gettime(CLOCK_BOOTTIME, &uptime) == 0)
        started =
            (double)(now.tv_sec - uptime.tv_sec) + (double)ticks / (double)sysconf(_SC_CLK_TCK);
    fclose(file);
    return started;
}

struct process_account process_account(void)
{
    struct process_account account = {.start_time = start_time()};
    struct rusage usage;
    struct rlimit files;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        account.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        account.max_files = files.rlim_cur;
    read_memory(&account);
    account.open_files = count_files();
    return account;
}
