"""Commands that need a connection of their own: each family answered as by a Redis asked directly,
and what holds of guarded keys meanwhile."""
import contextlib
import select
import threading

import pytest
import redis

from beside import Pair, redis_beside
from following import paused
from servers import PATIENCE
from waiting import wait_until
from wire import Wire, bulk, command


@pytest.fixture(scope="module")
def other():
    with redis_beside() as server:
        yield server


@pytest.fixture
def guard(start_guard, items):
    return start_guard(items())


@pytest.fixture(params=[2, 3])
def pair(request, shared_guard, cache, other):
    other.client().flushall()
    with Pair(shared_guard, other) as both:
        both.ask(f"HELLO {request.param}")
        yield both


def is_shared(guard):
    return guard.status()["own_connections"] == 0


def must_share_again(guard):
    wait_until(lambda: is_shared(guard), PATIENCE, lambda: guard.status()["own_connections"])


def is_quiet(wire):
    return not wire.buffer and not select.select([wire.socket], [], [], 0)[0]


# ---- transactions ----

TRANSACTIONS = [
    ["MULTI", "SET a 1", "INCR a", "GET a", "EXEC", "GET a"],
    ["MULTI", "SET a 1", "DISCARD", "GET a"],
    ["MULTI", "GET item:101", "EXISTS item:101", "MGET item:101 item:102", "TTL item:101", "EXEC"],
    ["MULTI", "NOSUCHCOMMAND", "SET a 1", "EXEC", "GET a"],
    ["MULTI", "SET a", "SET a 1", "EXEC", "GET a"],
    ["MULTI", "MULTI", "SET a 1", "EXEC", "EXEC"],
    ["MULTI x", "EXEC", "DISCARD", "MULTI", "EXEC x", "EXEC"],
    ["MULTI", "SET a 1", "EXEC x", "EXISTS item:101", "SET a 2", "GET a", "MULTI", "GET a", "EXEC"],
    ["MULTI", "SET a 1", "DISCARD x", "GET a", "EXEC", "GET a"],
    ["WATCH a", "GET a", "MULTI", "SET a 1", "EXEC", "GET a"],
    ["WATCH a", "SET a 2", "MULTI", "SET a 1", "EXEC", "GET a"],
    ["WATCH a", "SET a 2", "UNWATCH", "MULTI", "SET a 1", "EXEC", "GET a"],
    ["WATCH", "MULTI", "WATCH a", "EXEC", "UNWATCH"],
    ["MULTI", "HSET h f v", "HGETALL h", "ZADD z 1 m", "ZSCORE z m", "EXEC"],
    ["MULTI", "BLPOP nothing 0", "EXEC", "PING"],
    ["MULTI", "SET item:200 x", "EXEC", "GET item:200"],
    ["MULTI", "RESET", "GET a"],
    ["EXEC", "DISCARD", "UNWATCH"],
]


@pytest.mark.parametrize("lines", TRANSACTIONS, ids=" ".join)
def test_transactions_one_by_one(pair, shared_guard, lines):
    for line in lines:
        pair.ask(line)
    must_share_again(shared_guard)


@pytest.mark.parametrize("lines", TRANSACTIONS, ids=" ".join)
def test_transactions_in_one_piece(pair, lines):
    if "RESET" in lines:
        lines = [line for line in lines if line != "RESET"]
    pair.pipeline("SET before 1", "GET before", *lines, "GET before")


def test_a_row_is_not_read_through_inside_a_transaction(guard, cache):
    with guard.wire() as wire:
        assert wire.ask("MULTI") == b"+OK\r\n"
        assert wire.ask("GET", "item:1") == b"+QUEUED\r\n"
        assert wire.ask("EXEC") == b"*1\r\n" + bulk(None)
        assert wire.ask("GET", "item:1") == bulk("payload 1")
        cache.wait_for_key("item:1")
        wire.send(command("MULTI") + command("GET", "item:1") + command("EXEC"))
        assert wire.read_replies(3) == b"+OK\r\n+QUEUED\r\n*1\r\n" + bulk("payload 1")


def test_what_was_sent_before_a_transaction_is_done_before_it(guard, database):
    with guard.wire() as wire:
        for n in range(200):
            wire.send(command("SET", "plain", n) + command("GET", f"item:{n % 150}") +
                      command("MULTI") + command("GET", "plain") + command("INCR", "plain")
                      + command("EXEC") + command("GET", "plain"))
            assert wire.read_reply() == b"+OK\r\n"
            row = n % 150
            assert wire.read_reply() == bulk(f"payload {row}" if 1 <= row <= 100 else None)
            assert wire.read_replies(4) == b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + bulk(n) \
                + b":%d\r\n" % (n + 1)
            assert wire.read_reply() == bulk(n + 1)


def test_a_transaction_waits_for_the_load_before_it(guard, database, cache):
    with guard.wire() as wire, guard.wire() as second:
        with database.locked():
            wire.send(command("GET", "item:1") + command("MULTI") + command("SET", "plain", "x")
                      + command("EXEC") + command("GET", "plain"))
            wait_until(lambda: guard.counter("nestguard_cache_misses_total"), PATIENCE, "the load")
            assert second.ask("GET", "plain") == bulk(None)
            assert is_quiet(wire)
        assert wire.read_replies(5) == bulk("payload 1") + b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n" \
            + bulk("x")


def test_a_transaction_that_has_waited_for_long_has_all_of_cache_timeout(
        start_guard, items, database, cache):
    guard = start_guard(items(), cache_timeout="2s", load_timeout="30s")
    with guard.wire() as wire:
        with contextlib.ExitStack() as stack:
            with database.locked():
                wire.send(command("GET", "item:1") + command("MULTI") + command("SET", "plain", "x")
                          + command("EXEC"))
                wait_until(lambda: not is_shared(guard), PATIENCE, "a connection of its own")
                select.select([], [], [], 2.2)  # longer than cache_timeout
                stack.enter_context(paused(cache.process.pid))
            assert wire.read_replies(1) == bulk("payload 1")
            select.select([wire.socket], [], [], 0.5)
            assert is_quiet(wire)
        assert wire.read_replies(3) == b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"


