"""Keys of every type and spelling find their rows; whatever else looks like one is absent."""
import concurrent.futures
import pytest
import redis

from following import follow  # noqa: F401, a fixture
from servers import PATIENCE
from waiting import wait_until
from wire import command

TYPES = {
    "bigint": ["0", "-1", "9223372036854775807", "-9223372036854775808"],
    "uuid": ["5b30857f-0bfa-48b5-ac0b-5c64e28078d1", "00000000-0000-0000-0000-000000000000"],
    "text": ["plain", "with blank", "ünï-cödé ☃ 漢字", "tab\tnew\nline", "back\\slash \\N \\. {x}",
             "a:b:c", "'quoted\" $1", "%s %n", "x" * 2000, ""],
    "bytea": [r"\x", r"\x00ff0a0d", r"\x5c5c"],
    "timestamptz": ["2026-11-20 10:00:00.123456+00", "1999-12-31 23:59:59+00", "infinity"],
    "numeric": ["1.50", "1e3", "-0.001"],
    "boolean": ["true", "false"],
}


def table_of(database, column_type, values):
    """A table with one row for each value, and the keys as PostgreSQL prints them."""
    database.execute(f"CREATE TABLE things (k {column_type} PRIMARY KEY, v text)")
    for value in values:
        database.execute("INSERT INTO things VALUES (%s, %s)", (value, "of " + value))
    return {text: v for text, v in database.query("SELECT k::text, v FROM things")}


THINGS = {"name": "things", "key": "thing:{k}", "table": "things", "value": "v"}


@pytest.mark.parametrize("column_type", TYPES)
def test_each_key_type_is_found_by_its_text(start_guard, database, cache, column_type):
    rows = table_of(database, column_type, TYPES[column_type])
    if column_type == "boolean":  # COPY prints t and f where a cast says true and false
        rows = {text[0]: v for text, v in rows.items()}
    guard = start_guard(THINGS)
    client = guard.redis()
    for text, v in rows.items():
        assert client.get(f"thing:{text}") == v.encode(), repr(text)
    wait_until(lambda: cache.client().dbsize() == len(rows), PATIENCE, "all of them cached")
    assert client.mget([f"thing:{text}" for text in rows]) == [v.encode() for v in rows.values()]
    assert guard.keyspace("things")["rows"] == len(rows)
    assert database.count_loads() == len(rows)


# Texts that PostgreSQL would read as the value of some row, but never prints for it, and texts
# that it cannot read as a value at all.
OTHER_SPELLINGS = {
    "bigint": ["00", "+0", " 0", "0 ", "0x0", "1e2", "", "abc", "9223372036854775808",
               "99999999999999999999999999"],
    "uuid": ["5B30857F-0BFA-48B5-AC0B-5C64E28078D1", "5b30857f0bfa48b5ac0b5c64e28078d1",
             "{5b30857f-0bfa-48b5-ac0b-5c64e28078d1}", "not-a-uuid", ""],
    "text": ["PLAIN", "plain ", "a:b", b"nul\0byte", b"\xff\xfe invalid utf-8"],
    "timestamptz": ["2026-11-20 11:00:00.123456+01", "2026-11-20T10:00:00.123456Z", "yesterday",
                    ""],
    "bytea": [r"\X00FF0A0D", "\\000", "zz", "\\x0"],
}


@pytest.mark.parametrize("enforce", [True, False])
@pytest.mark.parametrize("column_type", OTHER_SPELLINGS)
def test_another_spelling_of_a_value_is_absent(start_guard, database, cache, column_type, enforce):
    """With enforcement off each of them gets as far as the database, and must not come back from
    there as a row, as an error, or as a new key in the cache."""
    table_of(database, column_type, TYPES[column_type])
    guard = start_guard({**THINGS, "enforce": enforce})
    client = guard.redis()
    for text in OTHER_SPELLINGS[column_type]:
        key = b"thing:" + (text if isinstance(text, bytes) else text.encode())
        assert client.get(key) is None, repr(text)
        assert client.exists(key) == 0, repr(text)
    assert cache.client().dbsize() == 0
    assert guard.redis().ping()


