"""Values that no row's change makes old: those that were filled before the log was followed, and
those that DDL changes. With a TTL of 0 nothing else would ever renew them."""
import contextlib

import pytest

from following import follow, senders, wait_followed, wait_generation, wait_state
from gate import Gate
from servers import PATIENCE
from waiting import wait_until


@contextlib.contextmanager
def open_transaction(database):
    """While it lasts no slot gets its consistent point: whatever is built waits."""
    connection = database.connect()
    try:
        connection.cursor().execute("SELECT pg_current_xact_id()")
        yield
    finally:
        connection.rollback()
        connection.close()


def get(guard, key):
    """The reply, an error too: a lookup beside DDL may be refused."""
    with guard.wire() as wire:
        wire.send(b"GET %s\r\n" % key.encode())
        return wire.read_reply()


def wait_value(guard, key, wanted):
    """In the cache, so that nothing but a purge takes it away again."""
    wait_until(lambda: wanted in get(guard, key), PATIENCE,
               lambda: f"{wanted} of {key}: {get(guard, key)}\n{guard.log()}")


def wait_filled(guard, cache, key, value):
    """And nothing is on the way any more."""
    def is_filled():
        found = get(guard, key)
        assert b"$" == found[:1], found
        return value in (cache.client().get(key) or b"") and not guard.explain(key)["in_flight"]

    wait_until(is_filled, PATIENCE, lambda: f"{key} in the cache\n{guard.log()}")


@pytest.fixture
def gate(database):
    """A gate before the database, whose `url` leads through it."""
    with Gate(database.server.port) as opened:
        opened.url = database.url.replace(f":{database.server.port}/", f":{opened.port}/")
        yield opened


def update(database, key, payload):
    database.execute("UPDATE items SET payload = %s WHERE id = %s", (payload, key))


class TestFilledWhileLoading:
    def test_is_purged_when_the_log_is_followed(self, follow, database, cache, items):
        keyspace = items(ttl=0)
        with open_transaction(database):
            guard = follow(keyspace, ready=False)
            wait_filled(guard, cache, "item:7", b"payload 7")
            wait_filled(guard, cache, "item:8", b"payload 8")
            cache.client().set("item:9", "of the time before")
            update(database, 7, "new")
            assert guard.keyspace()["state"] == "loading"
            assert guard.redis().get("item:7") == b"payload 7"
        guard.wait_guarding()
        wait_value(guard, "item:7", b"new")
        assert guard.redis().get("item:9") == b"of the time before"
        assert guard.counter("nestguard_purges_total") == 2 and cache.calls("scan") == 0

    def test_is_purged_when_the_guard_ends_before_that(self, follow, database, cache, items):
        keyspace = items(ttl=0)
        with open_transaction(database):
            guard = follow(keyspace, ready=False)
            wait_filled(guard, cache, "item:7", b"payload 7")
            guard.stop()
        assert not cache.client().exists("item:7")

    def test_is_swept_when_there_is_too_much_to_remember(self, follow, database, cache, items):
        keyspace = items(ttl=0)
        with open_transaction(database):
            guard = follow(keyspace, ready=False, max_hints=5)
            for n in range(1, 11):
                wait_filled(guard, cache, f"item:{n}", b"payload")
            database.execute("UPDATE items SET payload = 'new'")
        guard.wait_guarding()
        for n in range(1, 11):
            wait_value(guard, f"item:{n}", b"new")
        assert cache.calls("scan") > 0

    def test_is_not_filled_by_a_load_that_began_before(self, follow, database, cache, items, gate):
        keyspace = items(ttl=0)
        with contextlib.ExitStack() as meanwhile:
            with open_transaction(database):
                guard = follow(keyspace, ready=False, database=gate.url, load_timeout="60s")
                wait_filled(guard, cache, "item:8", b"payload 8")
                gate.hold_answers(b"payload 7")
                wire = meanwhile.enter_context(guard.wire())
                wire.send(b"GET item:7\r\n")
                gate.wait_held()
                update(database, 7, "new")
            guard.wait_guarding()
            gate.release()
            assert b"payload 7" in wire.read_reply()
        wait_value(guard, "item:7", b"new")