@pytest.mark.parametrize("line", [
    "SELECT 1", "AUTH a b", "HELLO 3", "SUBSCRIBE c", "MONITOR", "CLIENT TRACKING ON",
    "CLIENT REPLY OFF", "READONLY",
])
def test_what_changes_the_connection_is_refused_inside_a_transaction(guard, cache, line):
    with guard.wire() as wire:
        for words in (["MULTI"], ["SET", "plain", "x"]):
            wire.ask(*words)
        assert wire.ask(*line.split()).startswith(b"-NESTGUARD unsupported: inside MULTI")
        assert wire.ask("EXEC").startswith(b"-EXECABORT")
        assert wire.ask("GET", "plain") == bulk(None)
        assert wire.ask("GET", "item:101") == bulk(None)


def test_transactions_of_a_client_library(guard):
    client = guard.redis(decode_responses=True)
    with client.pipeline(transaction=True) as pipe:
        assert pipe.set("a", 1).incr("a").get("item:101").execute() == [True, 2, None]
    assert client.transaction(lambda pipe: pipe.multi() or pipe.set("a", 5), "a") == [True]
    assert client.get("a") == "5"


# ---- blocking ----

BLOCKING = [
    (["RPUSH l x y"], "BLPOP l 0"), (["RPUSH l x y"], "BRPOP l 0"),
    (["RPUSH l x"], "BLMOVE l m LEFT RIGHT 0"), (["RPUSH l x"], "BRPOPLPUSH l m 0"),
    (["RPUSH l x"], "BLMPOP 0 1 l LEFT"), (["ZADD z 1 a 2 b"], "BZPOPMIN z 0"),
    (["ZADD z 1 a 2 b"], "BZPOPMAX z 0"), (["ZADD z 1 a 2 b"], "BZMPOP 0 1 z MIN"),
    ([], "BLPOP l 0.01"), ([], "BLMOVE l m LEFT RIGHT 0.01"), ([], "BZMPOP 0.01 1 z MIN"),
    (["XADD s 1-1 f v"], "XREAD BLOCK 0 STREAMS s 0"), ([], "XREAD BLOCK 1 STREAMS s $"),
    (["XADD s 1-1 f v", "XGROUP CREATE s g 0"], "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"),
    ([], "WAIT 0 0"), ([], "WAIT 1 1"), ([], "BLPOP"), ([], "BLPOP l x"),
]


@pytest.mark.parametrize("before, line", BLOCKING)
def test_blocking_commands(pair, shared_guard, before, line):
    for preparation in before:
        pair.ask(preparation)
    pair.pipeline("SET k 1", line, "GET k", "GET item:101", line.replace(" 0", " 0.01")
                  if "XREAD" not in line else "PING")
    must_share_again(shared_guard)


def test_a_blocked_client_gets_what_comes_and_holds_up_nobody(start_guard, items, cache):
    guard = start_guard(items(), cache_timeout="200ms")
    with guard.wire() as blocked, guard.wire() as free:
        blocked.send(command("BLPOP", "list", 0) + command("GET", "item:1"))
        wait_until(lambda: cache.client().info("clients")["blocked_clients"] == 1, PATIENCE,
                   "the blocking")
        for _ in range(50):
            assert free.ask("GET", "item:101") == bulk(None)
            assert free.ask("PING") == b"+PONG\r\n"
        wait_until(lambda: int(cache.client().client_list()[0]["age"]) >= 0, PATIENCE, "the cache")
        select.select([], [], [], 0.5)  # longer than cache_timeout: waiting is no failure
        assert is_quiet(blocked)
        assert free.ask("RPUSH", "list", "x") == b":1\r\n"
        assert blocked.read_replies(2) == b"*2\r\n" + bulk("list") + bulk("x") + bulk("payload 1")


def test_what_a_blocked_client_asked_besides_may_be_large(guard):
    asked = command("BF.MEXISTS", "items", *[1] * 100_000)
    with guard.wire() as wire:
        wire.send(command("BLPOP", "list", 0.5) + asked * 3)
        assert wire.read_reply() == b"*-1\r\n"
        for _ in range(3):
            assert wire.read_reply() == b"*100000\r\n" + b":1\r\n" * 100_000


SAID_WHILE_BLOCKED = {
    "nothing": b"", "little": command("PING"), "its end": command("QUIT"),
    "more than its end": command("QUIT") + command("PING") * 10_000,
    "many commands": command("PING") * 2000, "large commands": command("ECHO", b"x" * 100_000) * 20,
    "more than the kernel takes": command("PING") * 1_000_000,
    "what has large replies": command("BF.MEXISTS", "items", *[1] * 100_000) * 3}


@pytest.mark.parametrize("said", SAID_WHILE_BLOCKED.values(), ids=SAID_WHILE_BLOCKED)
def test_a_blocked_client_that_leaves_takes_no_element(guard, cache, said):
    with guard.wire() as wire:
        wire.send(command("BLPOP", "list", 0) + said)
        wait_until(lambda: cache.client().info("clients")["blocked_clients"] == 1, PATIENCE,
                   "the blocking")
    wait_until(lambda: cache.client().info("clients")["blocked_clients"] == 0, PATIENCE, "its end")
    assert cache.client().rpush("list", "x") == 1
    assert cache.client().lrange("list", 0, -1) == [b"x"]
    must_share_again(guard)


NEEDS_STATE = {
    "MULTI": command("MULTI") + command("INCR", "count") + command("EXEC"),
    "WATCH": command("WATCH", "a") + command("MULTI") + command("INCR", "count") + command("EXEC"),
    "SELECT": command("SELECT", 1) + command("INCR", "count")}


