/* Shadow mode's evidence, for whoever thinks of switching enforcement on. */
#ifndef NESTGUARD_SHADOW_SAMPLE_H
#define NESTGUARD_SHADOW_SAMPLE_H

#include "worker/reply/serving.h"

/* The key would have been rejected: some of these are looked up in the database. */
void shadow_sample(struct serving *serving, int keyspace, struct span key);

#endif
