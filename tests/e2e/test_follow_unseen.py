"""The log tells of a commit before other transactions see its rows: for as long as it waits for a
synchronous standby, which may be another than the guard. What is loaded meanwhile is old."""
import concurrent.futures

import os

import pytest

from following import fill, follow, is_possible, wait_followed, wait_purged
from servers import PATIENCE
from waiting import wait_until

# Its set-up now and then waits in vain for the commit to wait; not yet fit to run by itself.
pytestmark = pytest.mark.skipif(not os.environ.get("NESTGUARD_SECONDS"),
                                reason="NESTGUARD_SECONDS=20 runs it")


@pytest.fixture
def unseen(postgres_server, database):
    """unseen(sql) commits, and returns when the log has told of it; seen() lets others see it."""

    class Unseen:
        def __call__(self, sql):
            names("FIRST 2 (nestguard, somebody_else)")
            self.waiting = pool.submit(database.execute, sql)
            wait_until(lambda: waits(observer), PATIENCE, "the commit to wait")

        def seen(self):
            names("")
            self.waiting.result(PATIENCE)

    def names(value):
        observer.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{value}'")
        observer.execute("SELECT pg_reload_conf()")
        wait_until(lambda: setting(observer) == value, PATIENCE, "the setting")

    connection = postgres_server.connect(database.name)
    observer = connection.cursor()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield Unseen()
        names("")
    connection.close()


def setting(cursor):
    cursor.execute("SHOW synchronous_standby_names")
    return cursor.fetchone()[0]


def waits(cursor):
    cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    return cursor.fetchone()[0] > 0


def test_an_absence_that_was_seen_before_is_not_remembered(follow, database, items, unseen):
    guard = follow(items())
    unseen("INSERT INTO items VALUES (1000, 'new')")
    wait_until(lambda: is_possible(guard, "item:1000"), PATIENCE, "the filter to know")
    assert guard.redis().get("item:1000") is None
    unseen.seen()
    assert guard.redis().get("item:1000") == b"new"


@pytest.mark.parametrize("change, now", [("UPDATE items SET payload = 'new' WHERE id = 7", b"new"),
                                         ("DELETE FROM items WHERE id = 7", None)])
def test_a_value_that_was_loaded_before_does_not_stay(follow, database, cache, items, unseen,
                                                      change, now):
    guard = follow(items())
    fill(guard, cache, "item:7")
    unseen(change)
    wait_purged(cache, "item:7")
    assert guard.redis().get("item:7") in (b"payload 7", None)
    fill(guard, cache, "item:8")  # whatever was to be filled before has been
    unseen.seen()
    wait_followed(database)
    wait_until(lambda: guard.redis().get("item:7") == now, PATIENCE, "the row as it is now")