@pytest.mark.parametrize("said", NEEDS_STATE.values(), ids=NEEDS_STATE)
def test_what_stands_behind_a_refused_state_is_not_done_without_it(start_guard, items, cache, said):
    """In whichever database."""
    guard = start_guard(items(), workers=1, own_connections=1)
    with guard.wire() as blocked, guard.wire() as wire:
        blocked.send(command("BLPOP", "list", 0))
        wait_until(lambda: cache.client().info("clients")["blocked_clients"] == 1, PATIENCE,
                   "the blocking")
        wire.send(said)
        assert wire.read_reply() == b"-NESTGUARD busy: own_connections are used up\r\n"
        wire.socket.settimeout(PATIENCE)
        assert wire.socket.recv(1000) == b""
    assert not cache.client().exists("count")
    assert not cache.client(db=1).exists("count")


# ---- publish and subscribe ----

SUBSCRIPTIONS = [
    (["SUBSCRIBE a b c", 3], ["PING", 1], ["UNSUBSCRIBE a c", 2], ["UNSUBSCRIBE", 1], ["GET x", 1]),
    (["PSUBSCRIBE a* b*", 2], ["SUBSCRIBE a", 1], ["PING hello", 1], ["PUNSUBSCRIBE a* b*", 2],
     ["UNSUBSCRIBE", 1], ["GET item:101", 1]),
    (["SSUBSCRIBE a b", 2], ["SUNSUBSCRIBE a", 1], ["SUNSUBSCRIBE", 1], ["GET x", 1]),
    (["UNSUBSCRIBE", 1], ["PUNSUBSCRIBE", 1], ["SUNSUBSCRIBE", 1], ["UNSUBSCRIBE x y", 2]),
    (["SUBSCRIBE", 1], ["PSUBSCRIBE", 1], ["SUBSCRIBE a a", 2], ["UNSUBSCRIBE a a", 2]),
    (["SUBSCRIBE a", 1], ["RESET", 1], ["GET item:101", 1], ["SUBSCRIBE b", 1]),
]


@pytest.mark.parametrize("steps", SUBSCRIPTIONS)
def test_subscribing(pair, steps):
    for line, replies in steps:
        pair.ask(line, replies)


def test_all_subscriptions_end_at_once(guard):
    names = [f"c{n}" for n in range(50)]
    with guard.wire() as wire:
        wire.send(command("SUBSCRIBE", *names) + command("PSUBSCRIBE", "x*", "y*")
                  + command("UNSUBSCRIBE") + command("PUNSUBSCRIBE") + command("GET", "item:1"))
        replies = [wire.read_reply() for _ in range(104)]
        assert replies[-1].endswith(b":0\r\n")
        assert {reply.split(b"\r\n")[4].decode() for reply in replies[52:102]} == set(names)
        assert wire.read_reply() == bulk("payload 1")


def test_a_subscriber_of_resp2_may_ask_for_nothing_else(guard, other):
    with Pair(guard, other) as pair:
        pair.ask("SUBSCRIBE a")
        for line in ("GET x", "GET item:101", "GET item:1", "SET x 1", "MULTI", "HELLO 3",
                     "CLIENT ID", "SELECT 0", "MGET item:1", "BLPOP l 0", "MONITOR"):
            pair.ask(line)
        pair.pipeline("MULTI", "GET x", "SELECT 1", "EXEC", "UNWATCH", "BLPOP l 0", "PING")
        pair.ask("UNSUBSCRIBE")
        assert pair.guard.ask("GET", "item:1") == bulk("payload 1")


def test_messages_come_between_replies(pair, cache, other):
    pair.ask("SUBSCRIBE news")
    pair.ask("PSUBSCRIBE n*")
    for n in range(50):
        for server in (cache, other):
            assert server.client().publish("news", n) == 2
        pair.read(2)
    pair.ask("PING")
    pair.ask("UNSUBSCRIBE")
    pair.ask("PUNSUBSCRIBE")


def test_a_subscriber_of_resp3_is_guarded(guard, cache):
    with guard.wire() as wire:
        wire.ask("HELLO", 3)
        wire.ask("SUBSCRIBE", "news")
        assert wire.ask("GET", "item:101") == b"_\r\n"
        assert wire.ask("GET", "item:1") == bulk("payload 1")
        assert cache.client().publish("news", "x") == 1
        assert wire.read_reply() == b">3\r\n" + bulk("message") + bulk("news") + bulk("x")
        wire.send(command("MULTI") + command("PUBLISH", "news", "y") + command("EXEC"))
        push = b">3\r\n" + bulk("message") + bulk("news") + bulk("y")
        # Redis before 7.2 puts it into the array, as no element of that.
        assert wire.read_replies(4) in (b"+OK\r\n+QUEUED\r\n*1\r\n" + push + b":1\r\n",
                                        b"+OK\r\n+QUEUED\r\n*1\r\n:1\r\n" + push)
        assert wire.ask("GET", "item:2") == bulk("payload 2")


def test_a_message_stays_behind_the_reply_that_came_before_it(guard, database, cache):
    """A load is under way; what comes after its command in the cache may not overtake it."""
    with guard.wire() as wire:
        wire.ask("HELLO", 3)
        wire.ask("SUBSCRIBE", "news")
        with database.locked():
            wire.send(command("GET", "item:5") + command("SET", "plain", "x"))
            wait_until(lambda: cache.client().get("plain") == b"x", PATIENCE, "the SET")
            cache.client().publish("news", "late")
            assert is_quiet(wire)
        assert wire.read_reply() == bulk("payload 5")
        assert wire.read_reply() == b"+OK\r\n"
        assert wire.read_reply().startswith(b">3")


