"""With `sync: replication`, a transaction that deletes a row and inserts it again where the log does
not tell of it: its half is told, the row's key is not denied."""
import threading

import pytest
import redis

from following import (fill, follow, held_removals, is_possible, name_standbys, query_alone,
                       synchronous, wait_generation, wait_purged, wait_removed,
                       wait_until_commits_wait)
from servers import PATIENCE
from waiting import wait_until

ITEMS = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload", "ttl": "10m"}
PLAIN = """
    CREATE TABLE items (id bigint PRIMARY KEY, payload text);
    INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(1, 100) n;"""
PARTITIONED = """
    CREATE TABLE items (id bigint PRIMARY KEY, payload text) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF items FOR VALUES FROM (0) TO (50);
    CREATE TABLE high PARTITION OF items FOR VALUES FROM (50) TO (1000);
    INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(1, 100) n;"""
ROUNDS = 3

# Each is one transaction, in which item:5 is deleted and inserted, and so are all the others.
HALF_TOLD = [
    pytest.param(PLAIN, """
        LOCK TABLE items;
        CREATE TABLE fresh (LIKE items INCLUDING ALL);
        INSERT INTO fresh SELECT * FROM items;
        DELETE FROM items;
        DROP TABLE items; ALTER TABLE fresh RENAME TO items;
        ALTER PUBLICATION nestguard ADD TABLE items""", id="another table in its place"),
    pytest.param(PLAIN, """
        CREATE TABLE kept AS SELECT * FROM items;
        DELETE FROM items;
        ALTER PUBLICATION nestguard SET (publish = 'update, delete');
        INSERT INTO items SELECT * FROM kept;
        ALTER PUBLICATION nestguard SET (publish = 'insert, update, delete, truncate');
        DROP TABLE kept""", id="a publication that tells less"),
    pytest.param(PARTITIONED, """
        CREATE TABLE fresh (LIKE items INCLUDING ALL);
        INSERT INTO fresh SELECT * FROM low;
        DELETE FROM items WHERE id < 50;
        DROP TABLE low; ALTER TABLE fresh RENAME TO low;
        ALTER TABLE items ATTACH PARTITION low FOR VALUES FROM (0) TO (50)""", id="a partition"),
]


class Watcher(threading.Thread):
    """Asks for a key again and again, and counts how often it is denied."""

    def __init__(self, guard, key):
        super().__init__()
        self.client, self.key = guard.redis(), key
        self.stop, self.denied, self.known = threading.Event(), 0, 0
        self.start()

    def run(self):
        while not self.stop.is_set():
            try:
                if self.client.exists(self.key):
                    self.known += 1
                else:
                    self.denied += 1
            except redis.ResponseError as error:
                assert str(error).startswith("NESTGUARD "), error

    def __enter__(self):
        wait_until(lambda: self.known > 10, PATIENCE, f"{self.key} to be known")
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()
        self.client.close()


def watch(guard, database, transaction):
    for _ in range(ROUNDS):
        before = guard.generation()
        with Watcher(guard, "item:5") as watcher:
            database.execute(transaction)
            wait_generation(guard, before + 1)
        assert not watcher.denied and watcher.known, watcher.denied
        assert not is_possible(guard, "item:5000")


@pytest.mark.parametrize("table, transaction", HALF_TOLD)
def test_what_is_told_by_half_denies_nothing(follow, database, table, transaction):
    database.execute(table)
    watch(follow(ITEMS, max_lag="1s"), database, transaction)


@pytest.mark.parametrize("table, transaction", HALF_TOLD[:1])
def test_nor_where_commits_wait_for_the_guard(follow, database, postgres_server, table,
                                              transaction):
    database.execute(table)
    guard = follow(ITEMS, max_lag="1s")
    with synchronous(postgres_server):
        watch(guard, database, transaction)


def test_a_key_goes_when_its_deletion_can_be_seen(follow, database, cache, items,
                                                  postgres_server):
    """A commit that waits for somebody else has been told, and its row is still to be seen."""
    guard = follow(items(), max_lag="1s")
    fill(guard, cache, "item:7")
    with synchronous(postgres_server):
        name_standbys(postgres_server, "FIRST 2 (nestguard, nobody)")
        wait_until_commits_wait(postgres_server)
        deletion = threading.Thread(target=query_alone, args=(
            database, "DELETE FROM items WHERE id = 7; COMMIT; SELECT 1"))
        deletion.start()
        wait_purged(cache, "item:7")
        wait_until(lambda: held_removals(guard) == 1, PATIENCE, guard.status)
        probes = asked(database)
        wait_until(lambda: asked(database) > probes + 3, PATIENCE, "probes that do not see it")
        assert held_removals(guard) == 1 and is_possible(guard, "item:7")
        assert guard.redis().get("item:7") == b"payload 7"
        name_standbys(postgres_server, "nestguard")
        deletion.join()
        wait_removed(guard, database)
        assert guard.redis().get("item:7") is None and not is_possible(guard, "item:7")
    assert guard.generation() == 1


def asked(database):
    """Transactions of this database, the probes among them."""
    return database.value("SELECT xact_commit FROM pg_stat_database"
                          " WHERE datname = current_database()")


def test_rows_that_come_and_go_faster_than_probes_fit_the_filter(follow, database, items):
    """It has places for a thousand more than there are rows."""
    guard = follow(items(), max_lag="5s")
    connection = database.connect()
    cursor = connection.cursor()
    for turn in range(100):
        cursor.execute("DELETE FROM items; INSERT INTO items SELECT n, 'again' FROM"
                       " generate_series(%s, %s) n", (100 * turn, 100 * turn + 99))
        connection.commit()
    connection.close()
    wait_removed(guard, database)
    assert guard.keyspace()["rows"] == 100 and guard.generation() == 1, guard.log()
    assert guard.redis().mget("item:9900", "item:9999") == [b"again", b"again"]
    assert not is_possible(guard, "item:9800")
