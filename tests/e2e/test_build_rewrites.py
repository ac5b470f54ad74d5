"""Whatever rewrites a table gives it rows that no earlier snapshot sees: a build that began before
must not take the table for empty, nor take anything from an application that locks tables itself."""
import concurrent.futures
import contextlib

import psycopg2
import pytest

from following import follow, publish, query_alone, wait_followed, wait_generation
from servers import PATIENCE
from waiting import wait_until

ROWS = 20_000
# Of the notes those that the keyspace counts lie on one or two pages of a thousand, in the middle:
# the self-check's sample has none of them.
FIRST, KEPT = 10_001, 20
NOTES = {"name": "notes", "key": "note:{id}", "table": "notes", "value": "payload",
         "where": "gone_at IS NULL", "false_positive_rate": 1e-7}
REWRITES = {
    "column": "ALTER TABLE {0} ADD token uuid NOT NULL DEFAULT gen_random_uuid()",
    "reload": "CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM {0}; TRUNCATE {0};"
              " INSERT INTO {0} SELECT * FROM kept"}

# LOCK TABLE would need all of them.
COLUMN_GRANT = "REVOKE ALL ON {0} FROM guard; GRANT SELECT (id, payload) ON {0} TO guard"


@pytest.fixture
def notes(database):
    database.execute(f"""
        CREATE TABLE notes (id bigint PRIMARY KEY, payload text, gone_at timestamptz);
        ALTER TABLE notes REPLICA IDENTITY FULL;
        INSERT INTO notes SELECT n, 'note ' || n || repeat(' ', 400),
               CASE WHEN n NOT BETWEEN {FIRST} AND {FIRST + KEPT - 1} THEN now() END
        FROM generate_series(1, {ROWS}) n""")
    return NOTES


@pytest.fixture
def parts(database):
    database.execute("""
        CREATE TABLE parts (id bigint PRIMARY KEY, payload text) PARTITION BY RANGE (id);
        CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100);
        CREATE TABLE high PARTITION OF parts FOR VALUES FROM (100) TO (1000);
        INSERT INTO parts VALUES (1, 'low'), (200, 'high')""")


@contextlib.contextmanager
def transaction(database):
    """A migration; commits at its end, unless it has been broken."""
    connection = database.connect()
    try:
        yield connection.cursor()
        connection.commit()
    finally:
        connection.close()


def give_up_detaching(database):
    """The first half of it is done for good; the second one waits for whoever reads the table."""
    with contextlib.closing(database.server.connect(database.name)) as connection:
        cursor = connection.cursor()
        cursor.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg2.errors.QueryCanceled):
            cursor.execute("ALTER TABLE parts DETACH PARTITION high CONCURRENTLY")


def wait_in_the_way(database):
    """Until a build waits for a lock, or sees that it would have to."""
    wait_until(lambda: query_alone(database, """
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'guard' AND pid <> pg_backend_pid()
          AND (wait_event_type = 'Lock' OR query LIKE '%%AccessExclusiveLock%%')"""),
               PATIENCE, "a build that cannot have a lock")


def through(gate, database):
    return database.url.replace(str(database.server.port), str(gate.port))


def assert_knows_items(guard):
    assert guard.keyspace()["rows"] == 100
    assert guard.redis().mget("item:1", "item:100", "item:101") == [b"payload 1", b"payload 100",
                                                                    None]


def found_notes(guard):
    found = guard.redis().mget("note:10001", "note:10020", "note:10021", "note:0")
    return [value and value.rstrip() for value in found]


def assert_knows_notes(guard):
    assert guard.keyspace("notes")["filter"]["keys"] == KEPT
    assert found_notes(guard) == [b"note 10001", b"note 10020", None, None]


@pytest.mark.parametrize("sync", ["poll", "none"])
@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_table_that_is_rewritten_when_a_build_begins(start_guard, database, items, sync, rewrite):
    with transaction(database) as migration:
        migration.execute(REWRITES[rewrite].format("items"))
        guard = start_guard(items(), sync=sync, ready=False)
        wait_in_the_way(database)
    guard.wait_guarding()
    assert_knows_items(guard)


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_table_that_is_rewritten_while_another_is_waited_for(start_guard, database, items, notes,
                                                               rewrite):
    with database.locked("items"):
        guard = start_guard(items(), notes, sync="poll", ready=False)
        wait_in_the_way(database)
        with transaction(database) as migration:
            migration.execute(REWRITES[rewrite].format("notes"))
    guard.wait_guarding()
    assert_knows_items(guard)
    assert_knows_notes(guard)


