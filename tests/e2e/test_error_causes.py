"""Whose fault an error of the database is: that of the key's text, which no column can hold, means
that there is no such row; that of a row's contents means that nobody can say. And what a DELETE
does not say.
"""
import itertools

import pytest
import redis

from following import wait_followed
from servers import PATIENCE, Database, run_nestguard
from waiting import wait_until

numbers = itertools.count(1)
ITEMS = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload", "ttl": "10m"}


@pytest.fixture
def database(postgres_server, request):
    """In the encoding that the test is in, or UTF-8."""
    postgres_server.ensure_running()
    made = Database(postgres_server, f"causes_{next(numbers)}",
                    encoding=getattr(request, "param", None))
    yield made
    postgres_server.ensure_running()
    made.drop()


def must_fail(guard, *command):
    with pytest.raises(redis.ResponseError, match="NESTGUARD"):
        answer = guard.redis().execute_command(*command)
        pytest.fail(f"{command} was answered: {answer!r}")


def must_not_be_decided(guard, key):
    """Neither now nor when it is asked again: nothing is remembered of it."""
    for _ in range(2):
        must_fail(guard, "GET", key)
        must_fail(guard, "EXISTS", key)
        assert_no_nil(guard, key)
    assert not guard.explain(key)["known_absent"]


def assert_no_nil(guard, key):
    """In MGET the error stands in the key's place, or for all of it."""
    reply = guard.raw(b"MGET %s\r\n" % key.encode(), 1)
    assert b"-NESTGUARD" in reply and b"$-1" not in reply, reply


@pytest.mark.parametrize("database", ["SQL_ASCII"], indirect=True)
@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
def test_a_database_without_an_encoding_takes_and_gives_any_bytes(start_guard, database, cache,
                                                                  sync):
    database.execute(r"""
        CREATE TABLE items (id text PRIMARY KEY, payload text);
        INSERT INTO items VALUES ('1', 'plain'), ('2', E'\xff\xfe'), (E'caf\xe9', E'\xe9'),
                                 (E'caf\xc3\xa9', 'utf-8');
        CREATE PUBLICATION nestguard FOR TABLE items""")
    guard = start_guard(ITEMS, sync=sync)
    for _ in range(2):  # from the database, then from the cache
        assert guard.redis().get(b"item:2") == b"\xff\xfe"
        assert guard.redis().get(b"item:caf\xe9") == b"\xe9"
        keys = b"item:1", b"item:2", b"item:caf\xe9", "item:caf\u00e9", b"item:\xff"
        assert guard.redis().mget(keys) == [b"plain", b"\xff\xfe", b"\xe9", b"utf-8", None]
        assert guard.redis().exists(b"item:caf\xe9", b"item:2", b"item:\xff") == 2
    if sync != "replication":
        return
    database.execute(r"INSERT INTO items VALUES (E'\xff', E'\x80'); "
                     r"UPDATE items SET payload = E'\xfd' WHERE id = E'caf\xe9'")
    wait_followed(database)
    wait_until(lambda: guard.redis().get(b"item:caf\xe9") == b"\xfd", PATIENCE, "the new value")
    assert guard.redis().get(b"item:\xff") == b"\x80"


@pytest.mark.parametrize("database", ["WIN1252"], indirect=True)
@pytest.mark.parametrize("sync", ["replication", "none"])
def test_a_value_that_has_no_utf_8_is_an_error_and_no_nil(start_guard, database, cache, sync):
    database.execute(r"""
        CREATE TABLE items (id bigint PRIMARY KEY, payload text);
        INSERT INTO items VALUES (1, 'plain'), (2, E'\x81');
        CREATE PUBLICATION nestguard FOR TABLE items""")
    guard = start_guard(ITEMS, sync=sync)
    must_not_be_decided(guard, "item:2")
    assert guard.redis().get("item:1") == b"plain"
    assert guard.redis().get("item:3") is None
    assert guard.control("DELETE", guard.key_path("item:2")).status_code == 409
    database.execute("UPDATE items SET payload = 'mended' WHERE id = 2")
    assert guard.redis().get("item:2") == b"mended"


