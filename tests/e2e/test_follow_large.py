"""Large transactions, which the database sends while they are in progress: for these tests it does
so after a few hundred rows."""
import itertools
import random
import threading
import time

import pytest

from following import (fill, follow, has_followed, is_possible, wait_followed, wait_purged,
                       wait_removed)
from servers import PATIENCE
from waiting import wait_until

ROWS = 200_000  # so that the filter has room for some thousands more
MOVED = 1_000_000


@pytest.fixture
def table(database):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    database.execute("INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(1, %s) n",
                     (ROWS,))
    return database


@pytest.fixture
def guard(follow, table):
    return follow({"name": "items", "key": "item:{id}", "table": "items", "value": "payload",
                   "false_positive_rate": 0.00001},
                  database=f"{table.url}?options=-c%20logical_decoding_work_mem%3D64kB")


class Writer:
    """A transaction that stays open."""

    def __init__(self, database):
        self.connection = database.connect()
        self.cursor = self.connection.cursor()

    def run(self, sql, *values):
        self.cursor.execute(sql, values)

    def insert(self, first, last):
        self.run("INSERT INTO items SELECT n, 'new' FROM generate_series(%s, %s) n", first, last)

    def commit(self):
        self.connection.commit()

    def rollback(self):
        self.connection.rollback()


@pytest.fixture
def writer(table):
    made = []

    def begin():
        made.append(Writer(table))
        return made[-1]

    yield begin
    for each in made:
        each.connection.close()


def wait_possible(guard, key):
    wait_until(lambda: is_possible(guard, key), PATIENCE, f"{key} to come while in progress")


def count(database):
    return database.value("SELECT count(*) FROM items")


def assert_exact(guard, database):
    """One entry in the filter for each row."""
    wait_removed(guard, database)
    assert guard.keyspace()["rows"] == count(database)


def wait_exact(guard, database):
    """The same, at the latest of the generation that comes when savepoints have deleted rows."""
    wait_removed(guard, database)
    wait_until(lambda: guard.keyspace()["rows"] == count(database), PATIENCE, guard.log)


def test_what_is_in_progress_is_known_but_changes_nothing(guard, database, cache, writer):
    fill(guard, cache, "item:7")
    one = writer()
    one.run("DELETE FROM items WHERE id <= 700")
    one.run("UPDATE items SET payload = 'newer' WHERE id BETWEEN 701 AND 1000")
    one.insert(500001, 501000)
    wait_possible(guard, "item:500001")
    database.execute("INSERT INTO items VALUES (700001, 'small')")
    wait_followed(database)
    assert cache.client().get("item:7") == b"payload 7"
    assert guard.redis().mget("item:8", "item:900", "item:500001", "item:700001") == [
        b"payload 8", b"payload 900", None, b"small"]
    one.commit()
    wait_purged(cache, "item:7")
    assert_exact(guard, database)
    assert guard.redis().mget("item:7", "item:900", "item:500001", "item:501000") == [
        None, b"newer", b"new", b"new"]
    assert not is_possible(guard, "item:7")
    assert guard.generation() == 1


def test_a_rollback_leaves_no_trace(guard, database, cache, writer):
    fill(guard, cache, "item:7")
    one = writer()
    one.insert(500001, 501000)
    one.run("DELETE FROM items WHERE id <= 1000")
    wait_possible(guard, "item:500001")
    one.rollback()
    database.execute("INSERT INTO items VALUES (700001, 'after')")
    assert_exact(guard, database)
    assert cache.client().get("item:7") == b"payload 7"
    assert not is_possible(guard, "item:500001")
    assert guard.redis().mget("item:8", "item:500001") == [b"payload 8", None]
    assert guard.generation() == 1


def test_savepoints_keep_what_is_committed_alone(guard, database, cache, writer):
    fill(guard, cache, "item:7", "item:8")
    one = writer()
    one.insert(500001, 500600)
    one.run("SAVEPOINT a")
    one.insert(501001, 501600)
    one.run("DELETE FROM items WHERE id <= 7")
    one.run("SAVEPOINT b")
    one.insert(502001, 502600)
    one.run("RELEASE b")
    wait_possible(guard, "item:502001")
    one.run("ROLLBACK TO a")
    one.run("SAVEPOINT c")
    one.run("DELETE FROM items WHERE id = 8")
    one.insert(503001, 503600)
    one.run("RELEASE c")
    wait_possible(guard, "item:503001")
    one.commit()
    wait_purged(cache, "item:8")
    assert cache.client().get("item:7") == b"payload 7"
    wait_exact(guard, database)
    possible = [is_possible(guard, f"item:{n}")
                for n in (7, 8, 500600, 501001, 502001, 503600)]
    assert possible == [True, False, True, False, False, True]


