"""With `sync: replication`, what people and circumstances do to the database while the guard
follows it: no row is rejected for longer than max_lag and a second, the status names what only a
person can mend, and the guard comes back by itself once that is done.
"""
import contextlib
import time

import psycopg2.extras
import pytest

import servers
from following import (fill, follow, is_found, is_possible, publish, senders, slots,
                       wait_followed, wait_generation, wait_purged, wait_state)
from servers import PATIENCE
from waiting import wait_until

MAX_LAG = 1
ROW = "INSERT INTO items (id, payload) VALUES ({n}, 'new {n}')"
TROUBLE = [
    pytest.param("ALTER TABLE items REPLICA IDENTITY NOTHING",
                 "replica identity", "ALTER TABLE items REPLICA IDENTITY DEFAULT", ROW,
                 id="no replica identity"),
    pytest.param("ALTER TABLE items RENAME TO things",
                 "items does not exist", "ALTER TABLE things RENAME TO items",
                 ROW.replace("items", "things"), id="a renamed table"),
    pytest.param("CREATE SCHEMA away; ALTER TABLE items SET SCHEMA away",
                 "items does not exist", "ALTER TABLE away.items SET SCHEMA public",
                 ROW.replace("items", "away.items"), id="a table in another schema"),
    pytest.param("CREATE TABLE fresh (LIKE items INCLUDING ALL); INSERT INTO fresh TABLE items;"
                 "ALTER TABLE items RENAME TO old_items; ALTER TABLE fresh RENAME TO items;"
                 "GRANT SELECT, DELETE ON items TO guard",
                 "ADD TABLE", "ALTER PUBLICATION nestguard SET TABLE items", ROW,
                 id="a table that takes another's place"),
    pytest.param("ALTER PUBLICATION nestguard SET TABLE items WHERE (id < 50)",
                 "only rows that meet", "ALTER PUBLICATION nestguard SET TABLE items", ROW,
                 id="a row filter that hides rows"),
    pytest.param("ALTER PUBLICATION nestguard DROP TABLE items",
                 "ADD TABLE", "ALTER PUBLICATION nestguard ADD TABLE items", ROW,
                 id="a publication without the table"),
    pytest.param("DROP PUBLICATION nestguard; CREATE PUBLICATION nestguard FOR ALL TABLES",
                 "FOR ALL TABLES",
                 "DROP PUBLICATION nestguard; CREATE PUBLICATION nestguard FOR TABLE items", ROW,
                 id="a publication of all tables"),
    pytest.param("ALTER PUBLICATION nestguard RENAME TO other",
                 "CREATE PUBLICATION", "ALTER PUBLICATION other RENAME TO nestguard", ROW,
                 id="a renamed publication"),
    pytest.param("CREATE TABLE more () INHERITS (items)",
                 "inherits", "DROP TABLE more", ROW, id="a table that inherits"),
    pytest.param("ALTER TABLE items ENABLE ROW LEVEL SECURITY",
                 "row-level security", "ALTER TABLE items DISABLE ROW LEVEL SECURITY", ROW,
                 id="row-level security"),
    pytest.param("ALTER TABLE items DROP CONSTRAINT items_pkey",
                 "replica identity", "ALTER TABLE items ADD PRIMARY KEY (id)", ROW,
                 id="no primary key"),
    pytest.param("REVOKE SELECT ON items FROM guard; ALTER TABLE items ADD extra int;"
                 "ALTER PUBLICATION nestguard SET (publish = 'insert')",
                 "does not publish",
                 "GRANT SELECT ON items TO guard; ALTER PUBLICATION nestguard"
                 " SET (publish = 'insert, update, delete, truncate')", ROW,
                 id="a publication that tells less"),
]


def answer(guard, n):
    """What a lookup brings: an error is allowed where a value would be wrong."""
    with guard.wire() as wire:
        wire.send(b"GET item:%d\r\n" % n)
        return wire.read_reply()


def wait_passing(guard):
    """Within the promised time, whoever looks."""
    began = time.monotonic()
    found = wait_state(guard, "passing")
    assert time.monotonic() - began < MAX_LAG + 1
    return found


def wait_named(guard, words):
    wait_until(lambda: words in (guard.status()["last_build_error"] or ""), PATIENCE,
               lambda: f"{words}: {guard.status()['last_build_error']}\n{guard.log()}")