def rewrite_before_the_count(guard, gate, database, rewrite):
    """In a second build, behind its snapshot; until that build is in force."""
    gate.hold_requests(b"SELECT count(*) FROM")
    guard.control("POST", "/v1/rebuild")
    gate.wait_held()
    with transaction(database) as migration:
        migration.execute(rewrite)
    gate.release()
    wait_generation(guard, 2)


@pytest.mark.parametrize("rewrite", [REWRITES["column"].format("allowed"),
                                     REWRITES["reload"].format("allowed"),
                                     "REFRESH MATERIALIZED VIEW chosen"],
                         ids=["column", "reload", "refresh"])
def test_what_the_condition_asks_is_not_rewritten_behind_the_snapshot(start_guard, database, items,
                                                                      gate, rewrite):
    """Nobody knows of it before the first question that reads it: so it is looked at afterwards."""
    database.execute("""
        CREATE TABLE allowed AS SELECT id FROM items;
        CREATE MATERIALIZED VIEW chosen AS SELECT id FROM items""")
    keyspace = items(where="id IN (SELECT id FROM allowed) AND id IN (SELECT id FROM chosen)")
    guard = start_guard(keyspace, sync="poll", database=through(gate, database), poll_interval="1h")
    rewrite_before_the_count(guard, gate, database, rewrite)
    assert_knows_items(guard)
    assert "was rewritten" in guard.log()
    guard.stop()


# ---- what cannot be locked before it is read ----

def test_a_table_of_which_some_columns_may_be_read_is_waited_for(start_guard, database, items):
    database.execute(COLUMN_GRANT.format("items"))
    with transaction(database) as migration:
        migration.execute(REWRITES["column"].format("items"))
        guard = start_guard(items(), sync="poll", ready=False)
        wait_in_the_way(database)
    guard.wait_guarding()
    assert_knows_items(guard)


@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
def test_a_table_of_which_some_columns_may_be_read_is_built_from(start_guard, database, items,
                                                                 sync):
    database.execute(COLUMN_GRANT.format("items"))
    publish(database, items())
    guard = start_guard(items(), sync=sync)
    assert_knows_items(guard)
    assert "starting over" not in guard.log()


@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
@pytest.mark.parametrize("where", [None, "id < 100"], ids=["all", "pruned"])
def test_partitions_of_which_some_columns_may_be_read_are_built_from(start_guard, database, items,
                                                                     parts, sync, where):
    """What the condition rules out is locked by nobody."""
    database.execute(COLUMN_GRANT.format("parts"))
    keyspace = items(table="parts", where=where) if where else items(table="parts")
    publish(database, keyspace)
    guard = start_guard(keyspace, sync=sync)
    assert guard.redis().mget("item:1", "item:2") == [b"low", None]
    assert guard.keyspace()["rows"] == (1 if where else 2)
    assert "starting over" not in guard.log()


@pytest.mark.parametrize("sync, where", [
    ("replication", None), ("poll", None), ("poll", "id IN (SELECT id FROM parts)")],
    ids=["replication", "poll", "condition"])
def test_a_partition_that_is_replaced_before_what_could_not_be_locked_is_read(
        start_guard, database, items, parts, gate, sync, where):
    """Its rows are in another one now, which has none for a snapshot of before."""
    database.execute(COLUMN_GRANT.format("parts"))
    database.execute("UPDATE items SET payload = 'low';"
                     "INSERT INTO items VALUES (200, 'high')")
    keyspace = items(where=where) if where else items(table="parts")
    if sync == "replication":
        publish(database, keyspace)
    guard = start_guard(keyspace, sync=sync, database=through(gate, database), poll_interval="1h")
    gate.hold_requests(b"SELECT count(*) FROM")
    guard.control("POST", "/v1/rebuild")
    gate.wait_held()
    with transaction(database) as migration:
        migration.execute("""
            ALTER TABLE parts DETACH PARTITION high;
            CREATE TABLE higher (LIKE parts INCLUDING ALL);
            INSERT INTO higher SELECT * FROM high;
            DROP TABLE high;
            ALTER TABLE parts ATTACH PARTITION higher FOR VALUES FROM (100) TO (1000)""")
    gate.release()
    wait_generation(guard, 2)
    assert guard.redis().mget("item:1", "item:200", "item:2") == [b"low", b"high", None]
    assert "starting over" in guard.log()
    guard.stop()


