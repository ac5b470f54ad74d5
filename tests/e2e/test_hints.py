"""A key that is written through the guard is admitted until a filter knows its row. Without a log
nothing but the filters themselves tells when that is."""
import contextlib
import itertools

import pytest
import redis

from following import fill, follow, purges_owed, wait_generation, wait_purged, wait_removed  # a fixture, too
from servers import PATIENCE
from waiting import wait_until

HINT_TTL = "300ms"


@contextlib.contextmanager
def uncommitted(database, sql):
    """Committed at its end."""
    connection = database.connect()
    try:
        connection.autocommit = False
        connection.cursor().execute(sql)
        yield
        connection.commit()
    finally:
        connection.close()


def write(guard, cache, key):
    """As an application that has not committed the row yet."""
    guard.redis().set(key, "new")
    cache.client().delete(key)


def outlive_the_ttl(guard):
    """What was admitted before has been for longer than hint_ttl."""
    key = next(key for key in (f"item:{n}" for n in range(9000, 9999)) if not is_admitted(guard, key))
    guard.control("PUT", guard.key_path(key) + f"?for={HINT_TTL}")
    wait_until(lambda: not is_admitted(guard, key), PATIENCE, guard.status)


def is_admitted(guard, key):
    return guard.explain(key)["verdict"] != "absent"


@pytest.fixture(params=["poll", "none"])
def guard(request, start_guard, items):
    return start_guard(items(), sync=request.param, hint_ttl=HINT_TTL)


def test_a_hint_outlives_the_filters_that_cannot_see_its_row(guard, database, cache):
    with uncommitted(database, "INSERT INTO items VALUES (1000, 'new')"):
        write(guard, cache, "item:1000")
        outlive_the_ttl(guard)
        for _ in range(3):
            guard.rebuild()
        assert is_admitted(guard, "item:1000")
        assert guard.redis().get("item:1000") is None  # which says nothing of what comes
    assert guard.redis().get("item:1000") == b"new"
    for _ in range(2):
        guard.rebuild()
    wait_until(lambda: guard.status()["entries"] == 0, PATIENCE, guard.status)
    assert guard.redis().get("item:1000") == b"new"
    assert not is_admitted(guard, "item:5000")


def held_by_chance(guard, numbers):
    return [n for n in numbers if is_admitted(guard, f"item:{n}")]


def add(guard, _, key):
    assert guard.redis().execute_command("CF.ADD", "items", key)


@pytest.mark.parametrize("tell", [write, add])
@pytest.mark.parametrize("sync", ["poll", "none"])
def test_a_write_is_remembered_though_the_filter_takes_the_key_for_known(
        start_guard, database, cache, items, sync, tell):
    """The next filter does not, and sees no row yet."""
    guard = start_guard(items(false_positive_rate=0.03), sync=sync, hint_ttl=HINT_TTL)
    numbers = range(1000, 9000)  # a filter of so few rows holds few others
    chosen = list(itertools.islice((n for n in numbers if is_admitted(guard, f"item:{n}")), 3))
    assert chosen
    rows = ", ".join(f"({n}, 'new')" for n in chosen)
    with uncommitted(database, f"INSERT INTO items VALUES {rows}"):
        for n in chosen:
            tell(guard, cache, f"item:{n}")
        outlive_the_ttl(guard)
        guard.rebuild()
        assert held_by_chance(guard, chosen) == chosen
    assert guard.redis().mget([f"item:{n}" for n in chosen]) == [b"new"] * len(chosen)


@pytest.mark.parametrize("lines", [
    ["XGROUP CREATE item:777 g $ MKSTREAM"], ["BLMOVE list item:777 LEFT LEFT 5"],
    ["BRPOPLPUSH list item:777 5"], ["MULTI", "BLMOVE list item:777 LEFT LEFT 5", "EXEC"]])
def test_whatever_makes_a_key_admits_it(guard, cache, lines):
    cache.client().rpush("list", "v")
    with guard.wire() as wire:
        replies = [wire.ask(*line.split()) for line in lines]
    assert cache.client().exists("item:777"), replies
    assert is_admitted(guard, "item:777")


def test_a_wait_in_vain_admits_nothing(guard):
    with guard.wire() as wire:
        assert wire.ask("BLMOVE", "empty", "item:778", "LEFT", "LEFT", "0.1") in (b"$-1\r\n", b"*-1\r\n")
    assert not is_admitted(guard, "item:778")


def test_what_exec_was_refused_admits_nothing(guard, cache):
    cache.client().rpush("list", "v")
    with guard.wire() as wire:
        for words in (["MULTI"], ["SET", "item:780", "v", "XX"], ["SET", "item:781", "v"], ["UNWATCH"],
                      ["EVAL", "return {err='OOM command not allowed'}", 1, "item:782"], ["SET", "item:783", "v", "NX"],
                      ["RENAME", "none", "item:784"], ["RENAME", "list", "item:785"], ["INCR", "item:781"]):
            assert wire.ask(*words) in (b"+OK\r\n", b"+QUEUED\r\n")
        reply = wire.ask("EXEC")
    assert reply.startswith(b"*8\r\n$-1\r\n+OK\r\n+OK\r\n-"), reply
    admitted = [n for n in range(780, 786) if is_admitted(guard, f"item:{n}")]
    assert admitted == [781, 783, 785], reply


LARGE = "x" * 2_000_000


@pytest.mark.parametrize("words", [["SET", "item:779", LARGE, "XX"], ["LPUSHX", "item:779", LARGE]])
def test_a_large_write_that_wrote_nothing_admits_nothing(guard, words):
    with guard.wire() as wire:
        assert wire.ask(*words) in (b"$-1\r\n", b":0\r\n")
    assert not is_admitted(guard, "item:779")