class TestTwoGuards:
    def test_what_one_fills_late_goes_when_its_own_log_tells(self, follow, start_guard, database,
                                                             cache, items, gate):
        """Its load began before the row changed, and fills behind the other's purge."""
        keyspace = items(ttl=0)
        other = follow(keyspace)
        guard = start_guard(keyspace, database=gate.url, sync="replication", max_lag="60s",
                            load_timeout="60s")
        wait_filled(other, cache, "item:7", b"payload 7")
        wait_followed(database)
        cache.client().delete("item:7")
        gate.hold_answers(b"payload 7")  # of the load, and of the log from the change on
        with guard.wire() as wire:
            wire.send(b"GET item:7\r\n")
            gate.wait_held()
            purges = cache.calls("del")
            update(database, 7, "payload 7, new")
            wait_until(lambda: gate.count_held() == 2, PATIENCE, "the log's change")
            wait_until(lambda: cache.calls("del") > purges, PATIENCE, "the other's purge")
            wait_filled(other, cache, "item:7", b"payload 7, new")
            cache.client().delete("item:7")  # a fill comes only where nothing is
            gate.release_first()
            assert wire.read_reply() == b"$9\r\npayload 7\r\n"
            wait_until(lambda: cache.client().get("item:7") == b"payload 7", PATIENCE, "the fill")
        gate.release()
        wait_value(other, "item:7", b"payload 7, new")


# DDL, the keyspace's value, and what is printed of row 7 before and after.
ALTERED = [
    pytest.param("ALTER TABLE items ALTER payload TYPE text USING upper(payload)",
                 "payload", b"payload 7", b"PAYLOAD 7", id="a column of the same type"),
    pytest.param("ALTER TABLE items ALTER price TYPE numeric(8, 2)",
                 "price", b"3.5", b"3.50", id="a column of another type"),
    pytest.param("ALTER TABLE items DROP payload, ADD payload uuid DEFAULT gen_random_uuid()",
                 "payload", b"payload 7", b"-", id="a column in place of another"),
    pytest.param("ALTER TABLE items RENAME payload TO content",
                 "json", b'"payload":"payload 7"', b'"content":"payload 7"', id="a column's name"),
    pytest.param("ALTER TABLE items ADD token uuid NOT NULL DEFAULT gen_random_uuid()",
                 "json", b'"id":7', b'"token":', id="a column more"),
    pytest.param("ALTER TABLE items DROP deleted_at",
                 "json", b'"deleted_at":null', b'"payload":"payload 7","price"', id="a column less"),
    pytest.param("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",
                 "mood", b"sad", b"blue", id="an enum's label"),
    pytest.param("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",
                 "json", b'"sad"', b'"blue"', id="an enum's label in json"),
    pytest.param("ALTER TYPE taste RENAME VALUE 'salty' TO 'briny'",
                 "dishes", b"salty", b"briny", id="an enum's label in depth"),
    pytest.param("ALTER TYPE dish RENAME ATTRIBUTE kind TO sort CASCADE",
                 "json", b'"kind"', b'"sort"', id="an attribute's name in depth"),
    pytest.param("ALTER TYPE size RENAME VALUE 'small' TO 'tiny'",
                 "sizes", b"small", b"tiny", id="an enum's label in a range"),
]
# Values by an expression, of which no column says so.
LABEL = "CREATE OR REPLACE FUNCTION label(text) RETURNS text LANGUAGE %s AS $$%s$$"
MADE = [
    pytest.param("ALTER TABLE items ALTER payload TYPE text USING reverse(payload)",
                 "upper(payload)", b"PAYLOAD 7", b"7 DAOLYAP", id="a column of an expression"),
    pytest.param(LABEL % ("sql", "SELECT 'new ' || $1"),
                 "label(payload)", b"old payload 7", b"new payload 7", id="a function"),
    pytest.param(LABEL.replace("label", "noted")
                 % ("plpgsql", "BEGIN RETURN 'new ' || $1; END"),
                 "noted(payload)", b"old payload 7", b"new payload 7", id="a function with a plan"),
    pytest.param("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",
                 "(enum_range(NULL::mood))[1]", b"sad", b"blue", id="a type of a cast"),
    pytest.param("CREATE OR REPLACE VIEW shelf AS SELECT 7 AS id, 'new' AS name",
                 "(SELECT name FROM shelf WHERE shelf.id = items.id)", b"old", b"new",
                 id="a view"),
]
TABLE = """
    CREATE FUNCTION label(text) RETURNS text LANGUAGE sql AS $$SELECT 'old ' || $1$$;
    CREATE FUNCTION noted(text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN 'old ' || $1; END$$;
    CREATE VIEW shelf AS SELECT 7 AS id, 'old' AS name; GRANT SELECT ON shelf TO public;
    CREATE TYPE mood AS ENUM ('sad', 'glad');
    CREATE TYPE taste AS ENUM ('sweet', 'salty');
    CREATE DOMAIN real_taste AS taste CHECK (value <> 'sweet');
    CREATE TYPE dish AS (name text, kind real_taste);
    CREATE TYPE size AS ENUM ('small', 'large');
    CREATE TYPE sizes AS RANGE (subtype = size);
    ALTER TABLE items ADD price numeric DEFAULT 3.5, ADD mood mood DEFAULT 'sad',
        ADD dishes dish[] DEFAULT ARRAY[ROW('soup', 'salty')::dish],
        ADD sizes sizes DEFAULT '[small,large]'"""