def test_a_client_library_subscribes(guard):
    client = guard.redis(decode_responses=True)
    listener = client.pubsub()
    listener.subscribe("a", "b")
    listener.psubscribe("c*")
    wait_until(lambda: client.publish("a", "one") == 1, PATIENCE, "the subscription")
    wait_until(lambda: client.publish("cc", "two") == 1, PATIENCE, "the subscription")
    heard = []
    wait_until(lambda: heard.append(listener.get_message(ignore_subscribe_messages=True))
               or [m["data"] for m in heard if m][-2:] == ["one", "two"], PATIENCE, "messages")
    listener.close()


def test_a_subscriber_that_leaves_is_gone(guard, cache):
    with guard.wire() as wire:
        wire.ask("SUBSCRIBE", "news")
        assert cache.client().pubsub_numsub("news") == [(b"news", 1)]
    wait_until(lambda: cache.client().pubsub_numsub("news") == [(b"news", 0)], PATIENCE, "its end")


# ---- databases, users, names ----

def test_another_database_has_other_keys(guard, cache, other):
    cache.client(db=1).set("item:101", "in 1")
    other.client(db=1).set("item:101", "in 1")
    with Pair(guard, other) as pair:
        pair.ask("SET here 0")
        pair.pipeline("SELECT 1", "GET item:101", "GET here", "SET item:300 x", "GET item:300",
                      "MGET item:101 item:102", "EXISTS item:101", "SELECT 99", "SELECT x",
                      "SELECT", "MULTI", "GET item:101", "EXEC", "SELECT 0", "GET item:101",
                      "GET here")
        assert pair.guard.ask("GET", "item:1") == bulk("payload 1")
        assert pair.guard.ask("GET", "item:300") == bulk(None), "a write elsewhere is no hint"
    must_share_again(guard)


def test_users_of_the_cache(start_guard, items, cache):
    admin = cache.client()
    admin.acl_setuser("reader", enabled=True, passwords="+secret", keys=["item:*"],
                      commands=["+get", "+mget", "+ping", "+auth"])
    try:
        guard = start_guard(items())
        with guard.wire() as wire:
            assert wire.ask("AUTH", "reader", "wrong").startswith(b"-WRONGPASS")
            assert wire.ask("SET", "plain", "x") == b"+OK\r\n"
            assert wire.ask("AUTH", "reader", "secret") == b"+OK\r\n"
            assert wire.ask("SET", "plain", "y").startswith(b"-NOPERM")
            assert wire.ask("GET", "plain").startswith(b"-NOPERM")
            assert wire.ask("GET", "item:1") == bulk("payload 1")
            assert wire.ask("GET", "item:101") == bulk(None)
            assert wire.ask("AUTH", "default", "whatever") == b"+OK\r\n"
            assert wire.ask("SET", "plain", "y") == b"+OK\r\n"
            hello = wire.ask("HELLO", "3", "AUTH", "reader", "secret")
            assert hello.startswith(b"%")
            assert wire.ask("GET", "plain").startswith(b"-NOPERM")
            assert wire.ask("GET", "item:101") == b"_\r\n"
            assert wire.ask("HELLO", "3").startswith(b"%")
            assert wire.ask("GET", "plain").startswith(b"-NOPERM"), "the user stays"
            assert wire.ask("HELLO", "2", "AUTH", "default", "whatever").startswith(b"*")
            assert wire.ask("GET", "plain") == bulk("y")
            assert wire.ask("GET", "item:101") == bulk(None)
            assert wire.ask("AUTH", "reader", "secret") == b"+OK\r\n"
            assert wire.ask("RESET").startswith(b"-NOPERM") or True
        must_share_again(guard)
    finally:
        admin.acl_deluser("reader")


def test_users_of_the_cache_are_clients_who_logged_in(start_guard, items, cache):
    admin = cache.client()
    admin.acl_setuser("someone", enabled=True, passwords="+secret", keys=["*"], categories=["+@all"])
    try:
        guard = start_guard(items(), password="sesame")
        with guard.wire() as wire:
            assert wire.ask("GET", "item:1").startswith(b"-NOAUTH")
            assert wire.ask("AUTH", "someone", "sesame").startswith(b"-WRONGPASS")
            assert wire.ask("GET", "item:1").startswith(b"-NOAUTH")
            assert wire.ask("AUTH", "someone", "secret") == b"+OK\r\n"
            assert wire.ask("GET", "item:1") == bulk("payload 1")
            assert wire.ask("RESET") == b"+RESET\r\n"
            assert wire.ask("GET", "item:1").startswith(b"-NOAUTH")
    finally:
        admin.acl_deluser("someone")


def test_what_a_user_may_read_is_not_the_databases_to_tell(start_guard, items, cache):
    cache.client().acl_setuser("reader", enabled=True, passwords="+secret", keys=["*"],
                               categories=["+@all"])
    guard = start_guard(items())
    with guard.wire() as wire:
        assert wire.ask("AUTH", "reader", "secret") == b"+OK\r\n"
        cache.stop()
        wire.send(command("GET", "item:1"))
        rest = wire.read_until_closed()
        assert rest == b"" or rest.startswith(b"-NESTGUARD cache down")


def test_names_and_ids(guard, other):
    with Pair(guard, other) as pair:
        pair.pipeline("CLIENT GETNAME", "CLIENT SETNAME me", "CLIENT GETNAME", "CLIENT", "CLIENT ID x",
                      "CLIENT SETNAME", "CLIENT NOSUCH", "CLIENT REPLY", "CLIENT REPLY WHAT",
                      "CLIENT TRACKING", "CLIENT GETREDIR", "CLIENT CACHING YES", "CLIENT NO-EVICT ON",
                      "CLIENT UNPAUSE", "CLIENT UNBLOCK 999999")
        number = pair.guard.ask("CLIENT", "ID")
        assert number.startswith(b":") and pair.guard.ask("CLIENT", "ID") == number
        info = pair.guard.ask("CLIENT", "INFO")
        assert b"id=%d " % int(number[1:]) in info and b" name=me " in info
        pair.ask("SUBSCRIBE a")
        pair.ask("UNSUBSCRIBE a")
        pair.ask("RESET")
        pair.ask("CLIENT GETNAME")