def test_a_key_that_only_its_columns_type_accepts_is_not_called_absent(start_guard, database, items):
    """The database compares a regclass as an oid, which takes no name."""
    database.execute("CREATE TABLE things (k regclass PRIMARY KEY, v text);"
                     "INSERT INTO things VALUES ('items', 'of it')")
    client = start_guard(items(), THINGS, ready=False).redis()
    with pytest.raises(redis.ResponseError, match="NESTGUARD database error"):
        client.get("thing:items")


@pytest.fixture
def orders(database):
    database.execute("""
        CREATE TABLE orders (customer text, number int, v text, PRIMARY KEY (customer, number));
        INSERT INTO orders VALUES ('ann', 1, 'ann one'), ('ann', 2, 'ann two'),
            ('bob', 1, 'bob one'), ('a:b', 3, 'colon'), ('', 4, 'nobody')""")
    return {"name": "orders", "key": "order:{customer}:{number}", "table": "orders", "value": "v"}


def test_composite_keys_find_their_rows(start_guard, database, orders):
    guard = start_guard(orders)
    rows = {"order:ann:1": b"ann one", "order:ann:2": b"ann two", "order:bob:1": b"bob one",
            "order:a:b:3": b"colon", "order::4": b"nobody"}
    client = guard.redis()
    assert client.mget(list(rows)) == list(rows.values())
    for key in ["order:bob:2", "order:ann", "order:ann:", "order:ann:1:", "order:a:b:c:3",
                "order::", "order:ann:01"]:
        assert client.get(key) is None, key
    assert database.count_loads() >= len(rows)


def test_a_key_that_splits_in_several_ways_finds_the_row_of_any(start_guard, database):
    database.execute("""
        CREATE TABLE pairs (a text, b text, v text, PRIMARY KEY (a, b));
        INSERT INTO pairs VALUES ('x:y', 'z', 'left'), ('p', 'q:r', 'right')""")
    guard = start_guard({"name": "pairs", "key": "pair:{a}:{b}", "table": "pairs", "value": "v"})
    client = guard.redis()
    assert client.get("pair:x:y:z") == b"left"
    assert client.get("pair:p:q:r") == b"right"
    assert client.get("pair:x:y") is None


@pytest.mark.parametrize("start", ["start_guard", "follow"])
def test_a_row_that_moves_between_the_ways_to_split_its_key_is_there(request, start, gate, database):
    """It is in the one way before the other is asked, and in the other before that is."""
    database.execute("""
        CREATE TABLE pairs (a text, b text, v text, PRIMARY KEY (a, b));
        INSERT INTO pairs VALUES ('x:y', 'z', 'moved')""")
    guard = request.getfixturevalue(start)(
        {"name": "pairs", "key": "pair:{a}:{b}", "table": "pairs", "value": "v"},
        database=database.url.replace(f":{database.server.port}/", f":{gate.port}/"))
    gate.hold_requests(having=b"x:y\0\0\0\1z")
    with guard.wire() as wire:
        wire.send(command("GET", "pair:x:y:z"))
        gate.wait_held()
        database.execute("UPDATE pairs SET a = 'x', b = 'y:z'")
        gate.release()
        assert wire.read_reply() == b"$5\r\nmoved\r\n"