@pytest.mark.parametrize("database", ["WIN1252"], indirect=True)
def test_a_key_that_the_encoding_cannot_hold_is_absent(start_guard, database, cache):
    database.execute("CREATE TABLE items (id text PRIMARY KEY, payload text);"
                     "INSERT INTO items VALUES ('1', 'plain')")
    guard = start_guard({**ITEMS, "enforce": False})
    assert guard.redis().mget("item:\u6f22", b"item:\xff", "item:1") == [None, None, b"plain"]


OVERFLOWS = "factor * 1000000 < 5000000000000"


def test_a_condition_that_fails_for_a_row_is_an_error_and_no_nil(start_guard, database, items):
    """The row became like that after the filter was built."""
    database.execute("ALTER TABLE items ADD factor int DEFAULT 1")
    guard = start_guard(items(where=OVERFLOWS))
    database.execute("UPDATE items SET factor = 2147483647 WHERE id = 5")
    must_not_be_decided(guard, "item:5")
    assert guard.redis().mget("item:4", "item:500") == [b"payload 4", None]
    response = guard.control("DELETE", guard.key_path("item:5"))
    assert response.status_code == 409 and "out of range" in response.text
    assert guard.control("DELETE", guard.key_path("item:5") + "?row=delete").status_code == 409
    database.execute("UPDATE items SET factor = 1 WHERE id = 5")
    assert guard.redis().get("item:5") == b"payload 5"


@pytest.mark.parametrize("sync", ["replication", "poll", "none"])
def test_a_condition_that_fails_lets_nothing_be_built_and_denies_nothing(
        start_guard, database, items, sync):
    database.execute("ALTER TABLE items ADD factor int DEFAULT 1;"
                     "UPDATE items SET factor = 2147483647 WHERE id = 5;"
                     "ALTER TABLE items REPLICA IDENTITY FULL;"
                     f"CREATE PUBLICATION nestguard FOR TABLE items WHERE ({OVERFLOWS})")
    guard = start_guard(items(where=OVERFLOWS), ready=False, sync=sync)
    wait_until(lambda: guard.status()["last_build_error"], PATIENCE, "a build that fails")
    must_not_be_decided(guard, "item:5")
    assert guard.redis().mget("item:4", "item:500", "item:abc") == [b"payload 4", None, None]


def test_a_condition_that_became_wrong_for_every_row_denies_none(start_guard, database, items):
    """It is refused before any row is looked at, and for a value, too: that of its own."""
    database.execute("ALTER TABLE items ADD kind text DEFAULT 1")
    guard = start_guard(items(where="kind <> 'x'", enforce=False))
    database.execute("ALTER TABLE items ALTER kind DROP DEFAULT, ALTER kind TYPE int USING 1")
    must_not_be_decided(guard, "item:5")
    must_not_be_decided(guard, "item:500")


@pytest.mark.parametrize("harm, mend, words", [
    ("REVOKE SELECT ON items FROM guard; GRANT SELECT (id) ON items TO guard",
     "GRANT SELECT ON items TO guard", "permission denied"),
    ("ALTER TABLE items RENAME payload TO old", "ALTER TABLE items RENAME old TO payload",
     'column "payload" does not exist')])
def test_the_status_says_why_loads_are_refused_until_one_goes_well(
        start_guard, database, items, harm, mend, words):
    """The filter is true all the while, so the keyspace guards."""
    guard = start_guard(items(), sync="none")
    assert guard.keyspace()["last_load_error"] is None
    database.execute(harm)
    must_fail(guard, "GET", "item:5")
    must_fail(guard, "GET", "item:6")
    assert guard.redis().get("item:500") is None, "a reject needs no load"
    assert guard.keyspace()["state"] == "guarding"
    error = guard.keyspace()["last_load_error"]
    assert words in error["text"] and error["count"] == 2 and 0 <= error["age_seconds"] < 60
    assert guard.explain("item:5")["last_load_error"]["text"] == error["text"]
    assert words in run_nestguard("ctl", "-c", guard.file, "status", "--table")[1]
    database.execute(mend)
    assert guard.redis().get("item:5") == b"payload 5"
    assert guard.keyspace()["last_load_error"] is None
    assert guard.explain("item:5")["last_load_error"] is None
    assert guard.counter("nestguard_loads_total", result="refused") == 2


