"""What a client did not achieve has no effect: a write that the cache refuses, or that writes nothing,
admits no key, loads no row, and builds nothing."""
import threading

import pytest
import redis

from following import publish
from waiting import wait_until
from wire import command

NEW = "item:777"
PATIENCE = 10


def keys(count):
    return [f"item:{n}" for n in range(1000, 1000 + count)]


@pytest.fixture
def guard(start_guard, items, cache):
    admin = cache.client()
    admin.acl_setuser("weak", enabled=True, nopass=True, commands=["+ping"])
    yield start_guard(items())
    admin.acl_deluser("weak")


def assert_untouched(guard, key=NEW):
    """As if the write had never been sent."""
    assert guard.explain(key)["entry"] == "none"
    assert guard.redis().get(key) is None
    assert guard.keyspace()["loads"] == 0
    assert guard.keyspace()["state"] == "guarding"
    assert guard.generation() == 1
    assert guard.status()["entries"] == 0


def test_what_the_cache_refuses_admits_nothing(guard):
    with guard.wire() as wire:
        assert wire.ask("AUTH", "weak", "x") == b"+OK\r\n"
        assert wire.ask("SET", NEW, "v").startswith(b"-NOPERM")
    assert_untouched(guard)


def test_a_refused_script_of_many_keys_starts_nothing(guard):
    with guard.wire() as wire:
        assert wire.ask("AUTH", "weak", "x") == b"+OK\r\n"
        for _ in range(10):
            assert wire.ask("EVAL", "return 1", 30000, *keys(30000)).startswith(b"-NOPERM")
            assert guard.keyspace()["state"] == "guarding"
    assert_untouched(guard, "item:1000")


@pytest.mark.parametrize("write", [
    ["SET", NEW, "v", "XX"], ["SET", NEW, "v", "XX", "GET"], ["RENAME", "none", NEW],
    ["RESTORE", NEW, "0", "nonsense"], ["COPY", "none", NEW], ["EVALSHA", "0" * 40, "1", NEW],
    ["BITFIELD", NEW, "GET", "u8", "0"], ["SORT", "none", "STORE", NEW], ["SETRANGE", NEW, "0", ""],
    ["SINTERSTORE", NEW, "none", "none2"], ["LMOVE", "none", NEW, "LEFT", "LEFT"],
    ["ZADD", NEW, "XX", "1", "m"], ["XADD", NEW, "NOMKSTREAM", "*", "f", "v"]])
def test_what_writes_nothing_admits_nothing(guard, write):
    pipeline = command(*write) + command("GET", NEW)
    with guard.wire() as wire:
        for _ in range(20):
            wire.send(pipeline)
            wire.read_reply()
            assert wire.read_reply() == b"$-1\r\n"
    assert_untouched(guard)


@pytest.mark.parametrize("write", [
    ["SET", NEW, "v"], ["SET", NEW, "v", "NX"], ["SET", NEW, "v", "GET"], ["GETSET", NEW, "v"],
    ["APPEND", NEW, "v"], ["EVAL", "return redis.call('SET', KEYS[1], 'v')", "1", NEW],
    ["SETEX", NEW, "100", "v"], ["MSET", "other", "x", NEW, "v"]])
def test_what_is_written_is_found_at_once_and_later(guard, write):
    with guard.wire() as wire:
        wire.send(command(*write) + command("GET", NEW))
        wire.read_reply()
        assert wire.read_reply() == b"$1\r\nv\r\n"
    for _ in range(10):
        assert guard.redis().get(NEW) == b"v"


EXPIRED = [["SET", NEW, "v", "EXAT", "1000000000"], ["SET", NEW, "v", "PXAT", "1000000000000"]]


@pytest.mark.parametrize("write", EXPIRED)
def test_what_has_expired_before_it_is_written_admits_nothing(guard, write):
    with guard.wire() as wire:
        assert wire.ask(*write) == b"+OK\r\n"
    assert_untouched(guard)


def transaction(*end, watched="watched"):
    return [["WATCH", watched], ["MULTI"], ["SET", NEW, "v"], *end]


@pytest.mark.parametrize("commands", [
    transaction(["DISCARD"]), transaction(["EXEC", "x"], ["EXEC"]), transaction(["NOSUCH"], ["EXEC"]),
    transaction(["RESET"]), transaction(), transaction(["BLMOVE", "none", NEW, "LEFT", "LEFT", "0"], ["DISCARD"])],
    ids=lambda commands: commands[-1][0])
def test_a_transaction_that_is_not_executed_admits_nothing(guard, commands):
    with guard.wire() as wire:
        for words in commands:
            wire.ask(*words)
        if commands[-1][0] == "SET":
            assert guard.status()["entries"] == 0
    assert_untouched(guard)


def test_transactions_whose_watched_key_has_changed_admit_nothing_and_use_up_no_share(start_guard, items):
    guard = start_guard(items(), max_hints=20, hint_ttl="1h", workers=1)
    other = guard.redis()
    with guard.wire() as wire:
        for n in range(50):
            assert wire.ask("WATCH", "watched") == b"+OK\r\n"
            other.incr("watched")
            wire.send(command("MULTI") + command("SET", f"item:{9000 + n}", "v") + command("EXEC"))
            assert wire.read_replies(3) == b"+OK\r\n+QUEUED\r\n*-1\r\n"
        assert_untouched(guard, "item:9000")
        assert wire.ask("SET", NEW, "v") == b"+OK\r\n"
    assert other.get(NEW) == b"v"


