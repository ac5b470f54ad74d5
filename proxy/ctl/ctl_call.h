/* One HTTP request of `nestguard ctl` and its answer. */
#ifndef NESTGUARD_CTL_CALL_H
#define NESTGUARD_CTL_CALL_H

#include "base/text/address.h"
#include "ctl/ctl_body.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* What is asked of whom; nothing of it is copied. */
struct ctl_call {
    const struct address *address; /* TCP or a unix socket's */
    const char *token;             /* NULL: none */
    const char *method, *target;   /* "GET"; path and query, escaped as URLs are */
    unsigned seconds;      /* for all of it; 0: a minute; with a body, as long as it moves */
    struct ctl_body *body; /* what is sent; NULL: nothing */
};

struct ctl_answer {
    long status; /* of HTTP: 200, 409, ... */
    char *body;  /* ends with a zero byte, which does not count; never NULL */
    size_t length;
};

/* Waits for the answer. 0, or a negative errno and *error: a new string that says
 * what to look at. An answer of any status is one, and is freed with ctl_answer_finish(); after a
 * failure there is nothing to free but the error. */
int ctl_call(struct ctl_answer *out, const struct ctl_call *call, char **error);
void ctl_answer_finish(struct ctl_answer *answer);

/* A status of 200 to 299. */
bool ctl_answer_is_success(const struct ctl_answer *answer);

/* The JSON of a call that succeeds, a new reference; else NULL and *error as above, or in the
 * guard's own words. */
json_t *ctl_ask(const struct ctl_call *call, char **error);

#endif
