/* `nestguard ctl top`: what happens now, on a terminal, until q. */
#ifndef NESTGUARD_CTL_TOP_H
#define NESTGUARD_CTL_TOP_H

#include "ctl/ctl_call.h"
#include "ctl/ctl_paper.h"

#include <jansson.h>

/* What a screen is made from; rates are known from the second status on. */
struct ctl_moment {
    const json_t *status,
        *attack;          /* answers of GET /v1/status and /v1/attack; attack may be NULL */
    const json_t *before; /* the status `seconds` earlier, or NULL */
    double seconds;
};

/* All lines, however many. */
void ctl_top_print(const struct ctl_moment *moment, const struct ctl_paper *paper);

/* Shows it anew each second until q, ^C or a signal, asking by `call` but for its target and its
 * time limit. Returns the exit status: 2 when there is no terminal. */
int ctl_top_run(const struct ctl_call *call);

#endif
