"""Views and materialized views as tables, where no log is followed: no row is denied that the view
shows, whatever is done to the tables below it while it is read."""
import contextlib

import pytest

from following import is_possible
from servers import PATIENCE
from test_build_rewrites import (REWRITES, rewrite_before_the_count, through, transaction,
                                 wait_in_the_way)
from waiting import wait_until

SHOWN = {"name": "shown", "key": "shown:{id}", "table": "shown", "value": "payload", "ttl": "10m"}
KINDS = {
    "plain": "CREATE VIEW shown AS SELECT id, payload FROM items",
    "nested": "CREATE VIEW inner_one AS SELECT * FROM items WHERE id > 0;"
              "CREATE VIEW shown AS SELECT id, payload FROM (SELECT * FROM inner_one) i",
    "union": "CREATE TABLE others (id bigint, payload text);"
             "CREATE VIEW shown AS SELECT id, payload FROM items UNION ALL SELECT * FROM others",
    "invoker": "CREATE VIEW shown WITH (security_invoker) AS SELECT id, payload FROM items",
    "materialized": "CREATE MATERIALIZED VIEW shown AS SELECT id, payload FROM items"}
REPLACED = "the view is defined otherwise"


@pytest.fixture
def shown(database, items):
    """shown("plain") makes the view over the items, and gives its keyspace."""
    assert items

    def make(kind, **settings):
        if kind == "invoker" and database.value("SHOW server_version_num") < "150000":
            pytest.skip("needs PostgreSQL 15")
        database.execute(KINDS[kind] + "; GRANT SELECT ON ALL TABLES IN SCHEMA public TO guard")
        return {**SHOWN, **settings}

    return make


def assert_knows_rows(guard):
    assert guard.keyspace("shown")["rows"] == 100
    assert guard.redis().mget("shown:1", "shown:100", "shown:101") == [b"payload 1", b"payload 100",
                                                                      None]


