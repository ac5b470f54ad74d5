"""Values that an SQL expression makes of a row."""
import pytest
import redis

from following import follow, wait_followed
from servers import PATIENCE
from test_reload import reload
from waiting import wait_until


@pytest.fixture
def rich(database, items):
    """rich(expression): a keyspace of `items` with more columns; item 3 has nothing in them."""
    database.execute("""
        ALTER TABLE items ADD number int, ADD raw bytea, ADD note text;
        UPDATE items SET number = id - 1, raw = convert_to(payload, 'UTF8') WHERE id <> 3""")
    return lambda expression, **settings: items(value=expression, **settings)


@pytest.mark.parametrize("expression, value", [
    ("jsonb_build_object('id', id, 'n', payload)::text", b'{"n": "payload 7", "id": 7}'),
    ("json_build_object('id', items.id)", b'{"id" : 7}'),
    ("encode(raw, 'hex')", b"payload 7".hex().encode()),
    ("raw || '\\x00ff'::bytea", b"payload 7\0\xff"),
    ("payload || ' -- ' -- a comment", b"payload 7 -- "),
    ("(id * 2)", b"14"), ("(id > 5)", b"t"), ("(ARRAY[id, number])", b"{7,6}"),
    ("(SELECT payload)", b"payload 7"),
    ("(CASE WHEN number IS NULL THEN 'none' END)", b""),
    ('"payload" || \'%s $1\'', b"payload 7%s $1")])
def test_a_value_is_what_the_expression_gives(start_guard, rich, expression, value):
    guard = start_guard(rich(expression))
    for _ in range(2):  # loaded, and then from the cache
        assert guard.redis().get("item:7") == value
    assert guard.redis().get("item:700") is None


def test_null_is_an_empty_value_of_a_row_that_is_there(start_guard, rich):
    guard = start_guard(rich("upper(note)"))
    assert guard.redis().get("item:7") == b"" and guard.redis().exists("item:7") == 1
    assert guard.redis().mget("item:7", "item:8", "item:700") == [b"", b"", None]


class TestErrors:
    """Of one row: nobody is told that it is not there, and others are served."""

    @pytest.mark.parametrize("expression, words", [
        ("(100 / number)::text", "division by zero"),
        ("CASE WHEN id = 1 THEN payload::date::text ELSE 'fine' END", "invalid input syntax"),
        ("(SELECT 'fine' FROM generate_series(0, (number = 0)::int))", "more than one row")])
    def test_are_errors_to_the_client(self, start_guard, cache, rich, expression, words):
        guard = start_guard(rich(expression))
        client = guard.redis()
        for call in (client.get, client.exists):
            with pytest.raises(redis.ResponseError, match="^NESTGUARD"):
                call("item:1")
        assert client.get("item:2") and client.get("item:700") is None
        assert words in guard.log()
        assert not cache.client().exists("item:1")

    def test_of_sets_are_errors_of_every_row_and_never_nil(self, start_guard, database, cache, rich):
        """A set without members would look like a row that is not there."""
        guard = start_guard(rich("upper(payload)"))
        with database.locked():  # else it would be refused
            reload(guard, database, cache, "none", rich("unnest(ARRAY[]::text[])"))
        with pytest.raises(redis.ResponseError, match="^NESTGUARD"):
            guard.redis().get("item:7")

    def test_do_not_keep_a_row_from_being_found(self, start_guard, database, rich):
        guard = start_guard(rich("(100 / number)::text"))
        assert guard.explain("item:1")["verdict"] == "possible"
        assert guard.control("DELETE", guard.key_path("item:1")).status_code == 409
        assert guard.control("DELETE", guard.key_path("item:1") + "?row=delete").ok
        assert database.value("SELECT count(*) FROM items WHERE id = 1") == 0
        assert guard.redis().get("item:1") is None


