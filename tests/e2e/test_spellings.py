"""A key in another spelling than its row's is absent, and whoever asks is told so: by shadow mode's
counters, status and log, by `explain`, and by a deletion that finds the row all the same."""
import pytest

from servers import PATIENCE
from waiting import wait_until

UUID = "5b30857f-0bfa-48b5-ac0b-5c64e28078d1"
THINGS = {"name": "things", "key": "thing:{k}", "table": "things", "value": "v"}

# Type, a text as PostgreSQL prints it, and another that it takes for the same value.
SPELLINGS = {
    "uuid in capitals": ("uuid", UUID, UUID.upper()),
    "uuid in braces": ("uuid", UUID, "{" + UUID + "}"),
    "integer": ("bigint", "42", "042"),
    "numeric": ("numeric", "1.00", "1"),
    "numeric with scale": ("numeric(9,2)", "1.00", "1"),
    "float": ("float8", "1000", "1e3"),
    "boolean": ("boolean", "t", "true"),
    "timestamp": ("timestamptz", "2026-11-20 10:00:00+00", "2026-11-20T10:00:00Z"),
    "date": ("date", "2026-11-20", "20261120"),
    "interval": ("interval", "1 day", "24:00:00"),
    "bytea": ("bytea", "\\x00ff", "\\x00FF"),
    "inet": ("inet", "10.0.0.1", "10.0.0.1/32"),
    "macaddr": ("macaddr", "08:00:2b:01:02:03", "08-00-2B-01-02-03"),
    "char": ("char(4)", "ab  ", "ab"),
    "citext": ("citext", "ann", "Ann"),
    "collation": ("text COLLATE ci", "ann", "Ann"),
    "array": ("int[]", "{1,2}", "{ 1, 02 }"),
    "range": ("int4range", "[1,5)", "[1,4]"),
    "domain": ("amount", "1.50", "1.5"),
}


@pytest.fixture
def things(database):
    """Guards a table of one row whose key column has this type and value."""

    def make(column_type, text, **settings):
        database.execute("""
            SET client_min_messages = error;
            CREATE EXTENSION IF NOT EXISTS citext;
            CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2',
                                 deterministic = false);
            CREATE DOMAIN amount AS numeric(9,2)""")
        database.execute(f"CREATE TABLE things (k {column_type} PRIMARY KEY, v text)")
        database.execute("INSERT INTO things VALUES (%s, 'payload')", (text,))
        return {**THINGS, **settings}

    return make


def other_spellings(guard):
    return guard.counter("nestguard_other_spellings_total", "things")


def wait_until_checked(guard):
    wait_until(lambda: guard.counter("nestguard_shadow_checked_total", "things") > 0, PATIENCE,
               "the sample")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_shadow_mode_tells_of_a_row_in_another_spelling(start_guard, things, spelling):
    """The application loads by itself: it finds the row in the database, by SQL, until enforce is
    switched on; nothing but the sample says so."""
    column_type, own, asked = SPELLINGS[spelling]
    guard = start_guard(things(column_type, own, enforce=False, on_miss="pass"))
    assert guard.keyspace("things")["other_spelling_example"] is None
    assert guard.redis().get("thing:" + asked) is None
    wait_until_checked(guard)
    assert other_spellings(guard) == 1
    assert guard.counter("nestguard_false_rejects_total", "things") == 0
    told = guard.keyspace("things")
    assert told["other_spellings"] == 1
    assert told["other_spelling_example"] == {"asked": "thing:" + asked, "row": "thing:" + own}
    asked, own = (text.replace("\\", "\\\\") for text in (asked, own))
    assert f'"thing:{asked}" was asked for, another spelling of "thing:{own}"' in guard.log()


def test_a_key_without_a_row_is_no_other_spelling(start_guard, things):
    guard = start_guard(things("uuid", UUID, enforce=False))
    assert guard.redis().get("thing:" + UUID) == b"payload"
    assert guard.redis().get("thing:" + UUID[::-1].upper()) is None
    assert guard.redis().get("thing:nonsense") is None
    wait_until_checked(guard)
    assert other_spellings(guard) == 0
    assert guard.keyspace("things")["other_spelling_example"] is None