@pytest.mark.parametrize("words", [["SET", "item:779", LARGE, "GET"], ["SET", "item:779", LARGE, "NX"],
                                   ["SET", "item:779", LARGE, "NX", "GET"], ["SETNX", "item:779", LARGE]])
def test_a_large_write_admits_its_key_whatever_it_answers(guard, words):
    with guard.wire() as wire:
        assert wire.ask(*words) in (b"$-1\r\n", b"+OK\r\n", b":1\r\n")
        assert is_admitted(guard, "item:779")


def test_no_write_is_refused_for_keys_that_the_filter_knows(start_guard, cache, items):
    guard = start_guard(items(), sync="poll", poll_interval="1h", max_hints=8)
    guard.redis().mset({f"item:{n}": "known" for n in range(1, 101)})
    for n in range(1, 101):
        guard.redis().set(f"item:{n}", "known")
    assert guard.status()["entries"] <= 2
    guard.redis().mset({f"item:{n}": "new" for n in range(1001, 1003)})
    assert is_admitted(guard, "item:1001") and is_admitted(guard, "item:1002")
    assert guard.generation() == 1


def test_a_hint_ends_with_the_next_filter_where_nobody_writes(guard, cache):
    write(guard, cache, "item:1000")
    outlive_the_ttl(guard)
    assert is_admitted(guard, "item:1000")
    guard.rebuild()
    wait_until(lambda: not is_admitted(guard, "item:1000"), PATIENCE, guard.status)


def test_a_hint_without_a_place_is_refused_and_the_others_are_kept_to(start_guard, database, cache,
                                                                      items):
    guard = start_guard(items(), sync="poll", poll_interval="1h", hint_ttl=HINT_TTL, max_hints=5)
    with uncommitted(database, "INSERT INTO items VALUES (1001, 'new')"):
        write(guard, cache, "item:1000")
        write(guard, cache, "item:1001")
        with pytest.raises(redis.ResponseError, match="max_hints"):
            guard.redis().mset({f"item:{n}": "new" for n in range(1002, 1010)})
        assert guard.keyspace()["state"] == "guarding"
        guard.rebuild()
        assert is_admitted(guard, "item:1001")
    assert guard.redis().get("item:1001") == b"new"
    assert not is_admitted(guard, "item:5000")


def test_a_hint_that_is_over_soon_is_renewed_by_the_next_write(follow, items):
    guard = follow(items(), hint_ttl="10m")
    guard.control("PUT", guard.key_path("item:1000") + f"?for={HINT_TTL}")
    assert guard.redis().set("item:1000", "v")
    outlive_the_ttl(guard)
    for _ in range(10):
        assert guard.redis().get("item:1000") == b"v"


def test_a_write_behind_the_deletion_of_its_row_is_found(follow, database, cache, items):
    """Held as the key still is: the filter forgets it a moment later."""
    guard, keys = follow(items(), hint_ttl="1m"), [f"item:{n}" for n in range(1, 21)]
    for n, key in enumerate(keys, 1):
        fill(guard, cache, key)
        database.execute("DELETE FROM items WHERE id = %s", (n,))
        wait_purged(cache, key)
        guard.redis().set(key, "the application's own")
    wait_removed(guard, database)
    assert guard.redis().mget(keys) == [b"the application's own"] * len(keys)


def test_so_is_one_behind_the_truncation_of_its_table(follow, database, cache, items):
    """The generation that holds the key is replaced by one that does not."""
    guard = follow(items(), hint_ttl="1m")
    fill(guard, cache, "item:7")
    database.execute("TRUNCATE items")
    wait_purged(cache, "item:7")
    wait_until(lambda: purges_owed(guard) == 0, PATIENCE, "the end of the sweep")
    guard.redis().set("item:7", "the application's own")
    wait_generation(guard, 2)
    assert guard.redis().get("item:7") == b"the application's own"
    assert not is_admitted(guard, "item:8")


@pytest.mark.parametrize("keys", [400, 100])
def test_what_is_admitted_already_may_be_written_again(start_guard, items, keys):
    """A client may have half of max_hints, and it has them."""
    client = start_guard(items(), max_hints=1000, hint_ttl="1h").redis(single_connection_client=True)
    written = {f"item:{n}": "new" for n in range(1000, 1000 + keys)}
    for _ in range(10):
        assert client.mset(written)
    with client.pipeline() as pipe:
        for _ in range(5):
            pipe.mset(written)
        assert all(pipe.execute())
    with pytest.raises(redis.ResponseError, match="NESTGUARD busy"):
        client.mset({f"item:{n}": "new" for n in range(2000, 2501)})
    assert client.mset({f"item:{n}": "new" for n in range(2000, 2100)})


def test_an_admins_deletion_leaves_a_hint_whose_row_may_still_come(guard, database, cache):
    with uncommitted(database, "INSERT INTO items VALUES (1000, 'new')"):
        guard.redis().set("item:1000", "new")
        answer = guard.control("DELETE", guard.key_path("item:1000"))
        assert answer.status_code == 204
        assert cache.client().exists("item:1000") == 0
        assert guard.redis().get("item:1000") is None
    assert guard.redis().get("item:1000") == b"new"


def test_a_hint_that_was_left_ends_as_any(guard, database):
    guard.redis().set("item:1000", "new")
    assert guard.control("DELETE", guard.key_path("item:1000")).status_code == 204
    assert guard.redis().get("item:1000") is None
    outlive_the_ttl(guard)
    guard.rebuild()
    wait_until(lambda: not is_admitted(guard, "item:1000"), PATIENCE, guard.status)
