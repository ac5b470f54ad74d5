/* Two things are known without more rights than any role has:
 *
 *   all received is replayed,   ─▶ nothing is missing but what it has not heard of: it notices when
 *   by a receiver at work          nothing comes for wal_receiver_timeout
 *   and always                  ─▶ nothing that was written before the last commit, which says when
 *                                  it was: though replay be paused, delayed or held up by a query
 *
 * The time of the last commit alone would do, but where nobody writes it gets older and older.
 */
#include "database/standby_lag.h"

#include "database/session_value.h"

#include <errno.h>
#include <stdlib.h>

/* What was received is asked before what was replayed, which may go on meanwhile. LEAST takes no
 * account of NULL. */
static const char sql[] =
    "SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN 0 ELSE LEAST("
    "CASE WHEN timeout.ms > 0 AND EXISTS (SELECT FROM pg_catalog.pg_stat_wal_receiver)"
    " AND pg_catalog.pg_last_wal_receive_lsn() = pg_catalog.pg_last_wal_replay_lsn()"
    " THEN timeout.ms END,"
    " pg_catalog.ceil(1000 * extract(epoch FROM pg_catalog.clock_timestamp()"
    " - pg_catalog.pg_last_xact_replay_timestamp()))::bigint) END"
    " FROM (SELECT setting::bigint AS ms FROM pg_catalog.pg_settings"
    " WHERE name = 'wal_receiver_timeout') AS timeout";

/* NULL: nothing is received, and no commit was replayed since the server came up. */
static uint64_t read_ms(const char *text)
{
    if (!text || !*text)
        return UINT64_MAX;
    long long ms = strtoll(text, NULL, 10);
    return ms > 0 ? (uint64_t)ms : 0; /* less: the clocks of the two differ */
}

int standby_lag_ask(uint64_t *ms, struct pg_session *session, struct pg_error *error)
{
    char *text = NULL;
    int status = session_text(&text, session, sql, NULL, error);
    *ms = status ? 0 : read_ms(text);
    free(text);
    return status == -EPROTO ? 0 : status;
}
