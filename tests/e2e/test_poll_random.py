"""No row that was there before the filter in force was begun is denied while tables are changed and
migrated at random, and while whatever takes part is killed, paused and restarted; and no value is
older than its time to live. See random_run.py."""
import pytest

from histories import NEVER
from random_run import Run
from tables import create_tables, make_tables

TTL = 1
# A value may be on its way into the cache: load_timeout, and the longest pause of one that takes it.
MAX_AGE = TTL + 2 + 1.2 + 0.8


@pytest.fixture
def run(start_guard, database, cache, capsys):
    create_tables(database)
    tables = make_tables()
    guard = start_guard(*({**table.keyspace, "ttl": f"{TTL}s"} for table in tables), sync="poll",
                        poll_interval="2s", cache_timeout="500ms")
    made = Run(database, cache, guard, tables, NEVER, MAX_AGE)
    yield made
    with capsys.disabled():
        print(f"\n{made.summary()}")


def test_no_row_is_denied_that_was_there_before_the_filter(run):
    run.go()
    run.wait_guarding()
    run.guard.rebuild()
    run.check_the_end()
