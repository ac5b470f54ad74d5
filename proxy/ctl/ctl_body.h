/* What a call of `nestguard ctl` sends: a file or standard input, piece by piece, of any length.
 * How far it is shows on standard error, where that is a terminal.
 */
#ifndef NESTGUARD_CTL_BODY_H
#define NESTGUARD_CTL_BODY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CTL_BODY_MINUTES = 10 }; /* so long it may stand still */

struct ctl_body {
    int fd;
    int64_t length; /* -1: not known before its end */
    uint64_t sent;
    uint64_t moved;  /* clock_ms(): a piece was taken */
    bool is_waiting; /* all of it was read, and the answer is waited for */
    int failed;      /* a negative errno of reading */
};

/* NULL or "-": standard input. Waits until there is something of it: whoever writes it may have to
 * think first, and a guard waits for seconds only. 0, or a negative errno. */
int ctl_body_open(struct ctl_body *body, const char *name);

/* The next bytes, as many as there are: 0 at its end, or a negative errno. */
ssize_t ctl_body_read(struct ctl_body *body, char *into, size_t room);

/* For CTL_BODY_MINUTES nothing was taken, or all of it was and there is no answer. */
bool ctl_body_stands_still(const struct ctl_body *body);

void ctl_body_hide(struct ctl_body *body); /* nothing is shown any more */
void ctl_body_close(struct ctl_body *body);

#endif
