/* The C library of Debian 12 has no such functions.
 */
#include "base/slice.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/sched/types.h, whose name clashes with newer C libraries' */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period; /* runtime: the slice, of the ordinary policies */
};

/* Of a thread that somebody has put under another policy, nothing is changed. */
void slice_take(unsigned microseconds)
{
    struct attributes wanted = {0};
    if (syscall(SYS_sched_getattr, 0, &wanted, sizeof wanted, 0) < 0 ||
        wanted.policy != SCHED_OTHER)
        return;
    wanted.runtime = (uint64_t)microseconds * 1000;
    (void)syscall(SYS_sched_setattr, 0, &wanted, 0);
}
