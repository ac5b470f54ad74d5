"""With `sync: replication`: a table's name that leads to another table for a moment, between two looks
at the catalogue. The stream tells of the one all the while, and what was asked was asked of the other."""
import contextlib

import pytest

from following import publish
from servers import PATIENCE
from waiting import wait_until

ROW = 77  # that the other table lacks
ANOTHERS = 78  # a row of both


@pytest.fixture
def other(database, items):
    """`items` are shop.items, and beside.items are the same but for a row."""
    database.execute(f"""
        CREATE SCHEMA shop; CREATE SCHEMA beside; CREATE SCHEMA first;
        GRANT USAGE ON SCHEMA shop, beside, first TO guard;
        ALTER ROLE guard IN DATABASE "{database.name}" SET search_path = first, shop;
        ALTER TABLE items SET SCHEMA shop;
        CREATE TABLE beside.items (LIKE shop.items INCLUDING ALL);
        INSERT INTO beside.items SELECT * FROM shop.items WHERE id <> {ROW};
        GRANT SELECT, DELETE ON shop.items, beside.items TO guard""")
    return items(table="shop.items")


def swap(database, schema):
    database.execute(f"""BEGIN; ALTER SCHEMA {schema} RENAME TO aside;
        ALTER SCHEMA beside RENAME TO {schema}; ALTER SCHEMA aside RENAME TO beside; COMMIT""")


@pytest.fixture
def while_swapped(start_guard, database, other, gate):
    """while_swapped(ask) asks a guard of shop.items what it sees of that name's other meaning; or one
    of `items`, before which another comes in the search path."""
    def run(ask, schema="shop"):
        publish(database, other)
        keyspace = {**other, "table": "items"} if schema == "first" else other
        guard = start_guard(keyspace, sync="replication", max_lag="10s",
                            database=database.url.replace(str(database.server.port), str(gate.port)))
        server = database.value("SELECT '@' || floor(extract(epoch FROM pg_postmaster_start_time()))")
        gate.hold_answers(server.encode())  # a look at the catalogue
        gate.wait_held()
        swap(database, schema)
        answer = ask(guard)
        swap(database, schema)
        gate.release()
        return guard, answer

    return run


def assert_found(guard, n):
    wait_until(lambda: guard.redis().get(f"item:{n}") == b"payload %d" % n, PATIENCE, guard.log)
    assert guard.generation() == 1


@pytest.mark.parametrize("schema", ["shop", "first"])
def test_a_row_that_the_other_table_lacked_is_found(while_swapped, schema):
    guard, answer = while_swapped(lambda guard: guard.redis().get(f"item:{ROW}"), schema)
    assert answer is None
    assert_found(guard, ROW)


def test_a_deletion_that_the_other_table_confirmed_does_not_last(while_swapped):
    guard, answer = while_swapped(lambda guard: guard.control("DELETE", f"/v1/keys/item:{ROW}"))
    assert answer.status_code == 204
    assert_found(guard, ROW)


def test_a_row_that_was_deleted_from_the_other_table_is_found(while_swapped):
    guard, answer = while_swapped(
        lambda guard: guard.control("DELETE", f"/v1/keys/item:{ANOTHERS}?row=delete"))
    assert answer.status_code == 204
    assert_found(guard, ANOTHERS)


def test_a_row_that_moves_with_the_name_is_always_found(start_guard, database, other, threads):
    """A load that has found the table waits for its index, and reads it when its name leads to another,
    which has had the row since before."""
    publish(database, other)
    guard = start_guard(other, sync="replication", load_timeout="30s")
    with contextlib.closing(database.connect()) as connection:
        migration = connection.cursor()
        migration.execute("REINDEX INDEX shop.items_pkey")
        found = threads.submit(guard.redis().get, f"item:{ROW}")
        wait_until(lambda: database.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND"
                                          " relation = 'shop.items_pkey'::regclass"),
                   PATIENCE, "a load that waits")
        migration.execute(f"""INSERT INTO beside.items SELECT * FROM shop.items WHERE id = {ROW};
            ALTER SCHEMA shop RENAME TO aside; ALTER SCHEMA beside RENAME TO shop;
            DELETE FROM aside.items WHERE id = {ROW}""")
        connection.commit()
        assert found.result(PATIENCE) == b"payload %d" % ROW