@pytest.fixture
def rich(database, items):
    """rich(value): a keyspace whose table has columns of many kinds."""
    def of(value):
        database.execute(TABLE)
        return items(value=value, ttl=0)

    return of


class TestDDL:
    @pytest.mark.parametrize("ddl, value, before, after", ALTERED + MADE)
    def test_purges_and_builds_nothing(self, follow, database, cache, rich, ddl, value, before,
                                       after):
        guard = follow(rich(value))
        wait_filled(guard, cache, "item:7", before)
        wait_followed(database)
        database.execute(ddl)
        wait_value(guard, "item:7", after)
        assert guard.generation() == 1

    @pytest.mark.parametrize("ddl, value, before, after", [ALTERED[0], ALTERED[3], ALTERED[6], MADE[1]])
    def test_purges_while_the_stream_is_lost(self, follow, database, cache, rich, ddl, value,
                                             before, after):
        guard = follow(rich(value))
        with open_transaction(database):
            for pid in senders(database):
                database.execute("SELECT pg_terminate_backend(%s)", (pid,))
            wait_state(guard, "passing")
            wait_filled(guard, cache, "item:7", before)
            database.execute(ddl)
            wait_value(guard, "item:7", after)
            assert guard.keyspace()["state"] == "passing"

    def test_purges_what_a_load_that_began_before_it_would_fill(self, follow, database, cache,
                                                                rich, gate):
        guard = follow(rich("mood"), database=gate.url, load_timeout="60s")
        wait_filled(guard, cache, "item:8", b"sad")
        wait_followed(database)
        gate.hold_answers(b"sad")
        with guard.wire() as wire:
            wire.send(b"GET item:7\r\n")
            gate.wait_held()
            database.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
            wait_until(lambda: cache.calls("scan") > 0, PATIENCE, "the purge")
            gate.release()
            assert b"sad" in wire.read_reply()
        wait_value(guard, "item:7", b"blue")

    def test_of_one_keyspace_leaves_the_others(self, follow, database, cache, rich):
        database.execute("CREATE TABLE others (id int PRIMARY KEY, v text);"
                         "INSERT INTO others VALUES (1, 'one')")
        guard = follow(rich("mood"), {"name": "others", "key": "other:{id}", "table": "others",
                                      "value": "v", "ttl": 0})
        wait_filled(guard, cache, "item:7", b"sad")
        wait_filled(guard, cache, "other:1", b"one")
        cache.client().set("stranger", "stays")
        database.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
        wait_value(guard, "item:7", b"blue")
        assert cache.client().exists("other:1", "stranger") == 2

    def test_that_comes_with_an_altered_key_purges_and_builds(self, follow, database, cache, rich):
        guard = follow(rich("mood"))
        wait_filled(guard, cache, "item:7", b"sad")
        database.execute("BEGIN; ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';"
                         "ALTER TABLE items ALTER id TYPE int; COMMIT")
        wait_value(guard, "item:7", b"blue")
        wait_generation(guard, 2)

    @pytest.mark.parametrize("sync", ["poll", "none"])
    def test_without_a_log_between_a_failed_build_and_the_next(self, start_guard, database, cache,
                                                               rich, sync):
        database.execute("CREATE TABLE notes (id int PRIMARY KEY, size text);"
                         "INSERT INTO notes VALUES (1, 'not yet')")
        notes = {"name": "notes", "key": "note:{id}", "table": "notes", "value": "size",
                 "where": "size::int > 0"}
        guard = start_guard(rich("mood"), notes, sync=sync, ready=False)
        wait_until(lambda: "not yet" in (guard.status()["last_build_error"] or ""), PATIENCE,
                   guard.log)
        wait_filled(guard, cache, "item:7", b"sad")
        database.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
        database.execute("UPDATE notes SET size = '1'")
        guard.wait_guarding()
        wait_value(guard, "item:7", b"blue")

    @pytest.mark.parametrize("sync", ["poll", "none"])
    def test_without_a_log_purges_with_the_next_generation(self, start_guard, database, cache,
                                                           rich, sync):
        guard = start_guard(rich("mood"), sync=sync)
        wait_filled(guard, cache, "item:7", b"sad")
        guard.rebuild()
        assert cache.client().get("item:7") == b"sad"
        database.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
        guard.rebuild()
        wait_value(guard, "item:7", b"blue")
