"""With `sync: replication`, what happens to the stream, to PostgreSQL, to Redis and to the guard
itself never makes it reject a row for longer than max_lag, and it comes back to guarding by itself.
"""
import contextlib
import threading
import time

import pytest

from following import (fill, follow, insert, is_found, is_possible, publish, senders, slots,
                       wait_followed, wait_generation, wait_purged, wait_removed, wait_state)
from servers import PATIENCE
from waiting import wait_until


class TestStream:
    def test_a_lost_one_leads_to_a_new_generation(self, follow, database, items):
        guard = follow(items())
        for number in range(1, 4):
            [pid] = senders(database)
            assert database.value("SELECT pg_terminate_backend(%s)", (pid,))
            insert(database, 1000 + number)
            wait_generation(guard, number + 1)
            assert is_found(guard, 1000 + number)
            assert guard.redis().get("item:5000") is None
            assert not is_possible(guard, "item:5000")

    def test_while_it_is_lost_lookups_pass(self, follow, database, items):
        guard = follow(items())
        database.execute("ALTER ROLE guard NOREPLICATION")
        try:
            [pid] = senders(database)
            assert database.value("SELECT pg_terminate_backend(%s)", (pid,))
            found = wait_state(guard, "passing")
            assert found["reason"]
            insert(database, 1000)
            assert is_found(guard, 1000)
            assert guard.redis().get("item:5000") is None
            assert guard.counter("nestguard_loads_total", result="absent") == 1
            wait_until(lambda: guard.status()["last_build_error"], PATIENCE, "the error")
        finally:
            database.execute("ALTER ROLE guard REPLICATION")
        wait_generation(guard, 2)
        assert is_found(guard, 1000) and not is_possible(guard, "item:5000")

    def test_what_changed_while_it_was_lost_leaves_the_cache(self, follow, database, cache, items):
        guard = follow(items())
        fill(guard, cache, "item:7", "item:8", "item:9")
        database.execute("ALTER ROLE guard NOREPLICATION")
        try:
            [pid] = senders(database)
            assert database.value("SELECT pg_terminate_backend(%s)", (pid,))
            wait_state(guard, "passing")
            database.execute("UPDATE items SET payload = 'new' WHERE id = 7; "
                             "DELETE FROM items WHERE id = 8")
        finally:
            database.execute("ALTER ROLE guard REPLICATION")
        wait_generation(guard, 2)
        wait_purged(cache, "item:7", "item:8")
        assert guard.redis().mget("item:7", "item:8", "item:9") == [b"new", None, b"payload 9"]

    def test_a_row_that_comes_back_while_it_is_lost_is_no_deleted_one(self, follow, database,
                                                                      items):
        guard = follow(items())
        with not_replicating(guard, database):
            database.execute("DELETE FROM items WHERE id = 7")
            assert guard.control("DELETE", guard.key_path("item:7")).status_code == 204
            database.execute("INSERT INTO items VALUES (7, 'back')")
        wait_generation(guard, 2)
        assert guard.redis().get("item:7") == b"back"

    def test_none_is_left_behind(self, follow, database, items):
        guard = follow(items())
        assert slots(database) == 1
        guard.stop()
        wait_until(lambda: slots(database) == 0, PATIENCE, "the slot to go")
        guard.start()
        assert slots(database) == 1
        guard.kill()
        wait_until(lambda: slots(database) == 0, PATIENCE, "the slot to go")
        insert(database, 1000)
        guard.start()
        assert is_found(guard, 1000)

    def test_renewals_leave_one(self, follow, database, items):
        guard = follow(items())
        for _ in range(5):
            guard.rebuild()
        wait_until(lambda: slots(database) == 1, PATIENCE, "the older slots to go")
        wait_until(lambda: len(senders(database)) == 1, PATIENCE, "the older streams to end")


