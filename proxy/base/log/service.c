/* Where no manager has started the process sd_notify() does nothing: there is no address in its
 * environment.
 */
#include "base/log/service.h"

#include <stdbool.h>
#include <systemd/sd-daemon.h>
#include <time.h>

/* A successor is the service now: what this process said of itself would be taken for its word. */
static bool handed_over;

static void notify(const char *state)
{
    if (!handed_over)
        sd_notify(0, state);
}

void service_ready(void)
{
    notify("READY=1\nSTATUS=serving");
}

/* The manager tells the end of this reload from that of an earlier one by this time, which is of
 * CLOCK_MONOTONIC and not of clock_ms() (sd_notify(3)). */
void service_reloading(void)
{
    struct timespec now;
    if (handed_over)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reading the configuration again",
               (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
}

void service_stopping(void)
{
    notify("STOPPING=1\nWATCHDOG_USEC=0\nSTATUS=finishing what is under way");
}

/* What this one says after that is nobody's business. */
void service_hand_over(pid_t process)
{
    sd_notifyf(0, "MAINPID=%d", (int)process);
    handed_over = true;
}

/* Twice as often as it must be, as sd_watchdog_enabled(3) has it. */
void service_alive(uint64_t turn)
{
    static uint64_t told, every_us;
    static int wanted = -1;
    if (wanted < 0)
        wanted = sd_watchdog_enabled(0, &every_us) > 0;
    if (!wanted || turn - told < every_us / 2000)
        return;
    told = turn;
    notify("WATCHDOG=1");
}
