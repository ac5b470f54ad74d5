"""What a lookup of a guarded key is answered, and what of it reaches Redis and PostgreSQL."""
import json

import pytest
import redis

from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

MISSING = "item:1000"


def test_a_key_without_a_row_is_answered_before_cache_and_database(
        start_guard, database, cache, items):
    guard = start_guard(items())
    assert guard.redis().get(MISSING) is None
    assert cache.calls("get") == 0
    assert database.count_loads() == 0
    assert guard.counter("nestguard_rejected_total") == 1


def test_a_row_is_loaded_once_and_then_comes_from_the_cache(start_guard, database, cache, items):
    guard = start_guard(items())
    assert guard.redis().get("item:7") == b"payload 7"
    assert database.count_loads() == 1
    cache.wait_for_key("item:7")
    assert cache.client().get("item:7") == b"payload 7"
    assert guard.redis().get("item:7") == b"payload 7"
    assert database.count_loads() == 1
    assert guard.counter("nestguard_cache_misses_total") == 1
    assert guard.counter("nestguard_cache_hits_total") == 1
    assert guard.counter("nestguard_loads_total", result="row") == 1


def test_the_cache_is_believed_before_the_database(start_guard, database, cache, items):
    guard = start_guard(items())
    cache.client().set("item:7", "newer")
    assert guard.redis().get("item:7") == b"newer"
    assert database.count_loads() == 0


def test_an_empty_value_is_a_value(start_guard, database, cache, items):
    database.execute("UPDATE items SET payload = '' WHERE id = 7")
    guard = start_guard(items())
    assert guard.redis().get("item:7") == b""
    cache.wait_for_key("item:7")
    assert guard.redis().get("item:7") == b""


def test_a_row_whose_value_is_null_is_there_and_empty(start_guard, database, cache, items):
    database.execute("UPDATE items SET payload = NULL WHERE id = 7")
    guard = start_guard(items())
    assert guard.redis().get("item:7") == b""
    assert guard.redis().exists("item:7") == 1


def test_mget_answers_each_key_in_its_place(start_guard, database, cache, items):
    guard = start_guard(items())
    cache.client().mset({"item:1": "cached", "plain": "unguarded"})
    keys = ["item:2000", "item:1", "item:5", "plain", "item:5", "item:3000", "nothing", "item:9"]
    wanted = [None, b"cached", b"payload 5", b"unguarded", b"payload 5", None, None, b"payload 9"]
    client = guard.redis()
    assert client.mget(keys) == wanted
    cache.wait_for_key("item:5")
    cache.wait_for_key("item:9")
    assert client.mget(keys) == wanted
    assert database.count_loads() == 2


def test_an_mget_of_absent_keys_alone_asks_nobody(start_guard, database, cache, items):
    guard = start_guard(items())
    assert guard.redis().mget([f"item:{n}" for n in range(1000, 1050)]) == [None] * 50
    assert cache.calls("get") + cache.calls("mget") == 0
    assert database.count_loads() == 0
    assert guard.counter("nestguard_rejected_total") == 50


def test_exists_counts_rows_that_are_not_cached_and_repeats(start_guard, cache, items):
    guard = start_guard(items())
    cache.client().set("plain", "x")
    client = guard.redis()
    assert client.exists("item:1") == 1
    assert client.exists(MISSING) == 0
    assert client.exists("item:1", "item:2", MISSING, "item:1", "plain", "nothing") == 4


@pytest.mark.parametrize("words, reply", [
    (("STRLEN", MISSING), b":0\r\n"),
    (("TTL", MISSING), b":-2\r\n"),
    (("PTTL", MISSING), b":-2\r\n"),
    (("GETRANGE", MISSING, 0, -1), b"$0\r\n\r\n"),
    (("TYPE", MISSING), b"+none\r\n"),
])
def test_other_reads_of_an_absent_key_are_answered_as_redis_would(
        start_guard, cache, items, words, reply):
    guard = start_guard(items())
    assert cache.client().execute_command(*words) is not None  # a command that this Redis knows
    before = cache.calls(words[0].lower())
    assert guard.raw(command(*words), replies=1) == reply
    assert cache.calls(words[0].lower()) == before


def test_keys_of_no_keyspace_pass_untouched(start_guard, database, cache, items):
    guard = start_guard(items())
    client = guard.redis()
    for key in ["other", "ite", "xitem:5", "ITEM:5", "items:5"]:
        assert client.get(key) is None
        cache.client().set(key, "value")
        assert client.get(key) == b"value"
    assert database.count_loads() == 0
    assert guard.counter("nestguard_rejected_total") == 0


