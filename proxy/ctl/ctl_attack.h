/* `nestguard ctl attack`, for people. */
#ifndef NESTGUARD_CTL_ATTACK_H
#define NESTGUARD_CTL_ATTACK_H

#include <jansson.h>
#include <stdio.h>

/* The answer of GET /v1/attack as tables; `window`: "minute" or "hour". What clients call
 * themselves, and their keys, cannot do anything to a terminal. */
void ctl_attack_print(const json_t *body, const char *window, FILE *out);

#endif