@pytest.mark.parametrize("grants", [False, True], ids=["table", "columns"])
def test_a_detachment_that_was_given_up_does_not_keep_a_build_away(start_guard, database, items,
                                                                   parts, grants):
    """LOCK TABLE locks such a partition still, and nobody reads it."""
    if grants:
        database.execute(COLUMN_GRANT.format("parts"))
    with transaction(database) as reader:
        reader.execute("SELECT FROM parts")
        give_up_detaching(database)
    publish(database, items(table="parts"))
    guard = start_guard(items(table="parts"), sync="replication")
    assert guard.redis().mget("item:1", "item:200") == [b"low", None]
    assert "starting over" not in guard.log()


# ---- with a log to follow ----

@pytest.mark.parametrize("rewrite", [
    *REWRITES.values(),
    "CREATE TABLE fresh (LIKE {0} INCLUDING ALL); INSERT INTO fresh SELECT * FROM {0};"
    "ALTER TABLE fresh REPLICA IDENTITY FULL; DROP TABLE {0}; ALTER TABLE fresh RENAME TO {0};"
    "GRANT SELECT ON {0} TO guard;"
    "ALTER PUBLICATION nestguard ADD TABLE {0} WHERE (gone_at IS NULL)"],
    ids=["column", "reload", "replaced"])
@pytest.mark.parametrize("renews", [False, True], ids=["start", "renewal"])
def test_a_rewrite_between_the_slot_and_the_locks(start_guard, database, items, notes, gate, renews,
                                                  rewrite):
    def begin():
        gate.hold_requests(b"BEGIN ISOLATION LEVEL")

    keyspaces = [items(where="deleted_at IS NULL"), notes]
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    publish(database, *keyspaces)
    if not renews:
        begin()
    guard = start_guard(*keyspaces, sync="replication", database=through(gate, database),
                        ready=renews, max_lag="5s")
    if renews:
        begin()
        guard.control("POST", "/v1/rebuild")
    gate.wait_held()
    with transaction(database) as migration:
        migration.execute(rewrite.format("notes"))
    gate.release()
    wait_generation(guard, 2 if renews else 1)
    database.execute("INSERT INTO notes VALUES (0, 'new')")
    wait_followed(database)
    assert_knows_items(guard)
    assert found_notes(guard) == [b"note 10001", b"note 10020", None, b"new"]
    assert guard.keyspace("notes")["filter"]["keys"] == KEPT + 1
    assert guard.generation() == (2 if renews else 1), guard.log()
    guard.stop()


def swap(*names):
    """Gives the first table the second one's name, and that a third."""
    first, second, third = names
    return f"BEGIN; ALTER TABLE {second} RENAME TO {third};" \
           f"ALTER TABLE {first} RENAME TO {second}; COMMIT"


def test_a_table_whose_name_another_has_in_the_snapshot_alone(start_guard, database, items, gate):
    """What is followed is the one, and what was read the other, which lacks a row: too few for the
    self-check to see."""
    database.execute(f"""
        INSERT INTO items (id, payload) SELECT n, 'payload ' || n FROM generate_series(101, {ROWS}) n;
        CREATE TABLE fresh (LIKE items INCLUDING ALL);
        INSERT INTO fresh SELECT * FROM items WHERE id <> 77;
        GRANT SELECT ON fresh TO guard""")
    publish(database, items())
    database.execute("ALTER PUBLICATION nestguard ADD TABLE fresh")
    gate.hold_requests(b"CREATE_REPLICATION_SLOT")
    guard = start_guard({**items(), "table": "items"}, sync="replication",
                        database=through(gate, database), ready=False)
    gate.wait_held()
    database.execute(swap("fresh", "items", "old"))
    gate.hold_requests(b"set_config('synchronous_commit'")
    gate.release_held()
    gate.wait_held()  # the build has given up its locks
    database.execute(swap("old", "items", "fresh"))
    gate.release()
    guard.wait_guarding()
    assert guard.redis().get("item:77") == b"payload 77", guard.log()
    assert "was altered before the snapshot" in guard.log()
    guard.stop()