# Texts that a column of the type cannot hold, beside one that is there.
IMPOSSIBLE = {
    "mood": ("ok", ["bad", ""]),
    "even": ("4", ["x", "99999999999"]),
    "char(3)": ("abc", ["", "abcd"]),
    "varchar(3)": ("abc", ["abcd"]),
    "int[]": ("{1,2}", ["{1,x}", "{1", "1"]),
    "even[]": ("{2,4}", ["{2,x}", "{"]),
    "int4range": ("[1,5)", ["[5,1)", "[1"]),
    "inet": ("10.0.0.1", ["10.0.0", "10.0.0.1/99"]),
    "bit(3)": ("101", ["102"]),
    "jsonb": ('{"a": 1}', ['{"a"', '"\\u0000"']),
    "smallint": ("7", ["32768", "7.0", "1e1"]),
}


@pytest.mark.parametrize("column_type", IMPOSSIBLE)
def test_a_text_that_the_column_cannot_hold_is_absent(start_guard, database, column_type):
    there, impossible = IMPOSSIBLE[column_type]
    database.execute(f"""
        CREATE TYPE mood AS ENUM ('ok', 'so so');
        CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0);
        CREATE TABLE items (id {column_type} PRIMARY KEY, payload text);
        INSERT INTO items VALUES ('{there}', 'there')""")
    guard = start_guard({**ITEMS, "enforce": False})
    assert guard.redis().get(f"item:{there}") == b"there"
    for text in impossible:
        assert guard.redis().get(f"item:{text}") is None, text
        assert guard.redis().exists(f"item:{text}") == 0, text


@pytest.mark.parametrize("retyped, new", [
    ("text", "abc"), ("uuid", "5b30857f-0bfa-48b5-ac0b-5c64e28078d1"), ("numeric", "1.50"),
    ("bigint", "3000000000"), ("char(5)", "2    ")])
def test_a_key_column_of_another_type_has_its_rows_found(start_guard, database, retyped, new):
    """The statements that were prepared before know the parameter by its old type."""
    database.execute("CREATE TABLE items (id int PRIMARY KEY, payload text);"
                     "INSERT INTO items VALUES (1, 'one'), (2, 'two')")
    guard = start_guard({**ITEMS, "enforce": False})
    for n in range(20):  # over every connection of the pool
        guard.redis().get(f"item:{n}")
    assert guard.redis().delete("item:1", "item:2") == 2
    database.execute(f"DELETE FROM items; ALTER TABLE items ALTER id TYPE {retyped} USING NULL;"
                     f"INSERT INTO items VALUES ('{new}', 'new')")
    for _ in range(20):
        assert guard.redis().get(f"item:{new}") == b"new"
        guard.redis().delete(f"item:{new}")
    assert guard.redis().get("item:2") is None


KEEPS = """CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} END $$;
           CREATE TRIGGER keep BEFORE DELETE ON items FOR EACH ROW EXECUTE FUNCTION keep()"""


@pytest.mark.parametrize("body", ["RETURN NULL;", "RAISE SQLSTATE '22003';",
                                  "RAISE SQLSTATE '22P02'; RETURN OLD;"])
def test_a_row_that_the_database_keeps_is_not_taken_for_deleted(start_guard, database, items, body):
    database.execute(KEEPS.format(body))
    guard = start_guard(items())
    response = guard.control("DELETE", guard.key_path("item:5") + "?row=delete")
    assert response.status_code == 409, response.text
    assert guard.redis().get("item:5") == b"payload 5"
    assert guard.explain("item:5")["verdict"] == "possible"


def test_a_rule_that_hides_a_row_deletes_it(start_guard, database, items):
    """It counts no row, and yet the keyspace has none of that key any more."""
    database.execute("CREATE RULE hide AS ON DELETE TO items DO INSTEAD"
                     " UPDATE items SET deleted_at = now() WHERE id = OLD.id;"
                     "GRANT UPDATE ON items TO guard")
    guard = start_guard(items(where="deleted_at IS NULL"))
    path = guard.key_path("item:5") + "?row=delete"
    assert guard.control("DELETE", path).status_code == 204
    assert guard.redis().get("item:5") is None