class TestTTL:
    """A time to live by an expression."""

    @pytest.fixture
    def served(self, start_guard, cache, items):
        """served(expression): a keyspace's guard, and how long item 7's value lives then."""
        def of(expression, **settings):
            guard = start_guard(items(ttl_expression=expression, ttl_jitter=0, **settings))
            assert guard.redis().get("item:7") == b"payload 7"
            wait_until(lambda: guard.total("nestguard_fills_total")
                       + guard.total("nestguard_fills_forgone_total") == 1, PATIENCE, guard.log)
            return guard, cache.client().pttl("item:7")

        return of

    @pytest.mark.parametrize("expression, seconds", [
        ("90", 90), ("id * 10.5", 73.5), ("id::text || '0'", 70), ("interval '2 minutes'", 120),
        ("now() + interval '1 hour' - now()", 3600), ("1e30", 3650 * 86400),
        ("'infinity'::float8", 3650 * 86400),
        ("greatest(extract(epoch from now() + interval '50 s' - now()), 1)", 50)])
    def test_is_a_number_of_seconds_or_an_interval(self, served, expression, seconds):
        _, ttl = served(expression)
        assert (seconds - 30) * 1000 < ttl <= seconds * 1000

    def test_is_the_keyspaces_where_it_is_null(self, served):
        _, ttl = served("CASE WHEN id = 1 THEN 5 END", ttl="100s")
        assert 70_000 < ttl <= 100_000

    def test_may_be_null_of_a_value_that_stays(self, served):
        _, ttl = served("NULL", ttl=0)
        assert ttl == -1, "no ttl"

    @pytest.mark.parametrize("expression", ["0", "-3", "interval '-1 day'", "'NaN'::float8",
                                            "payload", "deleted_at IS NULL"])
    def test_that_is_over_or_no_number_keeps_a_value_out_of_the_cache(self, served, expression):
        guard, ttl = served(expression)
        assert ttl == -2, "no key"
        assert guard.redis().get("item:7") == b"payload 7"
        assert guard.redis().get("item:700") is None
        assert (expression[0] in "'pd") == ("no number of seconds" in guard.log())

    def test_that_fails_is_an_error_to_the_client(self, start_guard, cache, items):
        guard = start_guard(items(ttl_expression="10 / (id - 7)"))
        with pytest.raises(redis.ResponseError, match="^NESTGUARD"):
            guard.redis().get("item:7")
        assert guard.redis().get("item:8") == b"payload 8"
        assert not cache.client().exists("item:7")


def wait_filled(guard, cache):
    """With item 7, by a load that sees all that is committed."""
    wait_until(lambda: guard.redis().get("item:7") and cache.client().exists("item:7"), PATIENCE,
               "the fill")


class TestPurges:
    @pytest.mark.parametrize("identity", ["DEFAULT", "FULL", "USING INDEX items_pkey"])
    def test_an_update_of_any_column_purges(self, follow, database, cache, rich, identity):
        keyspace = rich("payload || coalesce(note, '') || number", ttl=0)
        database.execute(f"ALTER TABLE items REPLICA IDENTITY {identity}")
        guard = follow(keyspace)
        for column, text in [("note", "'!'"), ("number", "70"), ("payload", "'new'"),
                             ("raw", "NULL")]:
            wait_filled(guard, cache)
            database.execute(f"UPDATE items SET {column} = {text} WHERE id = 7")
            wait_followed(database)
            wait_until(lambda: not cache.client().exists("item:7"), PATIENCE, guard.log)
        assert guard.redis().get("item:7") == b"new!70"

    def test_another_expression_purges_what_the_one_before_gave(self, follow, database, cache, rich):
        guard = follow(rich("upper(payload)", ttl=0))
        wait_filled(guard, cache)
        assert guard.redis().get("item:7") == b"PAYLOAD 7"
        reload(guard, database, cache, "replication", rich("reverse(payload)", ttl=0))
        wait_until(lambda: guard.redis().get("item:7") == b"7 daolyap", PATIENCE, guard.log)