def test_no_name_may_be_of_any_length(guard):
    name = "x" * 1025
    with guard.wire() as wire:
        for words in (["CLIENT", "SETNAME", name], ["CLIENT", "SETINFO", "LIB-NAME", name],
                      ["CLIENT", "SETINFO", "LIB-VER", name], ["HELLO", 3, "SETNAME", name],
                      ["AUTH", name, "secret"], ["HELLO", 3, "AUTH", name, "secret"],
                      ["WATCH", "k"], ["CLIENT", "SETNAME", name]):
            reply = wire.ask(*words)
            assert b"1024 bytes" in reply or words[0] == "WATCH", words
        assert wire.ask("CLIENT", "SETNAME", name[1:]) == b"+OK\r\n"
        assert wire.ask("CLIENT", "GETNAME") == bulk(name[1:])


def test_libraries_say_who_they_are_to_any_redis(guard):
    with guard.wire() as wire:
        assert wire.ask("CLIENT", "SETINFO", "LIB-NAME", "lib(1.0)") == b"+OK\r\n"
        assert wire.ask("CLIENT", "SETINFO", "lib-ver", "") == b"+OK\r\n"
        assert wire.ask("CLIENT", "SETINFO", "LIB-VER", "1 0") == (
            b"-ERR LIB-VER cannot contain spaces, newlines or special characters.\r\n")
        assert wire.ask("CLIENT", "SETINFO", "LIB-AGE", "1").startswith(b"-ERR ")


def test_an_own_connection_has_the_name_of_its_client(guard, cache):
    with guard.wire() as wire:
        wire.ask("CLIENT", "SETNAME", "somebody")
        wire.ask("MULTI")
        wait_until(lambda: "somebody" in [row["name"] for row in cache.client().client_list()],
                   PATIENCE, "the name")


# ---- replies that are not wanted ----

def test_replies_switched_off(pair):
    pair.ask("SET a 1")
    pair.send("CLIENT REPLY OFF", "INCR a", "GET item:101", "GET nothing", "NOSUCH", "MULTI",
              "INCR a", "EXEC", "CLIENT REPLY SKIP", "CLIENT REPLY ON")
    pair.read(1)
    assert pair.ask("GET a") == bulk(3)
    pair.send("CLIENT REPLY SKIP", "INCR a", "INCR a", "CLIENT REPLY SKIP", "GET item:101", "GET a")
    pair.read(2)
    assert pair.guard.ask("GET", "item:1") == bulk("payload 1")


@pytest.mark.parametrize("mute", ["OFF", "SKIP"])
def test_whose_replies_are_off_is_told_that_it_listens(pair, mute):
    pair.send(f"CLIENT REPLY {mute}", "SUBSCRIBE a")
    pair.read(1)
    pair.send("SUBSCRIBE b c", "PSUBSCRIBE d*", "UNSUBSCRIBE b", "SUBSCRIBE")
    pair.read(4 if mute == "OFF" else 5)


# ---- what comes unasked ----

def test_messages_come_while_a_wait_waits(guard, cache):
    with guard.wire() as wire:
        assert wire.ask("HELLO", 3).startswith(b"%")
        assert wire.ask("SUBSCRIBE", "news").startswith(b">3")
        wire.send(command("WAIT", 9, 0))
        wait_until(lambda: cache.calls("wait") > 1, PATIENCE, "that the cache is asked")
        cache.client().publish("news", "meanwhile")
        assert wire.read_reply() == b">3\r\n" + bulk("message") + bulk("news") + bulk("meanwhile")


def test_monitor_shows_every_command(guard, cache):
    with guard.wire() as wire:
        assert wire.ask("MONITOR") == b"+OK\r\n"
        wire.send(command("MONITOR"))  # which says nothing, and what follows is served
        cache.client().set("plain", "x")
        wait_until(lambda: b'"SET" "plain" "x"' in wire.read_reply(), PATIENCE, "the SET")
        assert wire.ask("RESET").startswith(b"+")
        wait_until(lambda: wire.ask("GET", "item:1") == bulk("payload 1"), PATIENCE, "the end")


def test_tracking(guard, cache):
    client = cache.client()
    with guard.wire() as wire:
        wire.ask("HELLO", 3)
        assert wire.ask("CLIENT", "TRACKING", "ON") == b"+OK\r\n"
        assert wire.ask("GET", "plain") == b"_\r\n"
        client.set("plain", "x")
        assert wire.read_reply() == b">2\r\n" + bulk("invalidate") + b"*1\r\n" + bulk("plain")
        for words in (["GET", "item:1"], ["GET", "item:101"], ["MGET", "plain", "item:1"],
                      ["EXISTS", "item:101"], ["STRLEN", "item:1"]):
            assert wire.ask(*words).startswith(b"-NESTGUARD tracking"), words
            assert wire.ask("MULTI") == b"+OK\r\n"
            assert wire.ask(*words).startswith(b"-NESTGUARD tracking"), words
            assert wire.ask("GET", "plain") == b"+QUEUED\r\n"
            assert wire.ask("EXEC").startswith(b"-EXECABORT"), words
        assert wire.ask("CLIENT", "TRACKING", "OFF") == b"+OK\r\n"
        assert wire.ask("GET", "item:1") == bulk("payload 1")
        assert wire.ask("CLIENT", "TRACKING", "ON", "REDIRECT", "5").startswith(
            b"-ERR The client ID you want redirect to does not exist")
    must_share_again(guard)


