"""A large table is read in shares of pages, over several connections, many keys to a row where their
types allow it; whichever way it is read, the filter has each row once."""
import concurrent.futures

import psycopg2.errors
import pytest

from following import publish
from gate import Gate
from servers import PATIENCE
from waiting import wait_until

ROWS = 30_000  # with the payload below, more than the 1024 pages that two shares must have
UNLIKE = 100  # without a log, a row that looks like one that is in gets no entry of its own
PAYLOAD = "repeat('x', 300)"
MANY_BIGINTS = (f"CREATE TABLE items (id bigint PRIMARY KEY, payload text);"
                f"INSERT INTO items SELECT i, {PAYLOAD} FROM generate_series(1, {ROWS}) i;")


def keyspace(key="item:{id}", **settings):
    return {"name": "items", "key": key, "table": "items", "value": "payload", **settings}


@pytest.fixture
def build(database, start_guard):
    """build(sql, keyspace) makes the table, and starts a guard that follows it."""
    database.execute("ALTER ROLE guard REPLICATION; SELECT pg_stat_statements_reset()")

    def run(sql, items, **settings):
        database.execute(sql)
        publish(database, items)
        return start_guard(items, **{"sync": "replication", "max_lag": "5s", **settings})

    return run


def copies(database):
    """The statements that the guard copied the table with, since the test began."""
    return [sql for sql, in database.query("""
        SELECT query FROM pg_stat_statements
        WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND userid = 'guard'::regrole AND query LIKE 'COPY %%'""")]


def assert_has_all(database, guard, key="'item:' || id", rows=ROWS, where="true", unlike=0):
    """As many entries as rows, or up to so many fewer; and each of some is possible: from all pages,
    and the last ones."""
    assert rows - unlike <= guard.keyspace()["filter"]["keys"] <= rows
    asked = database.query(f"""
        (SELECT {key} FROM items WHERE {where} ORDER BY ctid DESC LIMIT 50) UNION ALL
        (SELECT {key} FROM items WHERE {where} ORDER BY random() LIMIT 150)""")
    client = guard.redis()
    assert all(client.mget([found for found, in asked]))


def test_shares_of_bigints_come_packed(database, build):
    guard = build(MANY_BIGINTS, keyspace())
    assert_has_all(database, guard)
    assert guard.redis().get(f"item:{ROWS + 1}") is None
    assert len(copies(database)) == 2
    assert all("string_agg" in sql for sql in copies(database))


@pytest.mark.parametrize("connections, found", [(1, 1), (3, 3)])
def test_there_are_as_many_shares_as_connections(database, build, connections, found):
    guard = build(MANY_BIGINTS.replace("300)", "500)"), keyspace(), build_connections=connections)
    assert_has_all(database, guard)
    assert len(copies(database)) == found


def test_keys_of_several_packed_columns(database, build):
    guard = build(f"""
        CREATE TABLE items (a uuid, b int, c smallint, payload text, PRIMARY KEY (a, c, b));
        INSERT INTO items SELECT md5(i::text)::uuid, -i, i % 100, {PAYLOAD}
        FROM generate_series(1, {ROWS}) i""", keyspace("i:{b}/{a}:{c}"))
    assert_has_all(database, guard, "'i:' || b || '/' || a || ':' || c")
    assert all("string_agg" in sql for sql in copies(database))


def test_text_is_not_packed(database, build):
    guard = build(f"""
        CREATE TABLE items (id text PRIMARY KEY, payload text);
        INSERT INTO items SELECT i || E', \\\\N\\t\\n\\\\.' || i, {PAYLOAD}
        FROM generate_series(1, {ROWS}) i""", keyspace())
    assert_has_all(database, guard)
    assert len(copies(database)) == 2
    assert not any("string_agg" in sql for sql in copies(database))


