"""SQL statements in place of tables, where no log is followed: what holds of a view holds of a query,
which is one without a name."""
import json
import re
import signal
import time

import pytest

from checking import assert_in_order, check
from following import is_possible
from servers import PATIENCE
from test_build_rewrites import (REWRITES, rewrite_before_the_count, through, transaction,
                                 wait_in_the_way)
from waiting import INTERVAL, wait_until

QUERIES = {
    "plain": "SELECT id, payload FROM items",
    "union": "SELECT id, payload FROM items UNION ALL SELECT * FROM others;",
    "join": "SELECT i.id, coalesce(o.payload, i.payload) AS payload"
            " FROM items i LEFT JOIN others o USING (id) -- the join",
    "with": "WITH unread AS (SELECT * FROM items) SELECT id, payload FROM shown",
    "values": "SELECT id::bigint, 'payload ' || id AS payload FROM generate_series(1, 100) AS id"
              "\n-- all of them;\n"}


def shown(query, **settings):
    made = {"name": "shown", "key": "shown:{id}", "query": QUERIES.get(query, query),
            "value": "payload", "ttl": "10m", **settings}
    return {name: value for name, value in made.items() if value is not None}


@pytest.fixture
def tables(database, items):
    assert items
    database.execute("""
        CREATE TABLE others (id bigint, payload text);
        CREATE VIEW shown AS SELECT id, payload FROM items;
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO guard""")


def assert_knows_rows(guard):
    assert guard.keyspace("shown")["rows"] == 100
    assert guard.redis().mget("shown:1", "shown:100", "shown:101") == [b"payload 1", b"payload 100",
                                                                      None]


def wait_build_error(guard):
    wait_until(lambda: guard.status()["last_build_error"], PATIENCE, guard.status)
    return guard.status()["last_build_error"]


