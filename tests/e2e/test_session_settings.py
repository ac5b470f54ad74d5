"""What role, database and server set for their sessions does not change what the guard's
connections see and say; what was switched on later shows as an error, never as a missing row.
"""
import pytest
import redis

from following import publish
from servers import PATIENCE
from waiting import wait_until

SYNCS = ["replication", "poll", "none"]


def set_for_the_guard(database, *settings):
    for setting in settings:
        database.execute(f"ALTER ROLE guard IN DATABASE {database.name} SET {setting}")


def end_connections(database):
    """New ones are made with what is set by now."""
    database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                     " WHERE usename = 'guard' AND datname = current_database()")


def reload(guard, cache, key):
    """The key's value from the database; None while there is an error."""
    cache.client().flushall()
    try:
        return guard.redis().get(key)
    except redis.ResponseError:
        return None


def begin(database, items, start_guard, sync, **settings):
    if sync == "replication":
        publish(database, items())
    return start_guard(items(), sync=sync, max_lag="2s", **settings)


# ---- row-level security ----

HIDE = "ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON items USING (id > 50)"


def must_be_error_or_row(guard, n):
    reply = guard.raw(b"GET item:%d\r\n" % n, 1)
    assert reply.startswith(b"-NESTGUARD") or b"payload %d" % n in reply, reply
    return reply


@pytest.mark.parametrize("sync", SYNCS)
def test_row_security_that_comes_later_denies_no_row(start_guard, database, cache, items, sync):
    guard = begin(database, items, start_guard, sync)
    assert guard.redis().get("item:5") == b"payload 5"
    database.execute(HIDE)
    cache.client().flushall()
    assert b"-NESTGUARD" in must_be_error_or_row(guard, 5)
    assert b"-NESTGUARD" in must_be_error_or_row(guard, 60)
    for query in ("", "?row=delete"):
        response = guard.control("DELETE", guard.key_path("item:5") + query)
        assert response.status_code == 409 and "BYPASSRLS" in response.text, response.text
    assert guard.control("POST", "/v1/rebuild").status_code == 202
    wait_until(lambda: "BYPASSRLS" in (guard.status()["last_build_error"] or ""), PATIENCE,
               guard.status)
    assert guard.generation() == 1 and guard.keyspace()["rows"] == 100
    for n in range(1, 101):
        must_be_error_or_row(guard, n)
    database.execute("ALTER TABLE items DISABLE ROW LEVEL SECURITY")
    guard.rebuild()
    guard.wait_guarding()
    assert reload(guard, cache, "item:5") == b"payload 5"


def test_row_security_keeps_the_next_poll_from_being_believed(start_guard, database, cache, items):
    guard = begin(database, items, start_guard, "poll", poll_interval="1s")
    database.execute(HIDE)
    wait_until(lambda: "BYPASSRLS" in (guard.status()["last_build_error"] or ""), PATIENCE,
               guard.status)
    number = guard.generation()
    for n in (5, 60):
        must_be_error_or_row(guard, n)
    assert guard.generation() == number
    assert guard.explain("item:5")["verdict"] == "possible"


# ---- search_path ----

OTHER = """CREATE SCHEMA b; CREATE TABLE b.items (LIKE public.items INCLUDING ALL);
           INSERT INTO b.items SELECT n, 'other ' || n FROM generate_series(51, 150) n"""


@pytest.mark.parametrize("sync", SYNCS)
@pytest.mark.parametrize("redirect", [
    "ALTER ROLE guard IN DATABASE {} SET search_path = b, public",
    "ALTER DATABASE {} SET search_path = b, public",
    "ALTER SCHEMA b RENAME TO guard",  # "$user" comes before public
])
def test_a_table_without_a_schema_stays_the_one_that_was_found(
        start_guard, database, cache, items, sync, redirect):
    guard = begin(database, items, start_guard, sync)
    database.execute(OTHER)
    database.execute(redirect.format(database.name))
    for again in range(2):
        end_connections(database)
        wait_until(lambda: reload(guard, cache, "item:5") == b"payload 5", PATIENCE, "a load")
        cache.client().flushall()
        for n in (5, 60, 99):
            assert guard.redis().get(f"item:{n}") == b"payload %d" % n, again
        guard.wait_guarding()
        guard.rebuild()
        guard.wait_guarding()
        assert guard.keyspace()["rows"] == 100
        assert guard.redis().get("item:120") is None


def test_the_connection_strings_own_search_path_holds(start_guard, database, items):
    database.execute(OTHER)
    guard = start_guard(items(),
                        database=database.url + "?options=-c%20search_path%3Db%2Cpublic")
    assert guard.redis().mget("item:5", "item:60") == [None, b"other 60"]


# ---- what is no longer valid ----

@pytest.mark.parametrize("sync", SYNCS)
def test_a_setting_that_no_server_takes_any_more_is_found_anew(start_guard, database, cache, items,
                                                               sync):
    """And what was built by the one before is built once more."""
    database.execute("CREATE TEXT SEARCH CONFIGURATION ours (COPY = simple)")
    set_for_the_guard(database, "default_text_search_config = 'public.ours'")
    guard = begin(database, items, start_guard, sync)
    database.execute("ALTER TEXT SEARCH CONFIGURATION ours RENAME TO theirs")
    end_connections(database)
    wait_until(lambda: reload(guard, cache, "item:5") == b"payload 5", PATIENCE, guard.log)
    wait_until(lambda: guard.generation() >= 2, PATIENCE, guard.log)
    guard.wait_guarding()
    assert guard.explain("item:5000")["verdict"] == "absent"