def test_on_absent_error_says_so_in_place(start_guard, cache, items):
    guard = start_guard(items(on_absent="error"))
    client = guard.redis()
    with pytest.raises(redis.ResponseError, match="^NESTGUARD absent"):
        client.get(MISSING)
    assert client.get("item:3") == b"payload 3"
    reply = guard.raw(command("MGET", "item:3", MISSING, "item:4"), replies=1)
    head, error, tail = reply.partition(b"-NESTGUARD absent")
    assert (head, error) == (b"*3\r\n" + bulk("payload 3"), b"-NESTGUARD absent")
    assert tail.endswith(b"\r\n" + bulk("payload 4"))
    assert client.exists(MISSING) == 0


def test_on_absent_value_gives_the_agreed_value(start_guard, database, cache, items):
    guard = start_guard(items(on_absent="value", absent_value="__gone__", on_miss="pass"))
    client = guard.redis()
    assert client.get(MISSING) == b"__gone__"
    assert client.mget("item:1", MISSING) == [None, b"__gone__"]
    assert client.exists(MISSING) == 0
    assert cache.client().dbsize() == 0
    assert database.count_loads() == 0


def test_a_row_that_is_gone_reads_as_absent_however_that_was_found(start_guard, database, items):
    """The filter still holds the key; the database does not: on_absent speaks here, too."""
    guard = start_guard(items(on_absent="value", absent_value="__gone__"))
    database.execute("DELETE FROM items WHERE id = 8")
    assert guard.redis().get("item:8") == b"__gone__"
    assert guard.redis().mget("item:8", "item:9") == [b"__gone__", b"payload 9"]
    assert guard.counter("nestguard_loads_total", result="absent") >= 1


def test_on_miss_pass_leaves_loading_to_the_application(start_guard, database, cache, items):
    guard = start_guard(items(on_miss="pass"))
    client = guard.redis()
    assert client.get("item:1") is None
    assert client.mget("item:1", MISSING) == [None, None]
    assert client.exists("item:1") == 0
    client.set("item:1", "by the application")
    assert client.get("item:1") == b"by the application"
    assert client.get(MISSING) is None
    assert database.count_loads() == 0
    assert guard.counter("nestguard_rejected_total") == 2


def test_shadow_mode_counts_and_lets_pass(start_guard, database, cache, items):
    guard = start_guard(items(enforce=False))
    cache.client().set("item:2000", "only in the cache")
    client = guard.redis()
    assert client.get(MISSING) is None
    assert client.get("item:2000") == b"only in the cache"
    assert client.get("item:1") == b"payload 1"
    assert cache.calls("get") + cache.calls("mget") == 3
    assert guard.counter("nestguard_would_reject_total") == 2
    assert guard.counter("nestguard_rejected_total") == 0
    loads = sum(guard.counter("nestguard_loads_total", result=result)
                for result in ("row", "absent"))
    assert loads == 2
    assert guard.counter("nestguard_false_positives_total") == 0  # the filter ruled the key out


def test_shadow_mode_finds_out_what_it_would_have_rejected_wrongly(start_guard, database, items):
    guard = start_guard(items(enforce=False))
    database.execute("INSERT INTO items VALUES (1000001, 'came later')")
    assert guard.redis().get("item:1000001") == b"came later"
    wait_until(lambda: guard.counter("nestguard_false_rejects_total") == 1, PATIENCE,
               "the sample to be looked up")
    assert guard.counter("nestguard_shadow_checked_total") == 1


@pytest.mark.parametrize("sync", ["none", "poll"])
def test_shadow_mode_remembers_no_absence(start_guard, database, items, sync):
    """Nobody tells of the row: what the database said before it came is no answer."""
    guard = start_guard(items(enforce=False), sync=sync)
    client = guard.redis()
    assert client.get("item:5000") is None
    assert client.mget("item:5001", "item:5002") == [None, None]
    assert client.exists("item:5003") == 0
    database.execute("INSERT INTO items SELECT n, 'late' FROM generate_series(5000, 5003) n")
    assert client.get("item:5000") == b"late"
    assert client.mget("item:5001", "item:5002") == [b"late", b"late"]
    assert client.exists("item:5003") == 1
    found = guard.keyspace()
    assert (found["would_reject"], found["rejected"], found["known_absent"]) == (8, 0, 0)
    assert found["filter"]["measured_false_positive_rate"] == 0


def test_shadow_mode_remembers_no_absence_of_a_hash(start_guard, database, items):
    guard = start_guard(items(enforce=False, fill="hash", value=["id", "payload"]))
    client = guard.redis()
    assert client.hget("item:5000", "payload") is None
    assert client.hgetall("item:5001") == {}
    database.execute("INSERT INTO items VALUES (5000, 'late'), (5001, 'late')")
    assert client.hget("item:5000", "payload") == b"late"
    assert client.hgetall("item:5001") == {b"id": b"5001", b"payload": b"late"}