@pytest.mark.parametrize("sync", ["poll", "none"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_is_guarded_and_loaded_from(start_guard, tables, query, sync):
    guard = start_guard(shown(query), sync=sync)
    assert_knows_rows(guard)
    assert not is_possible(guard, "shown:7000")
    keyspace = guard.keyspace("shown")
    assert (keyspace["query"], keyspace["table"]) == (QUERIES[query], None)
    check = keyspace["self_check"]
    assert (check["outcome"], check["rows_seen"]) == ("passed", 100), guard.log()


def test_a_part_of_a_query_is_guarded_as_json(start_guard, tables):
    guard = start_guard(shown("union", value="json", where="id <= 50 -- half"), sync="poll")
    assert guard.redis().get("shown:50") == b'{"id":50,"payload":"payload 50"}'
    assert guard.redis().get("shown:51") is None
    assert guard.redis().get("shown:fifty") is None


def test_a_query_is_guarded_where_the_application_loads(start_guard, database, tables):
    guard = start_guard(shown("union", value=None, on_miss="pass"), sync="poll", poll_interval="1h")
    assert guard.redis().get("shown:101") is None and is_possible(guard, "shown:5")
    database.execute("INSERT INTO others VALUES (101, 'late')")
    guard.rebuild()
    assert is_possible(guard, "shown:101")


@pytest.mark.parametrize("sync", ["poll", "none"])
@pytest.mark.parametrize("query", ["plain", "union", "join", "with"])
@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_table_below_is_rewritten_when_a_build_begins(start_guard, database, tables, query, sync,
                                                        rewrite):
    with transaction(database) as migration:
        migration.execute(REWRITES[rewrite].format("items"))
        guard = start_guard(shown(query), sync=sync, ready=False)
        wait_in_the_way(database)
    guard.wait_guarding()
    assert_knows_rows(guard)


@pytest.mark.parametrize("query, rewrite, said", [
    ("SELECT id, payload FROM stored", "REFRESH MATERIALIZED VIEW stored", "was rewritten"),
    ("SELECT id, payload FROM listed()", REWRITES["reload"].format("items"), "was rewritten"),
    ("SELECT id, payload FROM listed()",
     "INSERT INTO next.items SELECT * FROM items; ALTER TABLE items RENAME TO former;"
     "ALTER TABLE next.items SET SCHEMA public", "is another table")])
def test_what_cannot_be_locked_is_compared_after_it_was_read(start_guard, database, tables, gate,
                                                             query, rewrite, said):
    """Nothing names the tables that a function reads."""
    database.execute("""
        CREATE MATERIALIZED VIEW stored AS SELECT * FROM items;
        CREATE FUNCTION listed() RETURNS SETOF items LANGUAGE plpgsql AS
            $$ BEGIN RETURN QUERY SELECT id, payload, deleted_at FROM items; END $$;
        CREATE SCHEMA next; CREATE TABLE next.items (LIKE items);
        GRANT SELECT ON ALL TABLES IN SCHEMA public, next TO guard""")
    guard = start_guard(shown(query), sync="poll", database=through(gate, database),
                        poll_interval="1h")
    rewrite_before_the_count(guard, gate, database, rewrite)
    assert_knows_rows(guard)
    assert said in guard.log()
    guard.stop()


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_table_below_is_rewritten_while_a_row_is_loaded(start_guard, database, tables, threads,
                                                          rewrite):
    """The load waits for the migration, and finds its row."""
    guard = start_guard(shown("union"), sync="poll", poll_interval="1h", load_timeout="30s")
    assert guard.redis().get("shown:1") == b"payload 1"
    with transaction(database) as migration:
        migration.execute(REWRITES[rewrite].format("items"))
        found = threads.submit(guard.redis().get, "shown:57")
        wait_until(lambda: database.value(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessShareLock'"),
            PATIENCE, "a load that waits")
    assert found.result(PATIENCE) == b"payload 57"


def test_a_table_below_that_is_locked_for_long_fills_no_log(start_guard, database, tables):
    """Each plan that cannot be had is a line in the server's log; who is in the way is asked without one."""
    assert tables is None

    def refused():
        return database.server.log(lines=10**6).count("due to lock timeout")

    with database.locked():
        guard = start_guard(shown("plain"), sync="none", ready=False)
        wait_until(refused, PATIENCE, "a plan that is refused")
        before, begun = refused(), time.monotonic()
        while time.monotonic() < begun + 5:
            assert refused() - before < 12
            time.sleep(INTERVAL)
        wait_until(lambda: "for a lock on a table that a query reads; locked are: items by"
                   in guard.log(lines=2000), PATIENCE, "a line in the guard's log")
    guard.wait_guarding()
    assert_knows_rows(guard)


def test_of_several_rows_with_one_key_always_the_same_is_loaded(start_guard, database, tables,
                                                                cache):
    database.execute("INSERT INTO others VALUES (5, 'a first'), (5, 'z last')")
    guard = start_guard(shown("union"), sync="poll", poll_interval="1h")
    assert "several rows have the key shown:5" in guard.log()
    assert guard.redis().get("shown:5") == b"a first"
    database.execute("DELETE FROM others WHERE payload = 'a first'")
    cache.client().delete("shown:5")
    assert guard.redis().get("shown:5") == b"payload 5"


def test_row_security_of_a_table_below_denies_nothing(start_guard, database, tables):
    guard = start_guard(shown("union"), sync="poll", poll_interval="1h")
    database.execute("ALTER TABLE items ENABLE ROW LEVEL SECURITY")
    guard.control("POST", "/v1/rebuild")
    assert "row-level security" in wait_build_error(guard)
    with pytest.raises(Exception, match="NESTGUARD"):
        guard.redis().get("shown:57")
    assert is_possible(guard, "shown:57") and guard.is_ready()


def test_a_query_that_fails_denies_nothing(start_guard, database, tables):
    """Neither all rows nor one: an error is never taken for an absence."""
    guard = start_guard(shown("SELECT id, payload, 1 / (1000 - id) AS share, length(payload) FROM items"
                              " WHERE 1 / (1000 - id) IS NOT NULL"), sync="poll", poll_interval="1h")
    database.execute("INSERT INTO items (id, payload) VALUES (1000, 'late')")
    guard.redis().set("shown:1000", "x")
    guard.redis().delete("shown:1000")
    with pytest.raises(Exception, match="NESTGUARD"):
        guard.redis().get("shown:1000")
    guard.control("POST", "/v1/rebuild")
    assert "division by zero" in wait_build_error(guard)
    assert guard.redis().get("shown:57") == b"payload 57" and guard.is_ready()


def test_a_constant_that_is_none_any_more_denies_nothing(start_guard, database, tables):
    """The query's own error is about a value, as that of a key that no column can hold."""
    database.execute("CREATE TYPE color AS ENUM ('mauve'); CREATE TABLE inks (id bigint, payload"
                     " text, color color); INSERT INTO inks VALUES (1, 'one', 'mauve');"
                     "GRANT SELECT ON inks TO guard")
    guard = start_guard(shown("SELECT id, payload FROM inks WHERE color = 'mauve'"), sync="poll",
                        poll_interval="1h")
    database.execute("ALTER TYPE color RENAME VALUE 'mauve' TO 'red'; ALTER TABLE inks ADD x int")
    with pytest.raises(Exception, match="NESTGUARD"):
        guard.redis().get("shown:1")
    assert guard.redis().get("shown:2") is None


def test_the_row_of_a_query_cannot_be_deleted(start_guard, tables):
    guard = start_guard(shown("union"), sync="poll")
    answer = guard.control("DELETE", "/v1/keys/shown:5?row=delete")
    assert answer.status_code == 409 and "one of a query" in answer.text
    assert guard.redis().get("shown:5") == b"payload 5"


@pytest.mark.parametrize("change", [
    "CREATE OR REPLACE VIEW shown AS SELECT id, 'otherwise'::text AS payload FROM items",
    "CREATE OR REPLACE VIEW deeper AS SELECT id, 'otherwise'::text AS payload FROM items"])
def test_a_view_below_that_is_replaced_has_its_values_purged(start_guard, database, tables, change):
    database.execute("""CREATE VIEW deeper AS SELECT id, payload FROM items;
        CREATE OR REPLACE VIEW shown AS SELECT id, payload FROM deeper;
        GRANT SELECT ON ALL TABLES IN SCHEMA public TO guard""")
    guard = start_guard(shown("with"), sync="poll", poll_interval="1h")
    assert guard.redis().get("shown:5") == b"payload 5"
    database.execute(change)
    guard.rebuild()
    wait_until(lambda: guard.redis().get("shown:5") == b"otherwise", PATIENCE, guard.status)


def test_another_query_is_built_anew(start_guard, tables):
    guard = start_guard(shown("plain"), sync="none")
    config = json.loads(guard.file.read_text())
    guard.configure({**config, "keyspaces": [shown("SELECT id + 100 AS id, payload FROM items")]})
    guard.signal(signal.SIGHUP)
    wait_until(lambda: guard.redis().get("shown:200") == b"payload 100", PATIENCE, guard.status)
    assert guard.redis().get("shown:1") is None


REFUSED = {
    "two statements": ("SELECT 1 AS id, 'a' AS payload; SELECT 2", "one SELECT"),
    "a statement that writes": ("DELETE FROM items RETURNING id, payload", "one SELECT"),
    "one that writes below": ("WITH gone AS (DELETE FROM items RETURNING *) SELECT * FROM gone",
                              "top level"),
    "a comment behind its semicolon": ("SELECT id, payload FROM items; -- all", "nothing behind"),
    "a parameter": ("SELECT id, payload FROM items WHERE id > $1", "no parameters"),
    "an open comment": ("SELECT id, payload FROM items /* all", "comment"),
    "a table that is not there": ("SELECT id, payload FROM item", "item"),
    "no key": ("SELECT payload FROM items", "no column id"),
    "no value": ("SELECT id FROM items", "no column payload"),
    "a key twice": ("SELECT id, id, payload FROM items", "ambiguous")}


@pytest.mark.parametrize("what", REFUSED)
def test_check_refuses(check, database, tables, what):
    query, word = REFUSED[what]
    before = database.value("SELECT count(*) FROM items")
    report = check(shown(query), sync="poll")
    assert report.status == 1 and "error" in report.levels()
    assert word in report.text, report.text
    assert database.value("SELECT count(*) FROM items") == before


def test_check_tells_of_a_query_that_is_to_be_followed_that_alone(check, database, tables):
    """Nothing is said of a publication for it, nor of a server that need not be followed."""
    report = check(shown("plain"), sync=None)
    assert "query needs sync: poll or none" in report.one("error")[0]


@pytest.mark.parametrize("query", QUERIES)
def test_check_runs_a_query_and_tells_its_cost(check, tables, query):
    report = check(shown(query), sync="poll")
    assert_in_order(report)
    assert any(re.match(r"query: the database expects a load to cost \d+", note)
               for note in report.notes), report.text


@pytest.mark.parametrize("column, warns", [
    ("name COLLATE ci", True), ("lower(name COLLATE ci)", True), ("(name COLLATE ci) COLLATE \"C\"", False),
    ("loose", True), ("name", False), ("mood::text", False), ("mood", False)])
def test_check_sees_by_which_collation_a_query_compares_its_key(check, database, column, warns):
    database.execute("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
                     "CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE texts (name text, loose text COLLATE ci,"
                     " mood mood); INSERT INTO texts VALUES ('Anna', 'Anna', 'sad'); GRANT SELECT ON texts TO guard")
    report = check(shown(f"SELECT {column} AS id, name AS payload FROM texts"), sync="poll")
    assert ("not deterministic" in report.text) == warns, report.text


def test_check_warns_of_a_query_that_each_load_has_to_work_out(check, database, tables):
    database.execute("CREATE TABLE many AS SELECT n AS id, 'm' AS payload"
                     " FROM generate_series(1, 200000) n; ANALYZE many; GRANT SELECT ON many TO guard")
    report = check(shown("SELECT id, max(payload) AS payload FROM many GROUP BY id"), sync="poll")
    assert "work out much of the query" in report.one("warning")[0]
