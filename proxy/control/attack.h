/* Who is asking, as JSON for /v1/attack. */
#ifndef NESTGUARD_CONTROL_ATTACK_H
#define NESTGUARD_CONTROL_ATTACK_H

#include "config/config.h"
#include "traffic/traffic.h"
#include <jansson.h>

json_t *attack_json(const struct traffic *traffic, const struct config *config);

#endif
