/* `nestguard ctl reload`: what became of it, for people. */
#ifndef NESTGUARD_CTL_RELOAD_H
#define NESTGUARD_CTL_RELOAD_H

#include "ctl/ctl_paper.h"

#include <jansson.h>

/* The answer to POST /v1/reload, also when the file was refused. No option counts. */
void ctl_reload_print(const json_t *body, const char *option, const struct ctl_paper *paper);

/* Of an answer to one that was not refused: what was not taken all the same, and why, a new string;
 * or NULL. What needs a restart is taken by that. */
char *ctl_reload_shortfall(const json_t *body);

#endif