@pytest.mark.parametrize("trouble, words, remedy, row", TROUBLE)
def test_what_a_person_alters_passes_until_it_is_mended(follow, database, items, trouble, words,
                                                        remedy, row):
    guard = follow(items(), max_lag=f"{MAX_LAG}s")
    database.execute(trouble)
    wait_passing(guard)
    database.execute(row.format(n=1000))
    wait_named(guard, words)
    assert answer(guard, 5000) == b"$-1\r\n" or answer(guard, 5000)[:1] == b"-"
    database.execute(remedy)
    database.execute(ROW.format(n=1001))
    wait_generation(guard, 2)
    assert is_found(guard, 1000) and is_found(guard, 1001)
    assert not is_possible(guard, "item:5000")
    database.execute(ROW.format(n=1002))
    wait_followed(database)
    assert is_found(guard, 1002)


def connections(database, condition, count):
    """Waits for so many of the guard, other than those of its stream."""
    sql = f"""SELECT pid FROM pg_stat_activity WHERE datname = current_database()
                 AND usename = 'guard' AND backend_type = 'client backend' AND {condition}"""
    return wait_until(lambda: (lambda rows: rows if len(rows) == count else None)(
        database.query(sql)), PATIENCE, f"{count} connections with {condition}")


class TestConnections:
    @pytest.mark.parametrize("condition, count", [
        pytest.param("query LIKE '%guarded%'", 1, id="that asks where the log ends"),
        pytest.param("query NOT LIKE '%guarded%'", 5, id="that load rows, and the checker's")])
    def test_those_come_back_while_it_guards(self, follow, database, items, condition, count):
        guard = follow(items(), max_lag=f"{MAX_LAG}s")
        for n in range(1000, 1005):
            for pid, in connections(database, condition, count):
                database.execute("SELECT pg_terminate_backend(%s)", (pid,))
            database.execute(ROW.format(n=n))
            wait_followed(database)
            wait_until(lambda n=n: answer(guard, n).endswith(b"new %d\r\n" % n), PATIENCE, "a load")
        connections(database, condition, count)
        guard.wait_guarding()  # on a busy machine it may have fallen behind meanwhile
        assert guard.generation() == 1


def test_time_limits_for_queries_are_none_for_building(follow, database, items):
    for limit in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
        database.execute(f'ALTER ROLE guard IN DATABASE "{database.name}" SET {limit} = 100')
    keyspace = items()
    database.execute("INSERT INTO items SELECT n, 'new ' || n FROM generate_series(1000, 300000) n")
    guard = follow(keyspace)
    assert is_found(guard, 300000) and not is_possible(guard, "item:500000")


class TestPartitions:
    TABLE = """
        CREATE TABLE items (id bigint PRIMARY KEY, payload text) PARTITION BY RANGE (id);
        CREATE TABLE low PARTITION OF items FOR VALUES FROM (0) TO (1000);
        CREATE TABLE high PARTITION OF items FOR VALUES FROM (1000) TO (2000);
        INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(1, 100) n;
        INSERT INTO items SELECT n, 'new ' || n FROM generate_series(1000, 1100) n;"""
    ITEMS = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload",
             "ttl": "10m"}

    @pytest.mark.parametrize("how", ["", "CONCURRENTLY"])
    def test_a_detached_one_takes_its_rows_along_and_brings_them_back(self, follow, database, cache,
                                                                      how):
        database.execute(self.TABLE)
        guard = follow(self.ITEMS, max_lag=f"{MAX_LAG}s")
        fill(guard, cache, "item:7", "item:1000")
        database.execute(f"ALTER TABLE items DETACH PARTITION high {how}")
        wait_generation(guard, 2)
        wait_purged(cache, "item:1000")
        assert guard.redis().mget("item:7", "item:1000") == [b"payload 7", None]
        assert not is_possible(guard, "item:1000")
        database.execute("INSERT INTO high VALUES (1500, 'new 1500');"
                         "ALTER TABLE items ATTACH PARTITION high FOR VALUES FROM (1000) TO (2000)")
        wait_until(lambda: is_found(guard, 1500), MAX_LAG + 1, "the attached row")
        wait_generation(guard, 3)
        assert is_found(guard, 1000) and not is_possible(guard, "item:1501")
        database.execute("INSERT INTO items VALUES (1501, 'new 1501')")
        wait_followed(database)
        assert is_found(guard, 1501)