def test_a_partition_that_is_attached_between_the_slot_and_the_locks(start_guard, database, items,
                                                                     gate):
    database.execute("""
        CREATE TABLE parts (id bigint PRIMARY KEY, payload text) PARTITION BY RANGE (id);
        CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100);
        CREATE TABLE high (LIKE parts INCLUDING ALL);
        INSERT INTO parts VALUES (1, 'low')""")
    keyspace = items(table="parts")
    publish(database, keyspace)
    gate.hold_requests(b"BEGIN ISOLATION LEVEL")
    guard = start_guard(keyspace, sync="replication", database=through(gate, database), ready=False)
    gate.wait_held()
    database.execute("INSERT INTO high VALUES (200, 'high');"
                     "ALTER TABLE parts ATTACH PARTITION high FOR VALUES FROM (100) TO (1000)")
    gate.release()
    guard.wait_guarding()
    assert "public.high was added" in guard.log()
    assert guard.generation() == 1
    assert guard.redis().mget("item:1", "item:200", "item:2") == [b"low", b"high", None]
    guard.stop()


def test_a_partition_that_was_elsewhere_between_the_slot_and_the_locks(start_guard, database, items,
                                                                       gate, parts):
    """It is the same table again, and nobody was told what it was filled with meanwhile."""
    keyspace = items(table="parts")
    publish(database, keyspace)
    gate.hold_requests(b"BEGIN ISOLATION LEVEL")
    guard = start_guard(keyspace, sync="replication", database=through(gate, database), ready=False)
    gate.wait_held()
    database.execute("ALTER TABLE parts DETACH PARTITION high; INSERT INTO high VALUES (300, 'new');"
                     "ALTER TABLE parts ATTACH PARTITION high FOR VALUES FROM (100) TO (1000)")
    gate.release()
    guard.wait_guarding()
    assert guard.redis().mget("item:1", "item:200", "item:300", "item:2") == [b"low", b"high", b"new",
                                                                             None]
    guard.stop()


@pytest.mark.parametrize("change, before", [
    ("SET (publish = 'update, delete, truncate')",
     "SET (publish = 'insert, update, delete, truncate')"),
    ("SET TABLE items WHERE (id < 50)", "SET TABLE items WHERE (id < 500)")],
                         ids=["operations", "condition"])
def test_a_publication_that_is_altered_while_it_is_looked_at(follow, database, items, change,
                                                             before):
    """The last question of the survey, about the condition, waits for the table; what was found out
    before it is not true any more then."""
    guard = follow(items(where="id < 500"))
    with transaction(database) as migration:
        migration.execute("LOCK TABLE items")
        guard.control("POST", "/v1/rebuild")
        wait_in_the_way(database)
        migration.execute(f"ALTER PUBLICATION nestguard {change}")

    def has_decided():
        error = guard.status()["last_build_error"] or "a table"
        if guard.is_ready():
            return guard.generation() > 1
        return not error.startswith("a table")

    wait_until(has_decided, PATIENCE, guard.log)
    database.execute("INSERT INTO items VALUES (300, 'new')")
    assert guard.redis().get("item:300") == b"new"
    assert not guard.is_ready()
    database.execute(f"ALTER PUBLICATION nestguard {before}")
    guard.wait_guarding()
    assert guard.redis().mget("item:300", "item:301") == [b"new", None]


# ---- the application's locks come first ----

