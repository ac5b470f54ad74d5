/* `nestguard ctl attack`, for people. */
#ifndef NESTGUARD_CTL_ATTACK_H
#define NESTGUARD_CTL_ATTACK_H

#include "ctl/ctl_paper.h"

#include <jansson.h>

/* The answer of GET /v1/attack as tables; `window`: "minute" or "hour". */
void ctl_attack_print(const json_t *body, const char *window, const struct ctl_paper *paper);

#endif