# ---- transactions and limits ----

TRANSACTIONS = ("default_transaction_isolation = 'serializable'",
                "default_transaction_deferrable = on", "default_transaction_read_only = on")
LIMITS = ("statement_timeout = '1ms'", "lock_timeout = '1ms'",
          "idle_in_transaction_session_timeout = '1ms'", "idle_session_timeout = '100ms'")


@pytest.mark.parametrize("sync", SYNCS)
def test_loads_do_not_wait_for_a_serializable_writer(start_guard, database, cache, items, sync):
    set_for_the_guard(database, *TRANSACTIONS)
    guard = begin(database, items, start_guard, sync, load_timeout="1s")
    writer = database.connect()
    writer.set_session(isolation_level="SERIALIZABLE")
    try:
        writer.cursor().execute("UPDATE items SET payload = 'uncommitted' WHERE id = 7")
        for n in range(1, 21):
            assert guard.redis().get(f"item:{n}") == b"payload %d" % n
    finally:
        writer.rollback()
        writer.close()
    path = guard.key_path("item:5") + "?row=delete"
    assert guard.control("DELETE", path).status_code == 204
    assert guard.redis().get("item:5") is None


@pytest.mark.parametrize("sync", SYNCS)
def test_limits_of_time_are_not_the_guards(start_guard, database, cache, items, sync):
    database.execute("INSERT INTO items SELECT n, 'payload ' || n"
                     " FROM generate_series(101, 100000) n")
    set_for_the_guard(database, *LIMITS)
    guard = begin(database, items, start_guard, sync)
    assert guard.keyspace()["rows"] > 99000
    guard.rebuild()
    for n in range(1, 200):
        assert guard.redis().get(f"item:{n}") == b"payload %d" % n
    assert guard.counter("nestguard_loads_total", result="timeout") == 0


def test_a_server_that_was_set_to_take_no_writes_is_passed_over(start_guard, database, items):
    """The setting is not the guard's, but libpq chooses a host by it."""
    guard = start_guard(items(), database=database.url + "?target_session_attrs=read-write")
    assert guard.redis().get("item:5") == b"payload 5"
    set_for_the_guard(database, "default_transaction_read_only = on")
    end_connections(database)
    wait_until(lambda: b"database down" in guard.raw(b"GET item:6\r\n", 1), PATIENCE, "no host")
    database.execute(f"ALTER ROLE guard IN DATABASE {database.name}"
                     " RESET default_transaction_read_only")
    wait_until(lambda: b"payload 6" in guard.raw(b"GET item:6\r\n", 1), PATIENCE, "the host again")


# ---- what is printed ----

PRINTING = ("DateStyle = 'German, DMY'", "IntervalStyle = 'iso_8601'", "extra_float_digits = -10",
            "bytea_output = 'escape'", "xmlbinary = 'hex'", "TimeZone = 'Asia/Tokyo'",
            "lc_monetary = 'C.utf8'", "default_text_search_config = 'simple'",
            "transform_null_equals = on", "array_nulls = off", "quote_all_identifiers = on",
            "standard_conforming_strings = off")


@pytest.mark.parametrize("sync", SYNCS)
def test_keys_and_values_are_printed_alike(start_guard, database, cache, sync):
    database.execute(r"""
        CREATE TABLE items (d date, t timestamptz, f float8, b bytea, v interval NOT NULL, tz text,
                            PRIMARY KEY (d, t, f, b));
        INSERT INTO items VALUES ('2026-11-20', '2026-11-20 10:00+00', 0.1::float8 + 0.2, '\x00ff',
                                  '1 day 02:03', 'a'), ('2026-11-21', '2026-11-21 10:00+00', 1, '', '0', 'b')""")
    keyspace = {"name": "items", "key": "{d}/{t}/{f}/{b}", "table": "items", "value": "json"}
    if sync == "replication":
        publish(database, keyspace)
    guard = start_guard(keyspace, sync=sync, max_lag="2s")
    key = r"2026-11-20/2026-11-20 10:00:00+00/0.30000000000000004/\x00ff"
    value = guard.redis().get(key)
    assert value is not None and b"1 day 02:03:00" in value
    set_for_the_guard(database, *PRINTING)
    for _ in range(2):
        end_connections(database)
        wait_until(lambda: reload(guard, cache, key), PATIENCE, "a load")
        assert reload(guard, cache, key) == value
        guard.wait_guarding()
        guard.rebuild()
        guard.wait_guarding()
        assert guard.explain(key)["verdict"] == "possible"
    if sync == "replication":
        database.execute("UPDATE items SET v = '2 days' WHERE tz = 'a'")
        wait_until(lambda: b"2 days" in guard.redis().get(key), PATIENCE, "the purge of that key")


def test_a_condition_means_the_same_after_a_change_of_the_role(start_guard, database, cache):
    database.execute("CREATE TABLE items (id int PRIMARY KEY, at timestamptz, payload text);"
                     "INSERT INTO items VALUES (1, '2026-11-20 23:30+00', 'one')")
    guard = start_guard({"name": "items", "key": "item:{id}", "table": "items",
                         "value": "payload", "where": "at::date = '2026-11-20'"})
    set_for_the_guard(database, "TimeZone = 'Asia/Tokyo'", "DateStyle = 'ISO, YMD'")
    end_connections(database)
    wait_until(lambda: reload(guard, cache, "item:1") == b"one", PATIENCE, "a load")
    guard.rebuild()
    assert guard.keyspace()["rows"] == 1 and reload(guard, cache, "item:1") == b"one"