@contextlib.contextmanager
def not_replicating(guard, database):
    """While it lasts, a new generation is begun and waits for its slot."""
    unfinished = database.connect()
    unfinished.cursor().execute("SELECT pg_current_xact_id()")
    try:
        [pid] = senders(database)
        assert database.value("SELECT pg_terminate_backend(%s)", (pid,))
        wait_until(lambda: guard.status()["building"], PATIENCE, "the next generation")
        assert guard.keyspace()["state"] == "passing"
        yield
    finally:
        unfinished.rollback()
        unfinished.close()


class TestSchema:
    def test_a_publication_that_is_gone_and_comes_back(self, follow, database, cache, items):
        guard = follow(items())
        database.execute("DROP PUBLICATION nestguard")
        insert(database, 1000)
        wait_state(guard, "passing")
        assert is_found(guard, 1000)
        wait_until(lambda: "PUBLICATION" in (guard.status()["last_build_error"] or ""), PATIENCE,
                   lambda: f"what to do about it: {guard.status()}")
        publish(database, items())
        wait_generation(guard, 2)
        assert is_found(guard, 1000) and not is_possible(guard, "item:5000")

    def test_a_publication_that_tells_less(self, follow, database, items):
        guard = follow(items())
        database.execute("ALTER PUBLICATION nestguard SET (publish = 'update, delete')")
        wait_state(guard, "passing")
        insert(database, 1000)
        assert is_found(guard, 1000)
        database.execute("ALTER PUBLICATION nestguard SET (publish = 'insert, update, delete,"
                         " truncate')")
        wait_generation(guard, 2)
        assert is_found(guard, 1000) and not is_possible(guard, "item:5000")

    def test_one_that_the_guard_may_make_itself(self, start_guard, database, items):
        database.execute(f"""ALTER TABLE items OWNER TO guard; GRANT CREATE ON DATABASE
                             "{database.name}" TO guard""")
        guard = start_guard(items(), sync="replication")
        insert(database, 1000)
        wait_followed(database)
        assert is_found(guard, 1000)
        database.execute("DROP PUBLICATION nestguard")
        insert(database, 1001)
        wait_generation(guard, 2)
        assert is_found(guard, 1001) and not is_possible(guard, "item:5000")

    def test_a_table_that_is_dropped_and_made_again(self, follow, database, cache, items):
        guard = follow(items())
        fill(guard, cache, "item:7")
        database.execute("DROP TABLE items")
        wait_state(guard, "passing")
        database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text); "
                         "INSERT INTO items VALUES (7, 'of the new one'), (1000, 'new 1000')")
        publish(database, items())
        wait_generation(guard, 2)
        wait_purged(cache, "item:7")
        assert guard.redis().mget("item:7", "item:1000", "item:8") == [b"of the new one",
                                                                      b"new 1000", None]

    def test_a_key_column_of_another_type(self, follow, database, items):
        guard = follow(items())
        database.execute("ALTER TABLE items ALTER id TYPE numeric(10, 1)")
        database.execute("INSERT INTO items VALUES (1000, 'tenths')")
        wait_until(lambda: guard.redis().get("item:1000.0") == b"tenths", PATIENCE,
                   lambda: f"the key as it is now {guard.status()}\n{guard.log()}")
        wait_generation(guard, 2)
        assert guard.redis().get("item:7.0") == b"payload 7"
        assert not is_possible(guard, "item:7")

    def test_other_columns_may_come_and_go(self, follow, database, cache, items):
        guard = follow(items())
        fill(guard, cache, "item:7")
        database.execute("ALTER TABLE items ADD extra int DEFAULT 5, DROP deleted_at; "
                         "UPDATE items SET payload = 'new' WHERE id = 7")
        database.execute("INSERT INTO items (id, payload, extra) VALUES (1000, 'new 1000', 1)")
        wait_purged(cache, "item:7")
        wait_followed(database)
        assert guard.redis().get("item:7") == b"new" and is_found(guard, 1000)

    def test_a_renamed_key_column_passes_until_it_has_its_name_again(self, follow, database, items):
        guard = follow(items())
        database.execute("ALTER TABLE items RENAME id TO number")
        database.execute("INSERT INTO items VALUES (1000, 'new 1000')")
        wait_state(guard, "passing")
        database.execute("ALTER TABLE items RENAME number TO id")
        wait_generation(guard, 2)
        assert is_found(guard, 1000)


