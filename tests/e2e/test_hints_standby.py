"""Hints where the database is a standby, which knows what it has replayed and no more: filters that are
built from it know nothing of what was being written on its primary by then."""
import pytest

from following import is_possible
from servers import PATIENCE
from standby import value
from test_follow_failover import database, insert, pair
from test_hints import HINT_TTL, is_admitted, outlive_the_ttl
from test_one_server import lagging
from waiting import wait_until


@pytest.fixture
def standing_by(start_guard, database, items, lagging):
    def start(**settings):
        return start_guard(items(), sync="poll", hint_ttl=HINT_TTL, **settings,
                           database=f"postgresql://guard@127.0.0.1:{lagging.port}/{database.name}")
    return start


def write_row(guard, database, n):
    """Committed on the primary before the guard is told."""
    insert(database, n)
    guard.redis().set(f"item:{n}", "new")
    outlive_the_ttl(guard)


def ends_the_hint(guard, database, standby, n):
    """Once it has caught up. Of rows that are written it learns how far it is."""
    value(standby, "SELECT pg_wal_replay_resume()")
    rows = iter(range(n + 1, n + 1000))

    def ends():
        insert(database, next(rows))
        assert is_admitted(guard, f"item:{n}")
        return guard.status()["entries"] == 0
    wait_until(ends, PATIENCE, guard.status)


def test_a_hint_outlives_builds_that_follow_each_other_at_once(standing_by, database):
    guard = standing_by(poll_interval="1h")
    write_row(guard, database, 1000)
    for _ in range(4):
        guard.rebuild()
    assert is_admitted(guard, "item:1000")
    assert not is_possible(guard, "item:5000")


def test_a_hint_outlives_the_polls_of_a_standby_that_says_that_it_is_behind(standing_by, database,
                                                                            lagging):
    guard = standing_by(poll_interval="200ms")
    write_row(guard, database, 1000)
    generation = guard.generation()
    wait_until(lambda: guard.generation() >= generation + 5, PATIENCE, guard.log)
    assert is_admitted(guard, "item:1000")
    ends_the_hint(guard, database, lagging, 1000)