@pytest.mark.parametrize("start", ["start_guard", "follow"])
def test_a_row_stays_there_when_another_with_its_key_is_deleted(request, start, database, cache):
    """The DELETE is by one way to split the key alone."""
    database.execute("""
        CREATE TABLE pairs (a text, b text, v text, PRIMARY KEY (a, b));
        INSERT INTO pairs VALUES ('x', 'y:z', 'one'), ('x:y', 'z', 'other')""")
    guard = request.getfixturevalue(start)(
        {"name": "pairs", "key": "pair:{a}:{b}", "table": "pairs", "value": "v"})
    client = guard.redis()
    assert client.get("pair:x:y:z") in (b"one", b"other")
    cache.wait_for_key("pair:x:y:z")
    answer = guard.control("DELETE", "/v1/keys/pair:x:y:z?row=delete")
    [(left,)] = database.query("SELECT v FROM pairs")
    assert client.get("pair:x:y:z") == left.encode()
    assert answer.status_code == 409 and "another row has it" in answer.text
    assert guard.control("DELETE", "/v1/keys/pair:x:y:z?row=delete").status_code == 204
    assert client.get("pair:x:y:z") is None
    assert database.value("SELECT count(*) FROM pairs") == 0


def test_a_row_was_deleted_though_nobody_can_say_whether_there_is_another(start_guard, database,
                                                                         cache, gate):
    """Without a log only the call itself can purge what was cached of the row."""
    database.execute("""
        CREATE TABLE pairs (a text, b text, v text, PRIMARY KEY (a, b));
        INSERT INTO pairs VALUES ('x', 'y:z', 'one')""")
    guard = start_guard({"name": "pairs", "key": "pair:{a}:{b}", "table": "pairs", "value": "v"},
                        database=database.url.replace(str(database.server.port), str(gate.port)))
    assert guard.redis().get("pair:x:y:z") == b"one"
    cache.wait_for_key("pair:x:y:z")
    gate.hold_answers(b"DELETE 1")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(guard.control, "DELETE", "/v1/keys/pair:x:y:z?row=delete")
        gate.wait_held()
        database.execute("ALTER TABLE pairs RENAME TO elsewhere")
        gate.release()
        assert answer.result().status_code == 409
    assert "a row was deleted" in answer.result().text
    assert "could not be asked for another row" in answer.result().text
    assert not cache.client().exists("pair:x:y:z")


def test_the_order_of_a_template_is_its_own(start_guard, orders):
    guard = start_guard({**orders, "key": "{number}/of/{customer}"})
    assert guard.redis().get("2/of/ann") == b"ann two"
    assert guard.redis().get("ann/of/2") is None


def test_a_row_without_a_whole_key_is_no_row(start_guard, database):
    database.execute("""
        CREATE TABLE things (id int PRIMARY KEY, k text UNIQUE, v text);
        INSERT INTO things VALUES (1, NULL, 'no key'), (2, 'two', 'second')""")
    guard = start_guard(THINGS)
    assert guard.redis().mget("thing:", "thing:two", "thing:NULL", r"thing:\N") == [
        None, b"second", None, None]
    assert guard.keyspace("things")["rows"] == 1


def test_a_composite_value_with_an_empty_field_is_a_key(start_guard, database):
    """For SQL it is not NOT NULL. A start refuses such a column, but it may become one later."""
    database.execute("""
        CREATE TYPE pair AS (a int, b int);
        CREATE TABLE points (at text UNIQUE, name text);
        INSERT INTO points VALUES ('(1,2)', 'both'), ('(1,)', 'one'), ('(,)', 'none'), (NULL, 'x')""")
    guard = start_guard({"name": "points", "key": "point:{at}", "table": "points", "value": "name"})
    database.execute("ALTER TABLE points ALTER at TYPE pair USING at::pair")
    guard.rebuild()
    assert [guard.redis().execute_command("BF.EXISTS", "points", at) for at in ("(1,2)", "(1,)", "(,)")] == [1, 1, 1]


def test_keys_that_look_alike_in_a_filter_are_counted_each(start_guard, database, items):
    """Without a log they share one entry of it."""
    database.execute("INSERT INTO items SELECT n, 'more' FROM generate_series(1001, 2900) n")
    guard = start_guard(items(false_positive_rate=0.03), sync="none")
    assert guard.keyspace()["rows"] == 2000