def test_loads_tell_of_it_wherever_they_pass(start_guard, things, cache):
    """With on_miss: load every lookup asks the database, so that none is missed by sampling."""
    guard = start_guard(things("numeric", "1.00", enforce=False))
    client = guard.redis()
    spellings = ["1", "1.0", "01.00", "1e0", "+1.00"]
    for text in spellings:
        assert client.get("thing:" + text) is None, text
    assert client.get("thing:1.00") == b"payload"
    assert other_spellings(guard) >= len(spellings)
    assert guard.keyspace("things")["other_spelling_example"]["row"] == "thing:1.00"
    assert cache.client().exists("thing:1") == 0


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_enforced_it_is_absent_and_explained(start_guard, things, spelling):
    column_type, own, asked = SPELLINGS[spelling]
    guard = start_guard(things(column_type, own))
    client = guard.redis()
    assert client.get("thing:" + asked) is None and client.exists("thing:" + asked) == 0
    assert client.get("thing:" + own) == b"payload"
    told = guard.explain("thing:" + asked)
    assert told["verdict"] == "absent" and told["decision"] == "reject"
    assert told["row"] is False and told["other_spelling"] == "thing:" + own
    assert "a row exists under another spelling: thing:" + own in told["why"]


def test_explain_says_of_other_keys_what_the_database_says(start_guard, things, database):
    guard = start_guard(things("bigint", "42"), sync="none")
    told = guard.explain("thing:43")
    assert told["verdict"] == "absent" and told["row"] is False and told["other_spelling"] is None
    assert "spelling" not in told["why"]
    assert guard.explain("thing:x")["row"] is False
    database.execute("INSERT INTO things VALUES (43, 'unheard of')")
    assert guard.explain("thing:43")["row"] is True
    assert guard.explain("thing:043")["other_spelling"] == "thing:43"
    database.execute("ALTER TABLE things RENAME TO elsewhere")
    told = guard.explain("thing:043")
    assert told["verdict"] == "absent" and told["row"] is None and told["other_spelling"] is None
    before = guard.counter("nestguard_other_spellings_total", "things")
    assert before == 0, "an operator's questions are no application's"


@pytest.mark.parametrize("query", ["", "?row=delete"])
def test_deleting_another_spelling_changes_nothing_and_names_the_rows_own(start_guard, things,
                                                                          database, query):
    guard = start_guard(things("uuid", UUID))
    path = guard.key_path("thing:" + UUID.upper()) + query
    answer = guard.control("DELETE", path)
    assert answer.status_code == 409
    assert answer.json()["other_spelling"] == "thing:" + UUID
    assert "a row exists under another spelling: thing:" + UUID in answer.json()["error"]
    assert database.value("SELECT count(*) FROM things") == 1
    assert guard.status()["entries"] == 0
    assert guard.redis().get("thing:" + UUID) == b"payload"
    database.execute("DELETE FROM things")
    assert guard.control("DELETE", path).status_code == 204
    assert guard.explain("thing:" + UUID.upper())["entry"] == "tombstone"


def test_a_row_is_found_among_others_that_equal_its_key(start_guard, things, database):
    """Where the index tells apart what the column does not, SQL gives several rows for one key."""
    keyspace = things("text", "ann")
    database.execute("""
        ALTER TABLE things DROP CONSTRAINT things_pkey, ALTER k TYPE text COLLATE ci;
        CREATE UNIQUE INDEX ON things (k COLLATE "C");
        ALTER TABLE things ALTER k SET NOT NULL;
        INSERT INTO things VALUES ('Ann', 'another'), ('ANN', 'a third')""")
    guard = start_guard(keyspace, sync="none")
    rows = ["thing:ann", "thing:Ann", "thing:ANN"]
    assert guard.redis().mget(rows) == [b"payload", b"another", b"a third"]
    assert guard.redis().get("thing:aNN") is None
    answer = guard.control("DELETE", guard.key_path("thing:Ann") + "?row=delete")
    assert answer.status_code == 409 and "equal" in answer.json()["error"]
    assert database.value("SELECT count(*) FROM things") == 3