class TestDatabase:
    def test_one_that_is_killed_and_started_again(self, follow, postgres_server, database, cache,
                                                  items):
        guard = follow(items())
        for number in range(1, 3):
            insert(database, 1000 + number)
            postgres_server.kill()
            wait_state(guard, "passing")
            postgres_server.start()
            insert(database, 2000 + number)
            wait_generation(guard, number + 1)
            assert is_found(guard, 1000 + number) and is_found(guard, 2000 + number)
            assert not is_possible(guard, "item:5000")

    def test_one_that_is_paused_passes_within_max_lag(self, follow, postgres_server, database,
                                                      items):
        guard = follow(items(), max_lag="500ms")
        postgres_server.pause()
        try:
            began = time.monotonic()
            wait_state(guard, "passing")
            assert time.monotonic() - began < 1.5
        finally:
            postgres_server.resume()
        wait_state(guard, "guarding")
        insert(database, 1000)
        wait_followed(database)
        assert is_found(guard, 1000)

    def test_an_idle_one_keeps_the_guard_guarding(self, follow, database, items):
        guard = follow(items(), max_lag="1s")
        assert stays_guarding(guard, 5)

    def test_so_does_one_whose_neighbour_is_written_to(self, follow, postgres_server, database,
                                                       items):
        guard = follow(items(), max_lag="1s")
        with writing(postgres_server, "postgres"):
            assert stays_guarding(guard, 5)

    @pytest.mark.parametrize("where", ["another table", "another database"])
    def test_what_does_not_matter_moves_the_position_all_the_same(
            self, follow, postgres_server, database, items, where):
        follow(items())
        with writing(postgres_server, database.name if where == "another table" else "postgres"):
            for _ in range(10):
                wait_followed(database)


def stays_guarding(guard, seconds):
    """Absence of change has no event to wait for: looks at it for some time."""
    end = time.monotonic() + seconds
    since = guard.keyspace()["seconds_in_state"]
    while time.monotonic() < end:
        found = guard.keyspace()
        assert found["state"] == "guarding" and found["seconds_in_state"] >= since, found
        assert guard.redis().get("item:5000") is None
        time.sleep(0.05)
    return guard.counter("nestguard_loads_total", result="absent") == 0


