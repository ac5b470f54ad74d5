"""A generation that knows nothing, or much less than the one before, does not come into force when
the database has the rows all the same: the snapshot was older than a rewrite of the table."""
import contextlib

import pytest

from following import is_possible, query_alone
from servers import PATIENCE
from waiting import wait_until

ADD_COLUMN = "ALTER TABLE items ADD token uuid NOT NULL DEFAULT gen_random_uuid()"
RELOAD = ("TRUNCATE items; INSERT INTO items"
          " SELECT n, 'payload ' || n FROM generate_series(1, 100) n")


@contextlib.contextmanager
def migrating(database, sql):
    """A transaction that has done this and commits at the end."""
    connection = database.server.connect(database.name)
    connection.autocommit = False
    try:
        cursor = connection.cursor()
        cursor.execute(sql)
        yield
        connection.commit()
    finally:
        connection.close()


def waits_for_table(database):
    """Whether a build waits for a lock, or sees that it would have to."""
    return query_alone(database, """
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'guard' AND pid <> pg_backend_pid()
          AND (wait_event_type = 'Lock' OR query LIKE '%%AccessExclusiveLock%%')""")


def rebuild_across(guard, database, sql):
    """A build begins while the migration is under way, and waits for it."""
    number = guard.generation()
    with migrating(database, sql):
        guard.control("POST", "/v1/rebuild")
        wait_until(lambda: waits_for_table(database), PATIENCE, "the build to wait for the table")
    return number


@pytest.mark.parametrize("sql", [ADD_COLUMN, RELOAD], ids=["add_column", "reload"])
def test_a_rewrite_during_a_poll_denies_nothing(start_guard, database, items, sql):
    guard = start_guard(items(), sync="poll")
    for _ in range(3):
        before = rebuild_across(guard, database, sql.replace("token", f"token_{guard.generation()}"))

        def settled():
            assert guard.redis().get("item:57") == b"payload 57", guard.status()
            return guard.generation() > before and not guard.status()["building"]

        wait_until(settled, PATIENCE, lambda: f"a generation: {guard.status()}\n{guard.log()}")
        assert guard.keyspace()["rows"] == 100
        assert not is_possible(guard, "item:5000")


def test_a_rewrite_during_the_first_build_denies_nothing(start_guard, database, items):
    keyspace = items()
    with migrating(database, ADD_COLUMN):
        guard = start_guard(keyspace, sync="none", ready=False)
        wait_until(lambda: waits_for_table(database), PATIENCE, "the build to wait for the table")
    guard.wait_guarding()
    assert guard.redis().get("item:57") == b"payload 57"
    assert guard.keyspace()["rows"] == 100


def test_a_table_that_was_emptied_is_believed(start_guard, database, items):
    guard = start_guard(items(), sync="poll")
    database.execute("DELETE FROM items")
    guard.rebuild()
    assert guard.keyspace()["rows"] == 0 and guard.is_ready()
    assert not is_possible(guard, "item:57")
    assert guard.status()["last_build_error"] is None


def test_a_table_that_shrank_is_believed(start_guard, database, items):
    guard = start_guard(items(), sync="poll")
    database.execute("DELETE FROM items WHERE id > 10")
    guard.rebuild()
    assert guard.keyspace()["rows"] == 10 and not is_possible(guard, "item:57")
    assert guard.redis().get("item:7") == b"payload 7"