def test_an_invalidation_stays_behind_the_value_that_it_ends(guard, database, cache):
    with guard.wire() as wire:
        wire.ask("HELLO", 3)
        wire.ask("CLIENT", "TRACKING", "ON", "BCAST")
        for n in range(300):
            wire.send(command("GET", "plain") + command("SET", "plain", n))
            got = [wire.read_reply() for _ in range(3)]
            assert got[0] == (bulk(n - 1) if n else b"_\r\n")
            assert got[2].startswith(b">2") or got[1].startswith(b">2")


# ---- limits and losses ----

def test_own_connections_are_limited_and_reused(start_guard, items):
    guard = start_guard(items(), workers=1, own_connections=2)
    wires = [guard.wire() for _ in range(3)]
    for wire in wires[:2]:
        assert wire.ask("WATCH", "k") == b"+OK\r\n"
    assert wires[2].ask("SUBSCRIBE", "news").startswith(b"-NESTGUARD busy: own_connections")
    assert wires[2].ask("GET", "item:1") == bulk("payload 1")
    assert wires[0].ask("UNWATCH") == b"+OK\r\n"
    assert wires[2].ask("MULTI") == b"+OK\r\n", "one that is only kept just in case makes room"
    assert wires[0].ask("GET", "item:101") == bulk(None)
    assert guard.status()["own_connections"] == 2
    assert guard.total("nestguard_own_connections") == 2
    assert guard.total("nestguard_shared_connections") >= 2
    for wire in wires:
        wire.close()


def test_one_host_leaves_own_connections_to_others(start_guard, items):
    """Who waits keeps its own for as long as it likes."""
    guard = start_guard(items(), workers=1, own_connections=5)
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(guard.wire("127.0.0.2")) for _ in range(5)]
        for number, wire in enumerate(waiting):
            wire.send(command("BLPOP", f"queue:{number}", 0))
            wait_until(lambda n=number: guard.status()["own_connections"] == min(n + 1, 4), PATIENCE, number)
        assert waiting[4].read_reply().startswith(b"-NESTGUARD busy: own_connections are used up, but for hosts")
        assert waiting[4].ask("GET", "item:1") == bulk("payload 1")
        with guard.wire() as other:
            assert other.ask("MULTI") == b"+OK\r\n"
            assert other.ask("LPUSH", "queue:0", "job") == b"+QUEUED\r\n"
            assert other.ask("EXEC") == b"*1\r\n:1\r\n"
        assert waiting[0].read_reply() == b"*2\r\n$7\r\nqueue:0\r\n$3\r\njob\r\n"
        assert guard.total("nestguard_own_refused_host_total") == 1
        assert guard.total("nestguard_own_refused_total") == 0


def test_a_lost_connection_ends_the_client_whose_state_it_held(guard, cache):
    with guard.wire() as watching, guard.wire() as blocked, guard.wire() as free:
        assert watching.ask("WATCH", "k") == b"+OK\r\n"
        blocked.send(command("BLPOP", "list", 0))
        wait_until(lambda: cache.client().info("clients")["blocked_clients"] == 1, PATIENCE,
                   "the blocking")
        cache.client().execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert watching.read_until_closed() == b""
        assert blocked.read_reply().startswith(b"-NESTGUARD cache down")
        assert blocked.ask("GET", "item:1") == bulk("payload 1"), "it had no state to lose"
        wait_until(lambda: free.ask("PING") == b"+PONG\r\n", PATIENCE, "the shared connection")


@pytest.mark.parametrize("before", [["WATCH k"], ["WATCH k", "UNWATCH"], ["MULTI"]], ids=" ".join)
def test_reset_never_fails(guard, cache, before):
    with guard.wire() as wire:
        for line in before:
            assert wire.ask(*line.split()) == b"+OK\r\n"
        commands = guard.total("nestguard_commands_total")
        cache.pause()
        wire.send(command("RESET"))
        wait_until(lambda: guard.total("nestguard_commands_total") > commands, PATIENCE, "RESET")
        cache.kill()
        assert wire.read_reply() == b"+RESET\r\n"
        assert wire.ask("GET", "item:1") == bulk("payload 1")
        assert is_shared(guard)


def test_a_script_that_words_a_replica_s_refusal_ends_no_client(guard):
    with guard.wire() as wire:
        assert wire.ask("WATCH", "plain") == b"+OK\r\n"
        assert wire.ask("EVAL", "return redis.error_reply('READONLY custom')", "0") == b"-READONLY custom\r\n"
        assert wire.ask("PING") == b"+PONG\r\n"


def test_without_a_cache_transactions_fail(guard, cache):
    cache.stop()
    with guard.wire() as wire:
        wire.send(command("MULTI") + command("SET", "a", 1) + command("EXEC"))
        assert wire.read_replies(3) == b"-NESTGUARD cache down\r\n" * 3
        assert wire.ask("GET", "item:101") == bulk(None)
        wire.send(command("MULTI"))
        assert wire.read_until_closed() == b"-NESTGUARD cache down\r\n", "its EXEC would be none"
    with guard.wire() as wire:
        wire.send(command("BLPOP", "a", 1) + command("GET", "item:101"))
        assert wire.read_replies(2) == b"-NESTGUARD cache down\r\n" + bulk(None)


def test_a_slow_subscriber_makes_the_cache_wait_and_not_the_guard_grow(guard, cache):
    with guard.wire() as wire:
        wire.ask("SUBSCRIBE", "news")
        text = b"x" * 100_000
        client = cache.client()
        for _ in range(200):
            assert client.publish("news", text) == 1
        for _ in range(200):
            assert wire.read_reply().endswith(text + b"\r\n")


