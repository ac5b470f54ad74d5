/* One HTTP request of `nestguard ctl` and its answer. */
#ifndef NESTGUARD_CTL_CALL_H
#define NESTGUARD_CTL_CALL_H

#include "base/text/address.h"

#include <stddef.h>

struct ctl_call {
    const struct address *address;
    const char *token; /* NULL: none */
    const char *method, *target;
};

struct ctl_answer {
    long status;
    char *body; /* ends with a zero byte */
    size_t length;
};

/* Waits for the answer, a minute at most. 0, or a negative errno and *error: a new string that says
 * what to look at. The answer is freed with ctl_answer_finish(). */
int ctl_call(struct ctl_answer *out, const struct ctl_call *call, char **error);
void ctl_answer_finish(struct ctl_answer *answer);

#endif