def test_what_a_transaction_has_written_is_found_at_once_and_by_every_worker(start_guard, items):
    guard = start_guard(items(), workers=4)
    with guard.wire() as wire:
        wire.send(command("MULTI") + command("SET", NEW, "v") + command("EXEC") + command("GET", NEW))
        assert wire.read_replies(4) == b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$1\r\nv\r\n"
        for n in range(50):
            wire.send(command("MULTI") + command("SET", f"item:{9000 + n}", "v") + command("EXEC"))
            wire.read_replies(3)
            assert guard.redis().get(f"item:{9000 + n}") == b"v"


def test_a_transaction_that_empties_the_cache_and_writes_is_believed(guard):
    with guard.wire() as wire:
        wire.send(command("MULTI") + command("FLUSHALL") + command("SET", NEW, "v") + command("EXEC"))
        assert wire.read_replies(4) == b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+OK\r\n"
    for _ in range(10):
        assert guard.redis().get(NEW) == b"v"


def test_who_writes_more_than_a_share_is_told_and_nobody_else_is_harmed(start_guard, items):
    guard = start_guard(items(), max_hints=1000)
    client, other = guard.redis(), guard.redis()
    client.mset({key: "v" for key in keys(500)})
    with pytest.raises(redis.ResponseError, match="max_hints"):
        client.set("item:9000", "v")
    with pytest.raises(redis.ResponseError, match="EXECABORT|max_hints"):
        with client.pipeline(transaction=True) as pipe:
            pipe.set("item:9001", "v").set("fine", "x").execute()
    assert not client.exists("fine")
    assert client.set("item:1", "a row's") and client.set("no:matter", "v")
    assert other.set("item:9002", "v")
    assert other.get("item:9002") == b"v"
    assert other.get("item:9000") is None
    assert client.mget(keys(500)) == [b"v"] * 500
    assert guard.keyspace()["state"] == "guarding"
    assert guard.generation() == 1
    assert guard.keyspace()["loads"] == 0


def test_exec_asks_anew_whether_there_is_room(start_guard, database, items, cache):
    """What had hints when it was queued may have none when it is run: it is not done, and says so."""
    publish(database, items())
    guard = start_guard(items(), sync="replication", max_hints=100, hint_ttl="4s", workers=1)
    mine = keys(20)
    client = guard.redis()
    with guard.wire() as wire:
        for key in mine:
            assert client.set(key, "old")
        wire.send(command("MULTI") + b"".join(command("SET", key, "new") for key in mine))
        assert [wire.read_reply() for _ in range(21)] == [b"+OK\r\n"] + [b"+QUEUED\r\n"] * 20
        wait_until(lambda: guard.explain(mine[-1])["entry"] == "none", PATIENCE, "the end of the hints")
        for first in (5000, 6000, 7000):
            other = guard.redis()
            with pytest.raises(redis.ResponseError, match="max_hints"):
                for n in range(first, first + 100):
                    other.set(f"item:{n}", "v")
        assert b"max_hints" in wire.ask("EXEC")
        assert guard.explain(mine[0])["entry"] == "none"
        assert wire.ask("GET", "other:1") == b"$-1\r\n", "the transaction is over"
    assert cache.client().get(mine[0]) == b"old"


def test_who_connects_anew_for_each_write_leaves_room_for_other_hosts(start_guard, items):
    guard = start_guard(items(), max_hints=100, hint_ttl="1h", workers=1)
    replies = []
    for n in range(9000, 9100):
        with guard.wire("127.0.0.2") as wire:
            replies.append(wire.ask("SET", f"item:{n}", "v"))
    assert replies.count(b"+OK\r\n") == 75
    assert replies[-1].startswith(b"-NESTGUARD busy")
    with guard.wire() as wire:
        assert wire.ask("SET", "item:9500", "v") == b"+OK\r\n"
        assert wire.ask("GET", "item:9500") == b"$1\r\nv\r\n"


def test_what_a_user_may_not_write_is_refused_alike_with_and_without_a_row(start_guard, cache, items):
    guard = start_guard(items(), max_hints=20, hint_ttl="1h", workers=1)
    admin = cache.client()
    admin.execute_command("ACL", "SETUSER", "semi", "on", "nopass", "+@all", "~item:9*")
    try:
        with guard.wire() as wire:
            assert wire.ask("AUTH", "semi", "x") == b"+OK\r\n"
            for n in range(9000, 9009):
                assert wire.ask("SET", f"item:{n}", "v") == b"+OK\r\n"
            for denied, last in (("item:5", "item:9000"), ("item:555", "item:9000")):
                wire.send(command("SET", denied, "v") + command("SET", last, "v"))
                assert wire.read_reply().startswith(b"-NOPERM")
                assert wire.read_reply() == b"+OK\r\n"
            wire.send(command("SET", "item:555", "v") + command("SET", "item:9009", "v"))
            assert wire.read_reply().startswith(b"-NOPERM")
            assert wire.read_reply() == b"+OK\r\n"
            for key in ("item:5", "item:555"):
                assert wire.ask("SET", key, "v").startswith(b"-NESTGUARD busy"), key
                assert wire.ask("EVAL", "return 1", "1", key).startswith(b"-NESTGUARD busy"), key
            assert wire.ask("DEL", "item:5") == wire.ask("DEL", "item:555")
    finally:
        admin.execute_command("ACL", "DELUSER", "semi")