def test_replication_is_relayed(guard, cache):
    cache.client().set("plain", "replicated")
    with guard.wire() as wire:
        assert wire.ask("REPLCONF", "rdb-only", "1") == b"+OK\r\n"
        wire.send(b"SYNC\r\n")
        head = b""
        while not head.startswith(b"$"):
            head = wire._line().lstrip(b"\n")
        body = wire.read_bytes(int(head[1:]))
        assert body.startswith(b"REDIS") and b"replicated" in body


def test_a_replica_follows_through_the_guard(guard, cache):
    """From its greeting on, with what it acknowledges meanwhile."""
    client = cache.client()
    client.set("plain", "before")
    with redis_beside() as replica:
        replica.client().replicaof("127.0.0.1", guard.port)
        wait_until(lambda: replica.client().get("plain") == b"before", PATIENCE, "the copy")
        client.set("plain", "behind")
        wait_until(lambda: replica.client().get("plain") == b"behind", PATIENCE, "the change")
        wait_until(lambda: client.wait(1, 100) == 1, PATIENCE, "an acknowledgement")
        replica.client().replicaof("NO", "ONE")


def test_a_replica_looks_nothing_up(guard):
    with guard.wire() as wire:
        wire.send(b"SYNC\r\n")
        while not wire._line().lstrip(b"\n").startswith(b"$"):
            pass
        wire.send(b"\n" + command("REPLCONF", "ACK", 0) + command("GET", "item:1"))
        assert b"only REPLCONF" in wire.read_until_closed()


@pytest.fixture
def weak(cache):
    """Users of the cache, whose "default" needs no password, and what they may do."""
    cache.client().acl_setuser("weak", enabled=True, passwords="+w", categories=["-@all"],
                               commands=["+ping", "+get", "+acl|whoami", "+monitor", "+subscribe"],
                               channels=["*"])
    yield "weak"
    cache.client().acl_deluser("weak")


@pytest.mark.parametrize("words", [
    ["HELLO", "2", "AUTH", "default", "x", "AUTH", "weak", "wrong"],
    ["HELLO", "2", "AUTH", "default", "x", "AUTH", "weak", "w"],
    ["HELLO", "2", "AUTH", "weak", "wrong", "AUTH", "default", "x"],
    ["SYNC"], ["PSYNC", "?", "-1"], ["PSYNC", "x"], ["MONITOR"], ["SUBSCRIBE", "news"]])
def test_no_user_becomes_default_without_the_guards_password(start_guard, items, weak, words):
    guard = start_guard(items(), password="secret")
    for end in [command("ACL", "WHOAMI"), command("GET", "secret")]:
        with guard.wire() as wire:
            assert wire.ask("AUTH", weak, "w") == b"+OK\r\n"
            wire.send(command(*words) + command("AUTH", "default", "x") +
                      command("HELLO", "2", "AUTH", "default", "x") + end + command("QUIT"))
            said = wire.read_until_closed()
            assert b"default\r\n" not in said and b"treasure" not in said, said
            assert said.startswith((b"-", b"*14", b"%", b"+OK\r\n", b"*3\r\n$9\r\nsubscribe")), said


@pytest.mark.parametrize("words", [["SYNC", "x"], ["PSYNC", "x"], ["PSYNC", "?", "x"]])
def test_nothing_is_looked_up_behind_a_refused_sync(guard, cache, words):
    with guard.wire() as wire:
        assert wire.ask(*words).startswith(b"-")
        wire.send(command("GET", "item:1"))
        assert wire.read_until_closed().startswith(b"-NESTGUARD unsupported")


# ---- words with a zero byte, behind which Redis does not look ----

def test_a_name_that_only_the_cache_would_find_is_a_protocol_error(guard):
    for name in ["AUTH\0", "RESET\0ab", "GET\0", "x\0y"]:
        with guard.wire() as wire:
            wire.send(command(name, "default", "x") + command("PING"))
            assert wire.read_until_closed().startswith(b"-ERR Protocol error: zero byte"), name


def test_an_option_is_one_whatever_is_behind_its_zero_byte(guard, cache):
    with guard.wire() as wire, guard.wire() as other:
        wire.send(command("XREAD", "block\0x", 0, "STREAMS", "stream", "$"))
        wait_until(lambda: guard.status()["own_connections"] == 1, PATIENCE, "an own connection")
        assert other.ask("SET", "item:9001", "v", "GET\0") == b"$-1\r\n"
        assert other.ask("GET", "item:9001") == bulk("v")
        cache.client().rpush("list", 1)
        assert other.ask("SORT", "list", "store\0", "item:9002") == b":1\r\n"
        assert other.ask("EXISTS", "item:9002") == b":1\r\n"
        assert other.ask("SCRIPT", "debug\0x", "no").startswith((b"+", b"-"))
        assert guard.status()["own_connections"] == 2
        cache.client().xadd("stream", {"a": 1})
        assert wire.read_reply().startswith(b"*1")


# ---- what counts as a command between two ----

READS = command("GET", "plain")
CACHING = command("CLIENT", "CACHING", "YES")


def is_tracked(wire, other, said):
    """Whether the key that they read is the connection's to hear of."""
    wire.send(command("HELLO", 3) + command("CLIENT", "TRACKING", "ON", "OPTIN") + said + command("ECHO", "read"))
    while wire.read_reply() != bulk("read"):
        pass
    other.ask("SET", "plain", "x")
    wire.send(command("CLIENT", "TRACKING", "OFF") + command("ECHO", "end"))
    replies = []
    while not replies or replies[-1] != bulk("end"):
        replies.append(wire.read_reply())
    return any(b"invalidate" in reply for reply in replies)


@pytest.mark.parametrize("said", [
    CACHING + READS, CACHING + b"*0\r\n" + READS, CACHING + b"*-1\r\n" + READS, CACHING + b"\r\n" + READS,
    CACHING + command("CLIENT", "ID") + READS, CACHING + b"\r\n" + command("CLIENT", "ID") + READS,
    b"\r\n" + CACHING + READS, CACHING + b"\r\n" + CACHING + READS,
    CACHING + command("MULTI") + b"\r\n" + READS + command("EXEC")])