@contextlib.contextmanager
def writing(server, name):
    """Somebody writes to a table of the database that nobody guards."""
    stop = threading.Event()
    connection = server.connect(name)
    connection.cursor().execute("CREATE TABLE unguarded (payload text)")

    def write():
        while not stop.is_set():
            connection.cursor().execute("INSERT INTO unguarded SELECT repeat('x', 1000) FROM"
                                        " generate_series(1, 20)")
            stop.wait(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()
        connection.cursor().execute("DROP TABLE unguarded")
        connection.close()


class TestCache:
    def test_what_changes_while_it_hangs_is_purged_afterwards(self, follow, database, cache, items):
        guard = follow(items(), cache_timeout="500ms")
        fill(guard, cache, *(f"item:{n}" for n in range(1, 21)))
        cache.pause()
        try:
            database.execute("UPDATE items SET payload = 'new' WHERE id <= 10; "
                             "DELETE FROM items WHERE id BETWEEN 11 AND 15")
            wait_followed(database)
            wait_until(lambda: not guard.status()["backends"]["cache"]["up"], PATIENCE,
                       "the cache to be given up")
        finally:
            cache.resume()
        wait_purged(cache, *(f"item:{n}" for n in range(1, 16)))
        assert cache.client().exists(*(f"item:{n}" for n in range(16, 21))) == 5
        wait_until(lambda: answers(guard, "item:1") == b"new", PATIENCE, "the cache's return")
        assert guard.redis().mget("item:10", "item:11", "item:16") == [b"new", None, b"payload 16"]

    def test_one_that_was_restarted_is_followed_again(self, follow, database, cache, items):
        guard = follow(items())
        fill(guard, cache, "item:7")
        cache.kill()
        database.execute("UPDATE items SET payload = 'new' WHERE id = 7")
        wait_followed(database)
        assert guard.redis().get("item:7") == b"new"
        cache.start()
        wait_until(lambda: guard.status()["backends"]["cache"]["up"], PATIENCE, "the cache")
        wait_until(lambda: fills(guard, cache, "item:7"), PATIENCE, "item:7 in the cache")
        database.execute("UPDATE items SET payload = 'newer' WHERE id = 7")
        wait_purged(cache, "item:7")
        assert guard.redis().get("item:7") == b"newer"


def answers(guard, key):
    try:
        return guard.redis().get(key)
    except Exception as error:  # an error is allowed where a value would be wrong
        return str(error)


def fills(guard, cache, key):
    answers(guard, key)
    return cache.client().exists(key)


class TestGuard:
    def test_one_that_stood_still_rejects_nothing_that_came_meanwhile(
            self, follow, database, cache, items):
        guard = follow(items(), max_lag="300ms")
        for round_ in range(10):
            first = 1000 + 100 * round_
            with guard.wire() as wire:
                guard.pause()
                try:
                    database.execute("INSERT INTO items SELECT n, 'new ' || n"
                                     " FROM generate_series(%s, %s) n", (first, first + 49))
                    time.sleep(0.35)  # past max_lag nothing of the old knowledge counts
                    sent = [n for n in range(first, first + 50)]
                    for n in sent:
                        wire.send(b"GET item:%d\r\n" % n)
                finally:
                    guard.resume()
                for n in sent:
                    reply = wire.read_reply()
                    assert reply.endswith(b"new %d\r\n" % n) or reply[:1] == b"-", (n, reply)
            wait_state(guard, "guarding")

    def test_renewals_lose_nothing_that_is_written_meanwhile(self, follow, database, cache, items,
                                                             threads):
        guard = follow(items())
        fill(guard, cache, "item:7")
        stop = threading.Event()
        renewing = threads.submit(renew_until, guard, stop)
        try:
            for n in range(1000, 2500):
                insert(database, n)
                if n % 3 == 0:
                    database.execute("DELETE FROM items WHERE id = %s", (n - 100,))
                if n % 50 == 0:
                    wait_followed(database)
                    assert is_found(guard, n), (guard.explain(f"item:{n}"), guard.status())
        finally:
            stop.set()
        assert renewing.result(PATIENCE) > 0
        wait_until(lambda: guard.status()["building"] is None, PATIENCE, "the last renewal")
        wait_removed(guard, database)
        rows = {n for n, in database.query("SELECT id FROM items")}
        assert guard.keyspace()["rows"] == len(rows)
        assert [n for n in rows if not is_possible(guard, f"item:{n}")] == []

    def test_a_filter_grows_far_past_its_capacity(self, follow, database, items):
        guard = follow(items())
        slots_before = guard.keyspace()["filter"]["slots"]
        for first in range(1000, 61000, 500):
            database.execute("INSERT INTO items SELECT n, 'new ' || n FROM generate_series(%s, %s)"
                             " n", (first, first + 499))
            answer = guard.redis().get(f"item:{first - 500}") if first > 1000 else None
            assert answer == (b"new %d" % (first - 500) if first > 1000 else None), guard.status()
            wait_followed(database)
        wait_until(lambda: guard.is_ready() and guard.keyspace()["rows"] == 60100, PATIENCE,
                   lambda: f"every row: {guard.status()}")
        assert guard.keyspace()["filter"]["slots"] > 10 * slots_before
        assert guard.redis().get("item:70000") is None and is_found(guard, 60999)


def renew_until(guard, stop):
    """Returns how many generations that made."""
    first = number = 0
    while not stop.is_set():
        number = guard.control("POST", "/v1/rebuild").json()["generation"]
        first = first or number
        stop.wait(0.01)
    return number - first