@pytest.fixture
def own():
    """own(setting=value) starts a PostgreSQL of the test's own, with the table of items."""
    with contextlib.ExitStack() as stack:
        def start(**settings):
            server = servers.Postgres(**settings)
            stack.callback(server.remove)
            server.start()
            database = servers.Database(server, "shop")
            database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text);"
                             "INSERT INTO items SELECT n, 'payload ' || n"
                             " FROM generate_series(1, 100) n")
            return database
        yield start


@pytest.fixture
def follow_own(start_guard):
    def start(database, **settings):
        keyspace = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload"}
        publish(database, keyspace)
        return start_guard(keyspace, database=database.url, sync="replication",
                           max_lag=f"{MAX_LAG}s", **settings)

    return start


class TestServer:
    @pytest.mark.parametrize("setting, words", [
        ("max_replication_slots", "all replication slots are in use"),
        ("max_wal_senders", "max_wal_senders")])
    def test_one_without_room_for_a_renewal_leaves_it_guarding(self, own, follow_own, setting,
                                                               words):
        database = own(**{setting: 3})
        guard = follow_own(database)
        with occupied(database, setting):
            number = guard.control("POST", "/v1/rebuild").json()["generation"]
            wait_named(guard, words)
            database.execute(ROW.format(n=1000))
            wait_followed(database)
            assert is_found(guard, 1000) and guard.is_ready() and guard.generation() == 1
            assert not is_possible(guard, "item:5000")
        wait_generation(guard, number)

    def test_one_without_room_for_a_lost_stream_passes(self, own, follow_own):
        database = own(max_replication_slots=2)
        guard = follow_own(database)
        with occupied(database, "max_replication_slots", 1):
            [pid] = senders(database)
            guard.pause()  # else it may have the slot again before somebody else takes it
            database.execute("SELECT pg_terminate_backend(%s)", (pid,))
            wait_until(lambda: not slots(database), PATIENCE, "the slot to go")
            database.execute("SELECT pg_create_physical_replication_slot('last', true)")
            guard.resume()
            wait_passing(guard)
            wait_named(guard, "all replication slots are in use")
            database.execute(ROW.format(n=1000))
            assert is_found(guard, 1000)
            database.execute("SELECT pg_drop_replication_slot('last')")
        wait_generation(guard, 2)
        assert is_found(guard, 1000) and not is_possible(guard, "item:5000")

    def test_one_that_stops_writing_a_logical_log_is_named(self, own, follow_own):
        database = own(wal_level=None)
        database.execute("ALTER SYSTEM SET wal_level = logical")
        database.server.restart()
        guard = follow_own(database)
        database.execute("ALTER SYSTEM SET wal_level = replica")
        database.server.restart()
        wait_passing(guard)
        wait_named(guard, "wal_level")
        database.execute(ROW.format(n=1000))
        wait_until(lambda: answer(guard, 1000).endswith(b"new 1000\r\n"), PATIENCE, "a load")
        database.execute("ALTER SYSTEM SET wal_level = logical")
        database.server.restart()
        wait_generation(guard, 2)
        assert is_found(guard, 1000) and not is_possible(guard, "item:5000")

    def test_one_whose_other_databases_are_written_to_may_forget_its_log(self, follow, database,
                                                                         postgres_server, items):
        follow(items())
        before = database.value("SELECT pg_current_wal_flush_lsn()")
        postgres_server.execute("CREATE TABLE filler AS SELECT repeat('x', 1000) FROM"
                                " generate_series(1, 5000); DROP TABLE filler")
        # The server notes now and then from where on its log is needed; a checkpoint makes it.
        wait_until(lambda: database.execute("CHECKPOINT") and database.value(
            "SELECT bool_and(restart_lsn > %s AND confirmed_flush_lsn > %s)"
            " FROM pg_replication_slots WHERE database = current_database()", (before, before)),
            PATIENCE, "the log to be needed no more")


@contextlib.contextmanager
def occupied(database, setting, count=None):
    """Somebody else takes what is left."""
    if setting == "max_replication_slots":
        left = count or 2
        for n in range(left):
            database.execute(f"SELECT pg_create_physical_replication_slot('taken_{n}', true)")
        yield
        for n in range(left):
            database.execute(f"SELECT pg_drop_replication_slot('taken_{n}')")
    else:
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                sender = psycopg2.connect(
                    host="127.0.0.1", port=database.server.port, user="postgres",
                    dbname=database.name,
                    connection_factory=psycopg2.extras.LogicalReplicationConnection)
                stack.callback(sender.close)
            yield