def test_a_condition_holds_in_every_share(database, build):
    guard = build(MANY_BIGINTS.replace("payload text", "payload text, gone bool") +
                  "UPDATE items SET gone = true WHERE id % 3 = 0;"
                  "ALTER TABLE items REPLICA IDENTITY FULL",
                  keyspace(where="gone IS NULL OR NOT gone"))
    assert_has_all(database, guard, rows=ROWS - ROWS // 3, where="gone IS NULL")
    assert len(copies(database)) == 2
    assert not any("string_agg" in sql for sql in copies(database))


@pytest.mark.parametrize("nulls", ["false", "i % 2 = 0", "i BETWEEN 1000 AND 5000"])
def test_rows_without_a_key_are_left_out(database, build, nulls):
    guard = build(f"""
        CREATE TABLE items (id bigint UNIQUE, part int, payload text);
        ALTER TABLE items REPLICA IDENTITY FULL;
        INSERT INTO items SELECT CASE WHEN {nulls} THEN NULL ELSE i END, 1, {PAYLOAD}
        FROM generate_series(1, {ROWS}) i""", keyspace("item:{part}:{id}"))
    assert_has_all(database, guard, "'item:1:' || id", where="id IS NOT NULL",
                   rows=database.value("SELECT count(id) FROM items"))


def test_a_table_with_names_that_the_statement_uses_itself(database, build):
    guard = build(f"""
        CREATE TABLE a (page bigint PRIMARY KEY, a int DEFAULT 7, b int DEFAULT 8, payload text);
        INSERT INTO a (page, payload) SELECT i, {PAYLOAD} FROM generate_series(1, {ROWS}) i;
        CREATE VIEW items AS SELECT * FROM a""", {**keyspace("item:{page}"), "table": "a"})
    assert guard.keyspace()["filter"]["keys"] == ROWS
    assert all(guard.redis().mget(["item:1", f"item:{ROWS // 2}", f"item:{ROWS}"]))
    assert all("string_agg" in sql for sql in copies(database))


@pytest.mark.parametrize("child", [
    "CREATE TABLE more () INHERITS (items); ALTER TABLE more ADD PRIMARY KEY (id);",
    "CREATE TABLE more (id bigint PRIMARY KEY, payload text); ALTER TABLE more INHERIT items;"])
def test_a_table_with_children_is_read_whole(database, build, child):
    guard = build(MANY_BIGINTS + child +
                  f"INSERT INTO more SELECT -i, 'x' FROM generate_series(1, {ROWS}) i", keyspace(),
                  sync="poll")
    assert_has_all(database, guard, rows=2 * ROWS, unlike=UNLIKE)


def test_partitions_are_read(database, build):
    guard = build(f"""
        CREATE TABLE items (id bigint PRIMARY KEY, payload text) PARTITION BY RANGE (id);
        CREATE TABLE low PARTITION OF items FOR VALUES FROM (MINVALUE) TO ({ROWS // 2});
        CREATE TABLE high PARTITION OF items DEFAULT;
        INSERT INTO items SELECT i, {PAYLOAD} FROM generate_series(1, {ROWS}) i""", keyspace())
    assert guard.keyspace()["filter"]["keys"] == ROWS


@pytest.mark.parametrize("sync", ["none", "poll"])
def test_without_a_log_the_shares_have_one_snapshot_too(database, build, sync):
    guard = build(MANY_BIGINTS, keyspace(), sync=sync)
    assert_has_all(database, guard, unlike=UNLIKE)
    assert len(copies(database)) == 2


def test_haste_is_for_builds_that_nothing_guards_beside(database, build):
    """Beside a generation that guards, the next takes one connection; when that one is lost, as
    many as there may be."""
    def next_after(cause):
        database.execute("SELECT pg_stat_statements_reset()")
        number = guard.generation()
        cause()
        wait_until(lambda: guard.generation() > number, PATIENCE, guard.log)
        guard.wait_guarding()
        return len(copies(database))

    guard = build(MANY_BIGINTS, keyspace())
    assert next_after(guard.rebuild) == 1
    assert_has_all(database, guard)
    assert "without haste" in guard.log()
    assert next_after(lambda: database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")) == 2
    assert_has_all(database, guard)


def test_a_connection_that_cannot_be_had_is_done_without(database, build):
    # One for the log, which counts as well, one that reads, one that asks, one for loads.
    database.execute(f'ALTER DATABASE "{database.name}" CONNECTION LIMIT 7')
    guard = build(MANY_BIGINTS, keyspace(), build_connections=16, load_connections=1)
    assert_has_all(database, guard)


def test_a_copy_that_would_wait_for_a_lock_is_begun_anew(database, build):
    """An index is built anew: that waits for the first connection, and the second would wait for it."""
    gate = Gate(database.server.port)
    other = database.connect()
    other.autocommit = True
    try:
        gate.hold_requests(b"COPY (")
        url = database.url.replace(str(database.server.port), str(gate.port))
        guard = build(MANY_BIGINTS, keyspace(), database=url, ready=False)
        wait_until(lambda: gate.count_held() == 2, PATIENCE, guard.log)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waits = pool.submit(other.cursor().execute, "REINDEX INDEX items_pkey")
            wait_until(lambda: database.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND"
                                              " relation = 'items_pkey'::regclass"), PATIENCE, "it")
            gate.release()
            waits.result(PATIENCE)
        guard.wait_guarding()
        assert "starting over" in guard.log()
        assert guard.status()["last_build_error"] is None and guard.generation() == 1
        assert_has_all(database, guard)
        guard.stop()
    finally:
        other.close()
        gate.close()


def test_changes_while_the_shares_are_read_are_followed(database, build):
    """After the snapshot and before the first page is read, each row gets a new version behind
    the pages that were counted, new rows come, and half of all go."""
    gate, left = Gate(database.server.port), (ROWS + 500) // 2
    try:
        gate.hold_requests(b"COPY (")
        url = database.url.replace(str(database.server.port), str(gate.port))
        guard = build(MANY_BIGINTS, keyspace(), database=url, ready=False)
        gate.wait_held()
        with pytest.raises(psycopg2.errors.LockNotAvailable):
            database.execute("SET lock_timeout = '100ms'; CLUSTER items USING items_pkey")
        database.execute(f"""
            RESET lock_timeout;
            UPDATE items SET payload = 'new';
            INSERT INTO items SELECT i, 'new' FROM generate_series({ROWS + 1}, {ROWS + 500}) i;
            DELETE FROM items WHERE id % 2 = 0""")
        gate.release()
        guard.wait_guarding()
        wait_until(lambda: guard.keyspace()["filter"]["keys"] == left, PATIENCE,
                   lambda: guard.keyspace())
        assert_has_all(database, guard, rows=left)
        assert guard.redis().get("item:2") is None
        assert guard.generation() == 1, guard.log()
        guard.stop()
    finally:
        gate.release()
        gate.close()
