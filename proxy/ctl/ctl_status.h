/* `nestguard ctl status`, for people. */
#ifndef NESTGUARD_CTL_STATUS_H
#define NESTGUARD_CTL_STATUS_H

#include "ctl/ctl_paper.h"

#include <jansson.h>

/* The answer of GET /v1/status: what a person looks for first, no more than a screen of it. */
void ctl_status_print(const json_t *body, const struct ctl_paper *paper);

/* One line of it that `top` has, too: "nestguard 0.2.0, up 3 h 12 m, ...". */
void ctl_status_print_head(const json_t *body, const struct ctl_paper *paper);

/* The state of a keyspace, in its colour: "guarding" is green, "loading" yellow, all others are
 * red. In a field of this width. */
void ctl_status_print_state(const json_t *keyspace, int width, const struct ctl_paper *paper);

/* As wide as the longest name of a keyspace, from 10 to 40 columns. */
int ctl_status_name_width(const json_t *body);

/* The member of an object as a number, 0 where there is none. */
double ctl_number(const json_t *of, const char *name);

#endif
