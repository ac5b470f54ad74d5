"""A build reads the tables that it has looked at, and no other that has the name of one for a while:
the lock on a table keeps its own name, and not its schema's."""
import pytest

from following import publish
from servers import PATIENCE
from test_build_rewrites import through
from waiting import wait_until

ROWS = 30_000  # with their payload more than the 1024 pages that two shares must have
LAST = ROWS - 1  # of the second share; too few for a self-check to see
SHARE = b"ELSE 4294967295 END"  # in the COPY of the last one
LOOKED_UP, FINGERPRINT = b"c.relpersistence = 't'", b"pg_postmaster_start_time"


def keyspace(schema, name="items"):
    return {"name": name, "key": name + ":{id}", "table": f"{schema}.items", "value": "payload",
            "false_positive_rate": 1e-7}


@pytest.fixture
def schemas(database):
    """`shop.items`, and the same in `beside` but for a row."""
    database.execute(f"""
        CREATE SCHEMA shop; CREATE SCHEMA beside; GRANT USAGE ON SCHEMA shop, beside TO guard;
        CREATE TABLE shop.items (id bigint PRIMARY KEY, payload text);
        INSERT INTO shop.items SELECT n, repeat('x', 300) FROM generate_series(1, {ROWS}) n;
        CREATE TABLE beside.items (LIKE shop.items INCLUDING ALL);
        INSERT INTO beside.items SELECT * FROM shop.items WHERE id <> {LAST};
        GRANT SELECT ON shop.items, beside.items TO guard""")


def swap(database, schema):
    database.execute(f"""BEGIN; ALTER SCHEMA {schema} RENAME TO aside;
        ALTER SCHEMA beside RENAME TO {schema}; ALTER SCHEMA aside RENAME TO beside; COMMIT""")


def swapped_while_copied(database, gate, schema="shop"):
    """From before the statement that is held until the build looks at what it has read."""
    gate.wait_held()
    swap(database, schema)
    gate.hold_requests(b"was rewritten")
    gate.release_held()
    gate.wait_held()
    swap(database, schema)
    gate.release()


def refusals(guard):
    """The log says it once a minute."""
    return guard.metric("nestguard_build_failures_total") if "only rows that meet" in guard.log() else 0


def assert_knows_last(guard):
    guard.wait_guarding()
    assert guard.redis().get(f"items:{LAST}") == b"x" * 300, guard.log()
    assert guard.redis().get(f"items:{ROWS + 1}") is None
    assert "was altered while a generation was built" in guard.log()


@pytest.mark.parametrize("sync", ["poll", "none"])
def test_without_a_log(start_guard, database, schemas, gate, sync):
    gate.hold_requests(b"COPY (")
    guard = start_guard(keyspace("shop"), sync=sync, database=through(gate, database), ready=False,
                        build_connections=1)
    swapped_while_copied(database, gate)
    assert_knows_last(guard)
    guard.stop()


def test_a_table_that_is_followed_as_well(start_guard, database, schemas, gate):
    """Both are of the build, and so nothing that it has locked is strange to it."""
    both = keyspace("shop"), keyspace("beside", "others")
    publish(database, *both)
    gate.hold_requests(b"COPY (")
    guard = start_guard(*both, sync="replication", database=through(gate, database), ready=False,
                        build_connections=1)
    swapped_while_copied(database, gate)
    assert_knows_last(guard)
    assert guard.redis().get(f"others:{LAST}") is None
    guard.stop()


@pytest.mark.parametrize("sync", ["replication", "poll"])
def test_a_share_that_another_connection_reads(start_guard, database, schemas, gate, sync):
    publish(database, keyspace("shop"))
    gate.hold_requests(SHARE)
    guard = start_guard(keyspace("shop"), sync=sync, database=through(gate, database), ready=False)
    swapped_while_copied(database, gate)
    assert_knows_last(guard)
    guard.stop()


@pytest.mark.parametrize("sync", ["replication", "poll"])
def test_a_table_that_comes_first_in_another_connections_search_path(start_guard, database, schemas,
                                                                    gate, sync):
    """What the first has locked is as it was."""
    database.execute(f'ALTER ROLE guard IN DATABASE "{database.name}" SET search_path = first, shop')
    database.execute("CREATE SCHEMA first; GRANT USAGE ON SCHEMA first TO guard")
    publish(database, keyspace("shop"))
    gate.hold_requests(SHARE)
    guard = start_guard({**keyspace("shop"), "table": "items"}, sync=sync,
                        database=through(gate, database), ready=False)
    swapped_while_copied(database, gate, "first")
    assert_knows_last(guard)
    guard.stop()


def test_a_table_that_is_looked_at_is_the_one_that_is_followed(start_guard, database, schemas, gate):
    """The publication tells all of the one's rows, and few of the other's."""
    both = keyspace("shop"), keyspace("beside", "others")
    publish(database, *both)
    guard = start_guard(both[0], sync="replication", database=through(gate, database))
    database.execute("ALTER PUBLICATION nestguard SET TABLE shop.items WHERE (id < 50), beside.items")
    wait_until(lambda: refusals(guard), PATIENCE, guard.log)
    gate.hold_requests(LOOKED_UP)
    gate.wait_held()
    swap(database, "shop")
    before = refusals(guard)
    gate.hold_requests(FINGERPRINT)
    gate.release_held()
    gate.wait_held()
    swap(database, "shop")
    gate.release()
    wait_until(lambda: refusals(guard) > before or guard.is_ready(), PATIENCE, guard.log)
    database.execute(f"INSERT INTO shop.items VALUES ({ROWS + 1}, 'new')")
    assert guard.redis().get(f"items:{ROWS + 1}") == b"new", guard.log()
    assert not guard.is_ready()
    guard.stop()


def test_a_schema_whose_alteration_is_not_committed_keeps_no_build_away(start_guard, database,
                                                                        schemas, gate):
    """Nor one that was given up, before the snapshot or behind it."""
    give_up = "BEGIN; ALTER SCHEMA shop RENAME TO aside; ROLLBACK"
    database.execute(give_up)
    gate.hold_requests(b"COPY (")
    guard = start_guard(keyspace("shop"), sync="poll", database=through(gate, database), ready=False)
    gate.wait_held()
    database.execute(give_up)
    migration = database.connect()
    try:
        migration.cursor().execute("ALTER SCHEMA shop RENAME TO aside")
        gate.release()
        guard.wait_guarding()
    finally:
        migration.close()
    assert guard.redis().get(f"items:{LAST}") == b"x" * 300
    assert "starting over" not in guard.log()
    guard.stop()