@pytest.mark.parametrize("sync", ["poll", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_view_is_guarded_and_loaded_from(start_guard, shown, kind, sync):
    guard = start_guard(shown(kind), sync=sync)
    assert_knows_rows(guard)
    assert not is_possible(guard, "shown:7000")
    check = guard.keyspace("shown")["self_check"]
    assert (check["outcome"], check["rows_seen"]) == ("passed", 100), guard.log()


def test_a_part_of_a_view_is_guarded_as_json(start_guard, shown):
    guard = start_guard(shown("union", value="json", where="id <= 50"), sync="poll")
    assert guard.redis().get("shown:50") == b'{"id":50,"payload":"payload 50"}'
    assert guard.redis().get("shown:51") is None
    assert guard.redis().get("shown:fifty") is None


@pytest.mark.parametrize("sync", ["poll", "none"])
@pytest.mark.parametrize("kind", ["plain", "nested", "union", "invoker"])
@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_table_below_is_rewritten_when_a_build_begins(start_guard, database, shown, kind, sync,
                                                        rewrite):
    keyspace = shown(kind)
    with transaction(database) as migration:
        migration.execute(REWRITES[rewrite].format("items"))
        guard = start_guard(keyspace, sync=sync, ready=False)
        wait_in_the_way(database)
    guard.wait_guarding()
    assert_knows_rows(guard)


@pytest.mark.parametrize("concurrently", ["", "CONCURRENTLY"])
def test_a_materialized_view_is_refreshed_when_a_build_begins(start_guard, database, shown,
                                                              concurrently):
    keyspace = shown("materialized")
    database.execute("CREATE UNIQUE INDEX ON shown (id)")
    with transaction(database) as migration:
        migration.execute(f"REFRESH MATERIALIZED VIEW {concurrently} shown")
        guard = start_guard(keyspace, sync="poll", ready=False)
        if not concurrently:
            wait_in_the_way(database)
    guard.wait_guarding()
    assert_knows_rows(guard)


@pytest.mark.parametrize("kind, rewrite", [
    ("materialized", "REFRESH MATERIALIZED VIEW shown"),
    ("function", REWRITES["reload"].format("items"))])
def test_what_cannot_be_locked_is_compared_after_it_was_read(start_guard, database, items, gate,
                                                             kind, rewrite):
    """Nothing names the tables that a function reads."""
    assert items
    database.execute(KINDS.get(kind, """
        CREATE FUNCTION listed() RETURNS SETOF items LANGUAGE plpgsql AS
            $$ BEGIN RETURN QUERY SELECT * FROM items; END $$;
        CREATE VIEW shown AS SELECT id, payload FROM listed()""")
        + "; GRANT SELECT ON ALL TABLES IN SCHEMA public TO guard")
    guard = start_guard(SHOWN, sync="poll", database=through(gate, database), poll_interval="1h")
    rewrite_before_the_count(guard, gate, database, rewrite)
    assert_knows_rows(guard)
    assert "was rewritten" in guard.log()
    guard.stop()


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("language", ["plpgsql", "sql"])
def test_what_a_function_reads_is_rewritten_while_a_row_is_loaded(start_guard, database, items, threads,
                                                                  language, rewrite):
    """It is locked only when the statement has its snapshot, which sees the old file's rows alone."""
    assert items
    body = "BEGIN RETURN QUERY SELECT * FROM items; END" if language == "plpgsql" else "SELECT * FROM items"
    database.execute(f"""
        CREATE FUNCTION all_items() RETURNS SETOF items STABLE STRICT LANGUAGE {language} SET work_mem = '4MB'
            AS '{body}';
        CREATE VIEW shown AS SELECT id, payload FROM all_items();
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO guard""")
    guard = start_guard(SHOWN, sync="poll", poll_interval="1h", load_timeout="30s")
    with transaction(database) as migration:
        migration.execute(REWRITES[rewrite].format("items"))
        found = threads.submit(guard.redis().get, "shown:57")
        wait_until(lambda: database.value(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessShareLock'"),
            PATIENCE, "a load that waits")
    assert found.result(PATIENCE) == b"payload 57"
    assert guard.redis().get("shown:nobody") is None


@pytest.mark.parametrize("kind", ["view", "owner's view", "query", "query of an owner's view"])
def test_what_is_read_without_its_children_is_built_from(start_guard, database, items, kind):
    """They are locked by nobody who reads so, and have not been taken away for that."""
    assert items
    database.execute("""
        CREATE TABLE child () INHERITS (items); INSERT INTO child VALUES (500, 'child');
        CREATE VIEW shown AS SELECT id, payload FROM ONLY items;
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO guard""")
    if "owner" in kind:
        database.execute("REVOKE ALL ON items, child FROM guard")
    asked = dict(SHOWN)
    if "query" in kind:
        del asked["table"]
        asked["query"] = "SELECT id, payload FROM " + ("shown" if "owner" in kind else "ONLY items")
    guard = start_guard(asked, sync="poll", poll_interval="1h")
    assert_knows_rows(guard)
    assert not is_possible(guard, "shown:500")
    assert "was taken away" not in guard.log(lines=2000)


@pytest.mark.parametrize("again", ["", " UNION ALL SELECT id, payload FROM items WHERE false"])
def test_children_that_are_read_are_known(start_guard, database, items, again):
    assert items
    database.execute(f"""
        CREATE TABLE child () INHERITS (items); INSERT INTO child VALUES (500, 'child');
        CREATE VIEW shown AS SELECT id, payload FROM items{again};
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO guard""")
    guard = start_guard(SHOWN, sync="poll", poll_interval="1h")
    assert guard.redis().get("shown:500") == b"child"


def test_an_emptied_view_without_an_empty_table_is_looked_at_twice(start_guard, database, shown):
    """The filter in force stays while the database does not answer for the view."""
    guard = start_guard(shown("materialized"), sync="poll", poll_interval="1h")
    database.execute("REFRESH MATERIALIZED VIEW shown WITH NO DATA")
    guard.control("POST", "/v1/rebuild")
    wait_until(lambda: guard.status()["last_build_error"], PATIENCE, guard.status)
    assert guard.redis().get("shown:200") is None
    assert is_possible(guard, "shown:57") and guard.is_ready()
    database.execute("REFRESH MATERIALIZED VIEW shown")
    guard.rebuild()
    assert_knows_rows(guard)


def test_row_security_of_a_table_below_denies_nothing(start_guard, database, shown):
    guard = start_guard(shown("invoker"), sync="poll", poll_interval="1h")
    database.execute("ALTER TABLE items ENABLE ROW LEVEL SECURITY")
    guard.control("POST", "/v1/rebuild")
    wait_until(lambda: guard.status()["last_build_error"], PATIENCE, guard.status)
    with pytest.raises(Exception, match="NESTGUARD"):
        guard.redis().get("shown:57")
    assert is_possible(guard, "shown:57") and guard.is_ready()


def test_of_several_rows_with_one_key_always_the_same_is_loaded(start_guard, database, shown, cache):
    keyspace = shown("union")
    database.execute("INSERT INTO others VALUES (5, 'a first'), (5, 'z last')")
    guard = start_guard(keyspace, sync="poll", poll_interval="1h")
    assert "several rows have the key shown:5" in guard.log()
    assert guard.redis().get("shown:5") == b"a first"
    database.execute("DELETE FROM others WHERE payload = 'a first'")
    cache.client().delete("shown:5")
    assert guard.redis().get("shown:5") == b"payload 5"


def test_rows_without_a_common_key_are_not_called_so(start_guard, shown):
    guard = start_guard(shown("union"), sync="poll")
    assert "several rows" not in guard.log()


@pytest.mark.parametrize("kind, change", [
    ("plain", f"CREATE OR REPLACE VIEW shown AS SELECT id, '{REPLACED}'::text AS payload FROM items"),
    ("nested", "CREATE OR REPLACE VIEW inner_one AS"
               f" SELECT id, '{REPLACED}'::text AS payload, deleted_at FROM items")])
def test_a_view_that_is_replaced_has_its_values_purged(start_guard, database, shown, kind, change):
    guard = start_guard(shown(kind), sync="poll", poll_interval="1h")
    assert guard.redis().get("shown:5") == b"payload 5"
    database.execute(change)
    guard.rebuild()
    wait_until(lambda: guard.redis().get("shown:5") == REPLACED.encode(), PATIENCE, guard.status)


def test_a_view_whose_owner_may_not_read_any_more_denies_nothing(start_guard, database, shown):
    """The database's refusal is never taken for an empty view."""
    guard = start_guard(shown("plain"), sync="poll", poll_interval="1h")
    database.execute("CREATE ROLE nobody_at_all; ALTER VIEW shown OWNER TO nobody_at_all")
    with contextlib.ExitStack() as stack:
        stack.callback(database.execute, "DROP VIEW shown; DROP ROLE nobody_at_all")
        guard.control("POST", "/v1/rebuild")
        wait_until(lambda: guard.status()["last_build_error"], PATIENCE, guard.status)
        assert "permission denied" in guard.status()["last_build_error"]
        assert is_possible(guard, "shown:57") and guard.is_ready()
        guard.stop()
