/* What the process tells the service manager that has started it (sd_notify(3)). Where there is
 * none, nothing happens. One thread, once the process serves.
 */
#ifndef NESTGUARD_SERVICE_H
#define NESTGUARD_SERVICE_H

#include <stdint.h>
#include <sys/types.h>

void service_ready(void); /* it serves; also the end of a reload */
void service_reloading(void);
void service_hand_over(pid_t process); /* that one is the service from here on */
void service_stopping(void); /* from here on the manager's own time limit counts, no watchdog */

/* Every thread has had its turn since `turn` (clock_ms()). Tells the watchdog when that is due, and
 * only of turns that are new: a thread that hangs ends in a restart. */
void service_alive(uint64_t turn);

#endif
