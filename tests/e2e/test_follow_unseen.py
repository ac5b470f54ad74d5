"""The log tells of a commit before other transactions see its rows: for as long as it waits for a
synchronous standby, which may be another than the guard. What is read meanwhile is old."""
import concurrent.futures
import contextlib

import pytest

from changes import call
from following import (fill, follow, held_removals, is_possible, name_standbys, wait_followed,
                       wait_purged, wait_until_commits_wait)
from servers import PATIENCE
from waiting import wait_until


@pytest.fixture
def unseen(postgres_server, database):
    """unseen(sql) commits, and returns when that waits; seen() lets others see it."""

    class Unseen:
        def __call__(self, sql):
            name_standbys(postgres_server, "FIRST 2 (nestguard, somebody_else)")
            wait_until_commits_wait(postgres_server)
            self.waiting = pool.submit(database.execute, sql)
            wait_until(lambda: self.waits(sql), PATIENCE, "the commit to wait")

        def waits(self, sql):
            observer.execute("SELECT 1 FROM pg_stat_activity"
                             " WHERE wait_event = 'SyncRep' AND query = %s", (sql,))
            return observer.fetchone()

        def seen(self):
            name_standbys(postgres_server, "")
            self.waiting.result(PATIENCE)

    with contextlib.closing(postgres_server.connect(database.name)) as connection:
        observer = connection.cursor()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            try:
                yield Unseen()
            finally:
                name_standbys(postgres_server, "")


def test_an_absence_that_was_seen_before_is_not_remembered(follow, items, unseen):
    guard = follow(items())
    unseen("INSERT INTO items VALUES (1000, 'new')")
    wait_until(lambda: is_possible(guard, "item:1000"), PATIENCE, "the filter to know")
    assert guard.redis().get("item:1000") is None
    assert not guard.explain("item:1000")["known_absent"]
    unseen.seen()
    assert guard.redis().get("item:1000") == b"new"


@pytest.mark.parametrize("change, now", [
    ("UPDATE items SET payload = 'new' WHERE id = 7", b"new"),
    ("DELETE FROM items WHERE id = 7", None),
    ("TRUNCATE items", None)])
def test_a_value_that_was_loaded_before_does_not_stay(follow, database, cache, items, unseen,
                                                      change, now):
    guard = follow(items())
    fill(guard, cache, "item:7")
    unseen(change)
    wait_purged(cache, "item:7")
    if not change.startswith("TRUNCATE"):  # which nothing can be read beside
        assert guard.redis().get("item:7") in (b"payload 7", None)
        fill(guard, cache, "item:8")  # whatever was to be filled before has been
    unseen.seen()
    wait_followed(database)
    assert guard.redis().get("item:7") == now


def test_what_is_seen_by_now_is_filled_at_the_next_lookups(follow, database, cache, items, unseen):
    """Though nothing else is written."""
    guard = follow(items(), max_lag="60s")
    unseen("UPDATE items SET payload = 'new' WHERE id = 7")
    wait_until(lambda: guard.redis().get("item:7") == b"payload 7", PATIENCE, "the old row")
    unseen.seen()
    fill(guard, cache, "item:7")
    assert cache.client().get("item:7") == b"new"


def test_a_row_that_the_database_does_not_show_yet_is_not_buried(follow, items, unseen):
    guard = follow(items())
    unseen("INSERT INTO items VALUES (1000, 'new')")
    wait_until(lambda: is_possible(guard, "item:1000"), PATIENCE, "the filter to know")
    assert call(guard, "DELETE", "item:1000") == 409
    unseen.seen()
    assert guard.redis().get("item:1000") == b"new"


def test_a_deletion_is_answered_though_the_database_says_no_more_what_is_seen(follow, database, items,
                                                                             unseen):
    guard = follow(items())
    unseen("INSERT INTO items VALUES (1000, 'new')")
    wait_until(lambda: is_possible(guard, "item:1000"), PATIENCE, "the filter to know")
    with contextlib.closing(database.connect()) as connection:
        connection.autocommit = True
        connection.cursor().execute(
            "SET synchronous_commit = local;"
            " REVOKE EXECUTE ON FUNCTION pg_current_wal_insert_lsn() FROM PUBLIC")
    wait_until(lambda: "could not be asked" in guard.log(), PATIENCE, guard.log)
    assert call(guard, "DELETE", "item:1000") == 409
    unseen.seen()
    assert guard.redis().get("item:1000") == b"new"


def test_a_row_that_is_still_shown_is_not_denied(follow, items, unseen):
    guard = follow(items())
    unseen("DELETE FROM items WHERE id = 7")
    wait_until(lambda: held_removals(guard) == 1, PATIENCE, guard.status)
    assert is_possible(guard, "item:7") and guard.redis().get("item:7") == b"payload 7"
    unseen.seen()
    wait_until(lambda: not is_possible(guard, "item:7"), PATIENCE, "the filter to know")
    assert guard.redis().get("item:7") is None
