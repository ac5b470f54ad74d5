"""No reply is wrong or old while a guard follows tables that are changed and migrated at random, and
while whatever takes part is killed, paused and restarted. See random_run.py."""
import time

import pytest

from following import follow, synchronous, wait_followed
from parts import MAX_LAG
from random_run import Run
from servers import PATIENCE
from tables import create_tables, make_tables
from waiting import wait_until


@pytest.fixture
def start_run(follow, database, cache, capsys):
    """start_run(slack): what takes part, ready to go."""
    create_tables(database)
    database.execute("ALTER ROLE guard SET logical_decoding_work_mem = '64kB'")
    tables = make_tables(depends=True)
    guard = follow(*({**table.keyspace, "publish": table.publish} for table in tables),
                   max_lag=f"{MAX_LAG * 1000:.0f}ms", cache_timeout="500ms")
    runs = []

    def start(slack):
        runs.append(Run(database, cache, guard, tables, slack))
        return runs[0]

    yield start
    with capsys.disabled():
        for run in runs:
            print(f"\n{run.summary()}")


def check_the_end(run):
    run.wait_guarding()
    wait_followed(run.database)
    end = time.monotonic()

    def has_followed():
        status = run.status()
        return (status and status["stream"]
                and status["stream"]["lag_seconds"] < time.monotonic() - end - 0.1)

    wait_until(has_followed, PATIENCE, run.guard.status)
    run.check_the_end()


def test_no_row_is_denied_for_longer_than_max_lag(start_run):
    run = start_run(MAX_LAG)
    run.go()
    check_the_end(run)


def test_no_row_is_denied_once_its_commit_has_returned(start_run, postgres_server):
    run = start_run(0)
    with synchronous(postgres_server):
        run.go()
    check_the_end(run)