def test_a_row_that_is_gone_for_a_moment_is_found_in_shadow_mode(start_guard, database, items):
    """The filter holds it all the time, so that it would not reject it either."""
    guard = start_guard(items(enforce=False))
    database.execute("DELETE FROM items WHERE id = 5")
    assert guard.redis().get("item:5") is None
    database.execute("INSERT INTO items VALUES (5, 'back')")
    assert guard.redis().get("item:5") == b"back"
    assert guard.counter("nestguard_false_positives_total") == 1


def test_the_time_to_live_is_drawn_below_its_bound(start_guard, cache, items):
    guard = start_guard(items(ttl="100s", ttl_jitter="50%"))
    keys = [f"item:{n}" for n in range(1, 61)]
    guard.redis().mget(keys)
    wait_until(lambda: cache.client().dbsize() == 60, PATIENCE, "60 fills")
    lives = [cache.client().pttl(key) for key in keys]
    assert max(lives) <= 100_000
    assert min(lives) > 50_000 - PATIENCE * 1000
    assert max(lives) - min(lives) > 10_000


def test_without_jitter_every_life_is_as_long_as_the_setting(start_guard, cache, items):
    guard = start_guard(items(ttl="100s", ttl_jitter="0%"))
    guard.redis().mget([f"item:{n}" for n in range(1, 31)])
    wait_until(lambda: cache.client().dbsize() == 30, PATIENCE, "30 fills")
    lives = [cache.client().pttl(key) for key in cache.client().keys()]
    assert max(lives) <= 100_000 and min(lives) > 100_000 - PATIENCE * 1000
    assert max(lives) - min(lives) < 10_000


def test_value_json_is_the_row_as_postgresql_prints_it(start_guard, database, items):
    database.execute("UPDATE items SET payload = E'\"quoted\"\\n\\u00e4 \\\\ line' WHERE id = 1")
    guard = start_guard(items(value="json"))
    wanted = database.value("SELECT row_to_json(items)::text FROM items WHERE id = 1")
    got = guard.redis().get("item:1")
    assert got.decode() == wanted
    assert json.loads(got)["id"] == 1


def test_a_bytea_value_is_given_raw(start_guard, database, cache):
    value = bytes(range(256)) * 20 + b"\r\n$5\r\n"
    database.execute("CREATE TABLE blobs (id int PRIMARY KEY, body bytea)")
    database.execute("INSERT INTO blobs VALUES (1, %s), (2, '')", (value,))
    guard = start_guard({"name": "blobs", "key": "blob:{id}", "table": "blobs", "value": "body"})
    assert guard.redis().get("blob:1") == value
    assert guard.redis().get("blob:2") == b""
    cache.wait_for_key("blob:1")
    assert cache.client().get("blob:1") == value
    assert guard.redis().get("blob:1") == value


def test_a_large_value_arrives_whole(start_guard, database, cache, items):
    database.execute("UPDATE items SET payload = repeat('abcdefghij', 300000) WHERE id = 1")
    guard = start_guard(items())
    assert guard.redis().get("item:1") == b"abcdefghij" * 300000
    cache.wait_for_key("item:1")
    assert guard.redis().get("item:1") == b"abcdefghij" * 300000


def test_where_leaves_rows_out(start_guard, database, items):
    database.execute("UPDATE items SET deleted_at = now() WHERE id <= 50")
    guard = start_guard(items(where="deleted_at IS NULL"))
    client = guard.redis()
    assert client.mget("item:50", "item:51") == [None, b"payload 51"]
    assert guard.keyspace()["rows"] == 50
    database.execute("UPDATE items SET deleted_at = now() WHERE id = 60")
    assert client.get("item:60") is None, "a load must not see what `where` leaves out"


def test_an_empty_table_rejects_everything(start_guard, database, cache, items):
    database.execute("TRUNCATE items")
    guard = start_guard(items())
    assert guard.redis().mget([f"item:{n}" for n in range(1, 101)]) == [None] * 100
    assert database.count_loads() == 0


def test_keyspaces_stand_side_by_side(start_guard, database, items):
    database.execute("CREATE TABLE users (name text PRIMARY KEY, payload text)")
    database.execute("INSERT INTO users VALUES ('5', 'user five')")
    users = {"name": "users", "key": "user:{name}", "table": "users", "value": "payload"}
    guard = start_guard(items(), users)
    client = guard.redis()
    assert client.mget("item:5", "user:5", "user:6", "item:101") == [
        b"payload 5", b"user five", None, None]
    assert guard.counter("nestguard_rejected_total", "items") == 1
    assert guard.counter("nestguard_rejected_total", "users") == 1


def test_a_write_through_the_guard_admits_its_key(start_guard, database, cache, items):
    guard = start_guard(items())
    client = guard.redis()
    assert client.get("item:500") is None
    client.set("item:500", "just written")
    assert guard.redis().get("item:500") == b"just written"
    client.delete("item:500")
    database.execute("INSERT INTO items VALUES (500, 'row 500')")
    assert guard.redis().get("item:500") == b"row 500"