@pytest.mark.parametrize("sync", ["poll", "replication"])
def test_a_migration_that_locks_in_another_order_is_no_deadlocks_victim(start_guard, database,
                                                                        items, notes, sync):
    publish(database, items(), notes)
    guard = start_guard(items(), notes, sync=sync, poll_interval="1h", max_lag="5s")
    with transaction(database) as migration:
        migration.execute("SET deadlock_timeout = '10ms'; LOCK TABLE notes")
        guard.control("POST", "/v1/rebuild")
        wait_in_the_way(database)
        migration.execute("LOCK TABLE items; " + REWRITES["column"].format("items"))
    wait_generation(guard, 2)
    assert_knows_items(guard)
    assert_knows_notes(guard)


def test_a_migration_that_builds_an_index_anew_is_no_deadlocks_victim(start_guard, database, items):
    with transaction(database) as migration:
        migration.execute("SET deadlock_timeout = '10ms'; REINDEX INDEX items_pkey")
        guard = start_guard(items(), sync="poll", ready=False)
        wait_in_the_way(database)
        migration.execute(REWRITES["column"].format("items"))
    guard.wait_guarding()
    assert_knows_items(guard)


def test_a_table_that_is_locked_again_and_again_is_read_at_last(start_guard, database, items):
    def churn():
        for _ in range(30):
            query_alone(database, "TRUNCATE items; INSERT INTO items SELECT n, 'payload ' || n"
                                  " FROM generate_series(1, 100) n; SELECT pg_sleep(0.02)")

    with concurrent.futures.ThreadPoolExecutor() as pool:
        churning = pool.submit(churn)
        guard = start_guard(items(), sync="poll")
        assert guard.keyspace()["rows"] == 100
        churning.result()


@pytest.mark.parametrize("sync", ["replication", "poll"])
def test_a_table_that_is_locked_at_the_start_does_not_end_it(start_guard, database, items, sync):
    """Longer than `serve` waits for an answer about the condition; the build asks again."""
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    publish(database, items(where="deleted_at IS NULL"))
    with database.locked("items"):
        guard = start_guard(items(where="deleted_at IS NULL"), sync=sync, ready=False)
    guard.wait_guarding()
    assert "warning: where could not be tried" in guard.log()
    assert_knows_items(guard)


# ---- whom it waits for ----

def wait_named(guard, *words):
    def is_named():
        waits = (guard.status()["building"] or {}).get("waits") or ""
        return all(word in waits for word in words)

    wait_until(is_named, PATIENCE, lambda: f"{words}: {guard.status()['building']}\n{guard.log()}")


def test_an_orphaned_prepared_transaction_that_the_slot_waits_for_is_named(follow, database, items):
    name = f"left behind {database.name}"
    database.execute(f"BEGIN; DELETE FROM items WHERE id = 1; PREPARE TRANSACTION '{name}'")
    try:
        guard = follow(items(), ready=False)
        wait_named(guard, f"ROLLBACK PREPARED '{name}'", database.name)
        assert guard.metrics()["nestguard_building_waits"] == 1
        wait_until(lambda: f"ROLLBACK PREPARED '{name}'" in guard.log(), PATIENCE, guard.log)
    finally:
        database.execute(f"ROLLBACK PREPARED '{name}'")
    guard.wait_guarding()
    assert guard.metrics()["nestguard_building_waits"] == 0


@pytest.mark.parametrize("sync", ["poll", "replication"])
def test_a_transaction_that_a_build_waits_for_is_named(start_guard, database, items, sync):
    publish(database, items())
    connection = database.connect()
    try:
        connection.cursor().execute("SET application_name = 'sleeper'; LOCK TABLE items")
        guard = start_guard(items(), sync=sync, ready=False)
        wait_named(guard, "sleeper", f"pg_terminate_backend({connection.info.backend_pid})")
    finally:
        connection.close()
    guard.wait_guarding()


def test_a_prepared_transaction_that_holds_a_lock_is_named(start_guard, database, items):
    name = f"locked {database.name}"
    database.execute(f"BEGIN; LOCK TABLE items; PREPARE TRANSACTION '{name}'")
    try:
        guard = start_guard(items(), sync="poll", ready=False)
        wait_named(guard, "a lock on items", f"ROLLBACK PREPARED '{name}'")
    finally:
        database.execute(f"ROLLBACK PREPARED '{name}'")
    guard.wait_guarding()