def test_a_rollback_that_the_server_does_not_tell_of_denies_no_row(follow, database):
    """A savepoint that deletes rows, and inserts a value in so many pieces that it cannot be told
    of before its last, is written to the server's disk; what is rolled back then is told as if it
    stayed."""
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    database.execute("ALTER TABLE items ALTER payload SET STORAGE EXTERNAL")
    database.execute("INSERT INTO items SELECT n, 'row ' || n FROM generate_series(1, 100) n")
    guard = follow({"name": "items", "key": "item:{id}", "table": "items", "value": "payload"},
                   max_lag="30s")
    one = Writer(database)
    one.run("INSERT INTO items VALUES (7000, 'x')")
    one.run("SAVEPOINT a")
    one.run("DELETE FROM items WHERE id <= 10")
    one.run("INSERT INTO items VALUES (8000, repeat('0123456789abcdef', 700000))")
    database.execute("INSERT INTO items VALUES (9000, 'flushes the log')")
    wait_followed(database)
    one.run("ROLLBACK TO a")
    one.run("INSERT INTO items VALUES (7001, 'x')")
    one.commit()
    one.connection.close()
    database.execute("INSERT INTO items VALUES (9001, 'is behind')")
    wait_followed(database)
    wait_removed(guard, database)
    assert guard.redis().mget([f"item:{n}" for n in range(1, 11)]) == [
        f"row {n}".encode() for n in range(1, 11)]
    assert guard.redis().mget("item:7001", "item:8000") == [b"x", None]


def test_rows_that_are_replaced_are_never_denied(guard, database, writer):
    client = guard.redis()
    stop = threading.Event()
    denied = []

    def look():
        while not stop.is_set():
            denied.extend(n for n in (1, 500, 1000) if client.get(f"item:{n}") is None)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for payload in ("once", "twice", "thrice"):
            one = writer()
            one.run("DELETE FROM items WHERE id <= 1000")
            one.run("INSERT INTO items SELECT n, %s FROM generate_series(1, 1000) n", payload)
            one.commit()
            wait_followed(database)
    finally:
        stop.set()
        reader.join()
    assert not denied
    assert guard.redis().get("item:500") == b"thrice"
    assert_exact(guard, database)


def test_more_than_the_filter_has_room_for_waits_for_the_commit(guard, database, writer):
    """The generation goes on to guard while such a transaction is in progress."""
    one = writer()
    one.insert(500001, 600000)
    wait_possible(guard, "item:500001")
    database.execute("INSERT INTO items VALUES (700001, 'small')")
    wait_followed(database)
    assert guard.redis().get("item:700001") == b"small"
    assert guard.is_ready()
    one.commit()
    wait_until(lambda: guard.is_ready() and guard.keyspace()["rows"] == count(database), PATIENCE,
               lambda: f"a larger generation: {guard.status()}")
    assert guard.redis().mget("item:500001", "item:600000") == [b"new", b"new"]


def test_a_prepared_one_counts_when_it_is_committed(guard, database, writer):
    one = writer()
    one.insert(500001, 501000)
    one.run("PREPARE TRANSACTION 'large'")
    one.connection.rollback()
    wait_possible(guard, "item:500001")
    assert guard.redis().get("item:500001") is None
    database.execute("COMMIT PREPARED 'large'")
    assert_exact(guard, database)
    assert guard.redis().get("item:500001") == b"new"


def change_at_random(choose, writer, number, offsets):
    """In keys of its own, so that nobody waits for anybody."""
    first = 1000 * number
    for _ in range(choose.randrange(1, 6)):
        what = choose.randrange(5)
        begin = first + choose.randrange(900)
        span = (begin, begin + choose.randrange(100))
        if what == 0:
            writer.run("SAVEPOINT s")
        elif what == 1:
            writer.run("SAVEPOINT t; DELETE FROM items WHERE id BETWEEN %s AND %s;"
                       " ROLLBACK TO t", *span)
        elif what == 2:
            writer.run("DELETE FROM items WHERE id BETWEEN %s AND %s", *span)
        elif what == 3:
            writer.run("INSERT INTO items SELECT n, 'new' FROM generate_series(%s, %s) n"
                       " ON CONFLICT (id) DO UPDATE SET payload = 'newer'", *span)
        else:
            writer.run("SAVEPOINT u; UPDATE items SET id = id + %s WHERE id BETWEEN %s AND %s;"
                       " RELEASE u", next(offsets), *span)


@pytest.mark.parametrize("seed", range(3))
def test_several_in_progress_end_as_they_like(guard, database, writer, seed):
    choose = random.Random(seed)
    offsets = itertools.count(MOVED, 10_000)
    writers = [writer() for _ in range(4)]
    for _ in range(150):
        number = choose.randrange(4)
        what = choose.randrange(8)
        if what == 0:
            writers[number].commit()
        elif what == 1:
            writers[number].rollback()
        else:
            change_at_random(choose, writers[number], number + 1, offsets)
    for each in writers:
        each.commit()
    wait_exact(guard, database)
    rows = {n for n, in database.query("SELECT id FROM items WHERE id BETWEEN 1000 AND 6000"
                                       " OR id > %s", (MOVED,))}
    keys = sorted(rows | set(range(1000, 6000)))[::7]
    found = guard.redis().mget([f"item:{n}" for n in keys])
    assert [n for n, value in zip(keys, found) if value is not None] == [
        n for n in keys if n in rows]


def test_soon_after_its_commit_all_of_it_is_known(guard, database, writer):
    one = writer()
    one.insert(500001, 502000)
    wait_possible(guard, "item:500001")
    began = time.monotonic()
    one.commit()
    position = database.value("SELECT pg_current_wal_flush_lsn()")
    wait_until(lambda: is_possible(guard, "item:502000"), PATIENCE, "the last key")
    print(f"the last key was known {(time.monotonic() - began) * 1000:.0f} ms after the commit")
    wait_until(lambda: has_followed(database, position), PATIENCE, "the commit to be confirmed")
    assert guard.redis().get("item:502000") == b"new"