def test_quoted_and_non_ascii_identifiers(start_guard, database):
    database.execute("""
        CREATE SCHEMA "My ""Own"" Schema";
        CREATE TABLE "My ""Own"" Schema"."Größe, Übersicht" ("Item Id" text, "é'1" int, "select" text,
                                                         PRIMARY KEY ("Item Id", "é'1"));
        INSERT INTO "My ""Own"" Schema"."Größe, Übersicht" VALUES ('Ä', 1, 'ok')""")
    guard = start_guard({
        "name": "sizes", "key": "größe:{Item Id}:{é'1}", "value": "select",
        "table": '"My ""Own"" Schema"."Größe, Übersicht"'})
    assert guard.redis().get("größe:Ä:1") == b"ok"
    assert guard.redis().get("größe:Ä:2") is None
    assert guard.keyspace("sizes")["rows"] == 1


def test_unquoted_names_are_folded_as_sql_folds_them(start_guard, items):
    guard = start_guard(items(table="Public.ITEMS"))
    assert guard.redis().get("item:1") == b"payload 1"


def test_braces_in_a_template_stand_for_themselves_when_doubled(start_guard, items):
    guard = start_guard(items(key="{{item}}:{id}"))
    assert guard.redis().get("{item}:1") == b"payload 1"
    assert guard.redis().get("{item}:101") is None


@pytest.mark.parametrize("column_type, value, setting", [
    ("timestamptz", "2026-11-20 10:00:00+00", "timezone = 'Asia/Tokyo'"),
    ("date", "2026-11-20", "datestyle = 'German'"),
    ("interval", "1 day 02:03:04", "intervalstyle = 'iso_8601'"),
    ("float8", "0.30000000000000004", "extra_float_digits = -10"),
    ("bytea", r"\x00ff", "bytea_output = 'escape'"),
])
def test_keys_stay_what_they_are_when_the_server_prints_in_another_way(
        start_guard, database, cache, column_type, value, setting):
    """Connections that are opened from now on would get the new setting, the others not."""
    key = f"thing:{next(iter(table_of(database, column_type, [value])))}"
    guard = start_guard(THINGS)
    database.execute(f"ALTER DATABASE {database.name} SET {setting}")
    for _ in range(2):
        guard.rebuild()
        for _ in range(8):  # over all of the pool's connections
            cache.client().flushall()
            assert guard.redis().mget(key, "thing:") == [b"of " + value.encode(), None]
        database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                         "WHERE usename = 'guard'")
        wait_until(lambda: loads(guard, cache, key), PATIENCE, "new connections")


def loads(guard, cache, key):
    cache.client().flushall()
    try:
        return guard.redis().get(key) is not None
    except redis.ResponseError:
        return False


def test_what_the_connection_string_says_of_printing_holds(start_guard, database):
    """Where what is printed is read as the same value; else it is refused (test_held_settings.py)."""
    table_of(database, "interval", ["1 day"])
    guard = start_guard(THINGS, database=database.url + "?options=-c%20intervalstyle%3Diso_8601")
    assert guard.redis().get("thing:P1D") == b"of 1 day"
    assert guard.redis().get("thing:1 day") is None


def test_any_number_of_rows_may_have_the_same_key_text(start_guard, database):
    """A filter has room for some copies of one entry, and without a stream none is removed again."""
    parts = "s" * 300
    rows = [(":".join(parts[:n]), ":".join(parts[n:]), str(n)) for n in range(1, len(parts))]
    database.execute("CREATE TABLE pairs (a text, b text, v text, PRIMARY KEY (a, b))")
    for row in rows:
        database.execute("INSERT INTO pairs VALUES (%s, %s, %s)", row)
    database.execute("INSERT INTO pairs VALUES ('x', 'y', 'other')")
    guard = start_guard({"name": "pairs", "key": "pair:{a}:{b}", "table": "pairs", "value": "v"})
    assert guard.redis().get("pair:x:y") == b"other"
    assert guard.redis().get("pair:x:z") is None
    assert guard.explain("pair:" + ":".join(parts))["verdict"] == "possible"
    assert guard.generation() == 1, "the first attempt succeeded"
