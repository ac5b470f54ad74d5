"""How many places a filter gets: by the server's statistics where they can be relied on, and in
every case for all rows."""
import pytest

from servers import PATIENCE
from waiting import wait_until

ROWS = 120_000
ITEMS = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload"}


@pytest.fixture
def build(database, start_guard):
    """build() publishes the table and starts a guard that follows it, and returns what its status
    says of the filter."""
    database.execute("ALTER ROLE guard REPLICATION")

    def run():
        database.execute("CREATE PUBLICATION nestguard FOR TABLE items"
                         " WITH (publish_via_partition_root = true)")
        guard = start_guard(ITEMS, sync="replication", max_lag="5s")
        return guard.keyspace()["filter"]

    return run


def fill(database, first, last):
    database.execute("INSERT INTO items SELECT i, 'x' FROM generate_series(%s, %s) i",
                     (first, last))
    # Counted in the statistics at once, not when the session has been idle for a while.
    database.execute("SELECT pg_stat_force_next_flush()")


def counts(database):
    """How often the guard counted the table's rows."""
    return database.value("""
        SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
        WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND userid = 'guard'::regrole AND query LIKE 'SELECT count(*) FROM %%'""")


def assert_fits(found, rows):
    assert found["keys"] == rows
    assert found["bits_per_key"] < 18.5
    assert found["stash"] == 0


def test_a_table_with_good_statistics_is_not_counted(database, build):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    fill(database, 1, ROWS)
    database.execute("ANALYZE items")
    fill(database, ROWS + 1, ROWS + 5000)
    assert_fits(build(), ROWS + 5000)
    assert counts(database) == 0


def test_a_table_without_statistics_is_counted(database, build):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    fill(database, 1, ROWS)
    assert_fits(build(), ROWS)
    assert counts(database) == 1


def test_a_table_that_lost_many_rows_is_counted(database, build):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    fill(database, 1, 2 * ROWS)
    database.execute("ANALYZE items")
    database.execute("DELETE FROM items WHERE id > %s", (ROWS,))
    database.execute("SELECT pg_stat_force_next_flush()")
    assert_fits(build(), ROWS)
    assert counts(database) == 1


def test_rows_without_a_key_that_statistics_count_waste_no_memory(database, build):
    database.execute("CREATE TABLE items (id bigint UNIQUE, payload text)")
    database.execute("ALTER TABLE items REPLICA IDENTITY FULL")
    fill(database, 1, ROWS)
    database.execute("INSERT INTO items SELECT NULL, 'x' FROM generate_series(1, %s)", (ROWS,))
    database.execute("SELECT pg_stat_force_next_flush()")
    database.execute("ANALYZE items")
    assert_fits(build(), ROWS)
    assert counts(database) == 0


def test_statistics_that_agree_on_half_of_the_rows_do_no_harm(database, build):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    fill(database, 1, ROWS)
    database.execute("ANALYZE items")
    database.execute("SELECT pg_stat_reset_single_table_counters('items'::regclass)")
    fill(database, ROWS + 1, 2 * ROWS)
    database.execute("UPDATE pg_class SET reltuples = %s,"
                     " relpages = pg_relation_size('items') / 8192 WHERE relname = 'items'",
                     (ROWS,))
    assert_fits(build(), 2 * ROWS)
    assert counts(database) == 0


def test_all_filters_together_are_bounded(database, start_guard):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    fill(database, 1, ROWS)
    second = {**ITEMS, "name": "again", "key": "again:{id}"}
    size = start_guard(ITEMS, max_filter_memory="400kb").keyspace()["filter"]["bytes"]
    assert 200_000 < size < 400_000
    refused = start_guard(ITEMS, second, max_filter_memory="400kb", ready=False)
    wait_until(lambda: "keyspace again: the filter would take more memory" in refused.log(),
               PATIENCE, refused.log)
    start_guard(ITEMS, second, max_filter_memory="600kb")
