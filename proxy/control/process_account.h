/* What the system says of this process. */
#ifndef NESTGUARD_PROCESS_ACCOUNT_H
#define NESTGUARD_PROCESS_ACCOUNT_H

#include <stdint.h>

struct process_account {
    double cpu_seconds;                                 /* user and system, of all threads */
    double start_time;                                  /* seconds since 1970 */
    uint64_t resident_bytes, virtual_bytes, open_files; /* 0: not known, as without /proc */
    uint64_t max_files; /* that it may have open at once: the soft limit */
};

/* As of now, but for the start. The keeper's thread: it remembers when the process began. */
struct process_account process_account(void);

#endif
