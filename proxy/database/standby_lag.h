/* How far a standby may be behind its primary, as far as it can say. */
#ifndef NESTGUARD_STANDBY_LAG_H
#define NESTGUARD_STANDBY_LAG_H

#include "postgres/pg_session.h"
#include <stdint.h>

/* *ms: whatever the primary had written so long ago, by its clock, the server has replayed;
 * UINT64_MAX: nobody can know; 0 also of a server that does not take the question, as some managed
 * ones do not. That ends a transaction: not within one. 0, or as pg_session_exec() but -EPROTO. */
int standby_lag_ask(uint64_t *ms, struct pg_session *session, struct pg_error *error);

#endif