def test_a_share_is_weighed_and_not_only_counted(start_guard, items):
    """A key takes a place for each 256 bytes."""
    guard = start_guard(items(), max_hints=1000)
    client, other = guard.redis(), guard.redis()
    long = [f"item:9{n:0>60000}" for n in range(3)]
    client.mset({key: "v" for key in long[:2]})
    for words in (["SET", long[2], "v"], ["EVAL", "return 1", 1, long[2]]):
        with pytest.raises(redis.ResponseError, match="max_hints"):
            client.execute_command(*words)
    assert client.mget(long[:2]) == [b"v"] * 2
    assert client.set("item:9002", "v"), "there is room for small ones"
    assert other.set("item:9003", "v")
    assert guard.keyspace()["state"] == "guarding"


def test_a_key_that_is_written_behind_fills_again_and_again_takes_one_place(start_guard, items):
    """What has a hint already needs no other; and what EXEC was granted for it, it gives back."""
    guard = start_guard(items(), max_hints=100, hint_ttl="1h", workers=1)
    with guard.wire() as wire:
        for _ in range(200):
            wire.send(command("MULTI") + command("SET", "item:777", "v") + command("FLUSHDB") + command("EXEC"))
            assert [wire.read_reply() for _ in range(3)] == [b"+OK\r\n", b"+QUEUED\r\n", b"+QUEUED\r\n"]
            assert wire.read_reply() == b"*2\r\n+OK\r\n+OK\r\n"
        assert wire.ask("SET", "item:778", "v") == b"+OK\r\n"


@pytest.mark.parametrize("words", [["FLUSHALL"], ["SWAPDB", "0", "1"], ["DEL", *keys(1)]], ids=str)
def test_who_may_not_keeps_nothing_out_of_the_cache(start_guard, database, items, cache, words):
    """The keeper hears of what empties the cache before the cache does: what it loads meanwhile is
    cached all the same, if that is refused."""
    admin = cache.client()
    admin.acl_setuser("weak", enabled=True, nopass=True, commands=["+ping"])
    database.execute("INSERT INTO items SELECT n, 'p' || n FROM generate_series(1000, 1299) n")
    guard = start_guard(items())
    ended = threading.Event()

    def repeat():
        with guard.wire() as wire:
            wire.ask("AUTH", "weak", "x")
            while not ended.is_set():
                wire.send(command(*words) * 20)
                assert set(wire.read_reply() for _ in range(20)) == {wire_refusal}

    with guard.wire() as wire:
        wire.ask("AUTH", "weak", "x")
        wire_refusal = wire.ask(*words)
        assert wire_refusal.startswith(b"-NOPERM")
    parts = [threading.Thread(target=repeat) for _ in range(3)]
    for part in parts:
        part.start()
    try:
        client = guard.redis()
        for key in keys(300) if words[0] != "DEL" else keys(1) * 100:
            assert client.get(key) == b"p" + key[5:].encode()
            wait_until(lambda key=key: admin.exists(key), PATIENCE, f"{key} in the cache")
            admin.delete(key)
    finally:
        ended.set()
        for part in parts:
            part.join()
    admin.acl_deluser("weak")


def test_a_transaction_behind_one_that_blocks_keeps_nothing_out_of_the_cache(
        start_guard, database, items, cache):
    """Fills wait for what empties the cache from when it is sent; so it is sent when it can be run."""
    database.execute("INSERT INTO items SELECT n, 'p' || n FROM generate_series(1000, 1009) n")
    guard, admin = start_guard(items()), cache.client()
    transaction = [["MULTI"], ["FLUSHALL"], ["SET", keys(1)[0], "v"], ["EXEC"]]
    with guard.wire() as wire:
        wire.send(b"".join(command(*each) for each in (["BLPOP", "nolist", 0], *transaction)))
        wait_until(lambda: admin.info("clients")["blocked_clients"], PATIENCE, "one that is blocked")
        for key in keys(10)[1:]:
            assert guard.redis().get(key) == b"p" + key[5:].encode()
            wait_until(lambda key=key: admin.exists(key), PATIENCE, f"{key} in the cache")
        admin.rpush("nolist", "item")
        assert wire.read_reply() == b"*2\r\n$6\r\nnolist\r\n$4\r\nitem\r\n"
        assert [wire.read_reply() for _ in range(3)] == [b"+OK\r\n", b"+QUEUED\r\n", b"+QUEUED\r\n"]
        assert wire.read_reply() == b"*2\r\n+OK\r\n+OK\r\n"
