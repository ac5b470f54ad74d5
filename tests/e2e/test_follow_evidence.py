"""With `sync: replication`, what the guard finds out by itself: rows that a filter lacks (shadow
mode; the self-check has test_selfcheck.py), that a new filter is nearer than the log's end, and when
a deletion through the control port is over.
"""
import time

import pytest

from following import (fill, follow, insert, is_found, is_possible, paused, senders,
                       wait_followed, wait_generation, wait_purged, wait_removed, wait_state)
from servers import PATIENCE
from untold import RENAMED, named, rename_first  # fixtures, too
from waiting import wait_until


class TestShadowMode:
    def test_the_rows_that_would_be_denied_are_counted(self, follow, database, named):
        guard = follow({**named, "enforce": False})
        rename_first(database)
        wait_until(lambda: guard.redis().get(RENAMED) == b"first"
                   and guard.counter("nestguard_false_rejects_total", "named") > 0, PATIENCE,
                   lambda: f"the finding: {guard.status()}")
        found = guard.keyspace("named")
        assert found["false_rejects"] > 0 and found["shadow_checked"] >= found["false_rejects"]
        assert found["state"] == "guarding" and not found["enforce"]
        assert "keyspace named: " in guard.log() and "would have been rejected" in guard.log()

    def test_what_is_followed_is_found_in_order(self, follow, database, items):
        guard = follow(items(enforce=False))
        for n in range(1000, 1100):
            insert(database, n)
            assert guard.redis().mget(f"item:{n}", f"item:{n + 5000}") == [b"new %d" % n, None]
        wait_until(lambda: guard.redis().get("item:7000") is None
                   and guard.counter("nestguard_shadow_checked_total") >= 3, PATIENCE, "samples")
        assert guard.counter("nestguard_would_reject_total") >= 100
        assert guard.counter("nestguard_false_rejects_total") == 0


class TestCatchingUp:
    def test_a_log_that_does_not_come_is_given_up_for_a_new_generation(self, follow, database,
                                                                       items):
        guard = follow(items(), max_lag="500ms")
        [sender] = senders(database)
        with paused(sender):
            database.execute("INSERT INTO items SELECT n, 'new ' || n"
                             " FROM generate_series(1000, 6000) n")
            began = time.monotonic()
            wait_state(guard, "passing")
            assert time.monotonic() - began < 1.5
            assert is_found(guard, 6000)
            wait_generation(guard, 2)
            assert "bytes of log behind" in guard.log() and "is begun" in guard.log()
            assert is_found(guard, 6000) and not is_possible(guard, "item:7000")
            insert(database, 7000)
            wait_until(lambda: is_found(guard, 7000), PATIENCE, "the row")

    def test_a_short_way_is_caught_up(self, follow, database, items):
        guard = follow(items(), max_lag="500ms")
        [sender] = senders(database)
        with paused(sender):
            insert(database, 1000)
            wait_state(guard, "passing")
        wait_state(guard, "guarding")
        wait_followed(database)
        assert is_found(guard, 1000) and not is_possible(guard, "item:7000")


class TestDeletion:
    """Through the control port."""

    def delete(self, guard, n, query=""):
        answer = guard.control("DELETE", guard.key_path(f"item:{n}") + query)
        assert answer.status_code == 204, answer.text

    def test_with_the_row_holds_until_the_row_is_made_again(self, follow, database, cache, items):
        guard = follow(items())
        for _ in range(10):
            fill(guard, cache, "item:7")
            self.delete(guard, 7, "?row=delete")
            assert database.value("SELECT count(*) FROM items WHERE id = 7") == 0
            assert guard.redis().get("item:7") is None
            wait_purged(cache, "item:7")
            database.execute("INSERT INTO items VALUES (7, 'payload 7')")
            wait_followed(database)
            assert guard.redis().get("item:7") == b"payload 7"
        wait_until(lambda: guard.status()["entries"] == 0, PATIENCE, guard.status)

    def test_takes_one_copy_of_a_key_out_of_the_filter(self, follow, database, items):
        """By its own doing it takes none: the log does."""
        guard = follow(items(false_positive_rate=0.03))
        for n in range(1, 51):
            self.delete(guard, n, "?row=delete")
        wait_removed(guard, database)
        assert guard.keyspace()["filter"]["keys"] == 50
        assert guard.redis().mget([f"item:{n}" for n in range(51, 101)]) == [
            b"payload %d" % n for n in range(51, 101)]

    def test_of_a_row_that_comes_back_while_the_stream_is_lost(self, follow, database, items):
        guard = follow(items())
        self.delete(guard, 7, "?row=delete")
        self.delete(guard, 8, "?row=delete")
        self.delete(guard, 8, "?block=5s")
        database.execute("ALTER ROLE guard NOREPLICATION")
        try:
            [pid] = senders(database)
            database.execute("SELECT pg_terminate_backend(%s)", (pid,))
            wait_state(guard, "passing")
            database.execute("INSERT INTO items VALUES (7, 'new 7'), (8, 'new 8')")
            assert is_found(guard, 7)
        finally:
            database.execute("ALTER ROLE guard REPLICATION")
        wait_generation(guard, 2)
        assert is_found(guard, 7)
        assert guard.redis().get("item:8") is None
        wait_until(lambda: not guard.explain("item:8")["entry"] == "block", PATIENCE, "its end")
        assert is_found(guard, 8)