def test_an_empty_command_is_the_next_one_to_client_caching(shared_guard, other, said):
    with shared_guard.wire() as wire, shared_guard.wire() as writer:
        got = is_tracked(wire, writer, said)
    with Wire(other.port, PATIENCE) as wire, Wire(other.port, PATIENCE) as writer:
        assert got == is_tracked(wire, writer, said)


@pytest.mark.parametrize("lines", [
    ["SCRIPT DEBUG NO", "PING"], ["PING", "SCRIPT DEBUG NO", "PING"], ["PING", "SCRIPT DEBUG YES", "EVAL return(1) 0"],
    ["SET a 1", "SCRIPT debug no", "GET a"], 3 * ["SCRIPT DEBUG NO"] + ["PING"],
    ["PING", "SCRIPT DEBUG", "SCRIPT DEBUG NO x", "SCRIPT DEBUG x", "PING"], ["GET item:101", "SCRIPT DEBUG NO"],
    ["SCRIPT DEBUG x", "PING"]])
def test_a_debugger_is_begun_and_ended_outside_a_pipeline(pair, lines):
    pair.pipeline(*lines)
    pair.ask("SCRIPT DEBUG NO")
    pair.ask("EVAL return(1) 0")


# ---- what a user of the cache may not ----

@pytest.mark.parametrize("db", [0, 1])
def test_who_may_not_select_is_told_so_of_any_database(start_guard, items, cache, db):
    cache.client().execute_command("ACL", "SETUSER", "homely", "on", ">w", "~*", "+@all", "-select")
    with Pair(start_guard(items()), cache) as pair:
        pair.ask("AUTH homely w")
        assert pair.ask(f"SELECT {db}").startswith(b"-NOPERM")
        pair.pipeline("SELECT 0", "GET plain", "SELECT", "SELECT x")
    cache.client().acl_deluser("homely")

def test_a_debugger_answers_no_question_of_the_guards(start_guard, items, cache):
    rights = ["+@all", "-@dangerous", "-@admin"]
    cache.client().execute_command("ACL", "SETUSER", "app", "on", ">w", "~app:*", *rights)
    with start_guard(items()).wire() as wire:
        assert wire.ask("AUTH", "app", "w") == b"+OK\r\n"
        assert wire.ask("SCRIPT", "DEBUG", "YES").startswith(b"-NESTGUARD unsupported")
        assert wire.ask("CLIENT", "LIST").startswith(b"-NOPERM")
    cache.client().acl_deluser("app")


def test_a_discard_that_is_refused_ends_the_connection(start_guard, items, cache):
    cache.client().execute_command("ACL", "SETUSER", "app", "on", ">w", "~*", "+@all", "-discard")
    with start_guard(items()).wire() as wire:
        assert wire.ask("AUTH", "app", "w") == b"+OK\r\n"
        wire.send(command("MULTI") + command("DISCARD") + command("EXISTS", "item:1", "item:2"))
        assert wire.read_until_closed().startswith(b"+OK\r\n-NOPERM")
    cache.client().acl_deluser("app")


def test_scripts_are_run(guard):
    client = guard.redis()
    script = client.register_script("return redis.call('GET', KEYS[1])")
    client.set("plain", "x")
    assert script(keys=["plain"]) == b"x"
    assert client.script_exists(script.sha) == [True]


def test_clients_with_and_without_state_side_by_side(guard):
    problems = []

    def work(seed):
        client = guard.redis()
        try:
            for n in range(60):
                key = f"w{seed}"
                if n % 3 == 0:
                    with client.pipeline() as pipe:
                        assert pipe.set(key, n).get(key).execute() == [True, str(n).encode()]
                elif n % 3 == 1:
                    client.rpush(key + "l", n)
                    assert client.blpop(key + "l", 1)[1] == str(n).encode()
                else:
                    assert client.get(f"item:{n}") == f"payload {n}".encode()
                    assert client.get(f"item:{n + 100}") is None
        except (AssertionError, redis.RedisError) as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    assert not problems


@pytest.mark.parametrize("version, nil", [(2, bulk(None)), (3, b"_\r\n")])
def test_a_vanished_row_is_nil_in_the_protocol_of_the_moment(guard, database, version, nil):
    database.execute("DELETE FROM items WHERE id BETWEEN 5 AND 10")
    with guard.wire() as wire:
        for number, before in enumerate(([], ["MULTI", "EXEC"], ["MULTI", "EXEC", "RESET"],
                                         ["HELLO 3", "RESET"], ["HELLO 3", "MULTI", "EXEC"],
                                         ["MULTI", "EXEC", "HELLO 3"]), 5):
            for line in [*before, f"HELLO {version}"]:
                wire.ask(*line.split())
            assert wire.ask("GET", f"item:{number}") == nil, before
            assert wire.ask("GET", f"item:{number}") == nil, before
            assert wire.ask("MGET", f"item:{number}") == b"*1\r\n" + nil, before


def test_a_reply_is_in_the_protocol_that_its_command_was_sent_in(guard, database):
    database.execute("DELETE FROM items WHERE id = 5")
    with guard.wire() as wire:
        wire.ask("HELLO", "3")
        with database.locked():
            wire.send(command("GET", "item:5") + command("HELLO", "2") + command("GET", "item:5"))
            hellos = guard.redis().info("commandstats")["cmdstat_hello"]["calls"]
            wait_until(lambda: guard.redis().info("commandstats")["cmdstat_hello"]["calls"]
                       >= hellos and guard.counter("nestguard_cache_misses_total"), PATIENCE,
                       "HELLO to be answered")
        assert wire.read_reply() == b"_\r\n"
        assert wire.read_reply().startswith(b"*")
        assert wire.read_reply() == bulk(None)
