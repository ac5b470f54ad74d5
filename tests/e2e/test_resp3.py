"""RESP3: a client that says HELLO 3 is guarded like any other, and sees what Redis would send it."""
import random
import re
import socket
import threading

import pytest

import servers
from servers import PATIENCE
from waiting import wait_until
from wire import Wire, bulk, command

NULL = b"_\r\n"
# Each type of RESP3 that Redis' own DEBUG PROTOCOL gives; a script cannot.
TYPES = ["string", "integer", "double", "null", "array", "set", "map", "attrib", "push", "verbatim",
         "true", "false", "bignum"]


def hello(wire, *words):
    reply = wire.ask("HELLO", *words)
    assert not reply.startswith(b"-"), reply
    return reply


def without_id(reply):
    return re.sub(rb"(\$2\r\nid\r\n):\d+\r\n", rb"\1", reply)


@pytest.fixture
def direct(cache):
    with Wire(cache.port, PATIENCE) as wire:
        yield wire


@pytest.mark.parametrize("version", [2, 3])
def test_hello_says_what_redis_says(start_guard, items, direct, version):
    with start_guard(items()).wire() as wire:
        reply = hello(wire, version)
        assert without_id(reply) == without_id(direct.ask("HELLO", version))
        assert b"$2\r\nid\r\n" + wire.ask("CLIENT", "ID") in reply


@pytest.mark.parametrize("words", [
    ["4"], ["1"], ["x"], ["03"], [""], ["-1"], ["-"], ["9" * 20], ["+3"],
    ["3", "AUTH"], ["3", "AUTH", "default"], ["3", "SETNAME"], ["3", "WHAT"], ["3", "SETNAME", "a b"],
])
def test_what_redis_refuses_of_hello_is_refused(start_guard, items, direct, words):
    with start_guard(items()).wire() as wire:
        assert wire.ask("HELLO", *words) == direct.ask("HELLO", *words)
        assert wire.ask("GET", "item:101") == bulk(None), "the protocol is as it was"


def test_absent_keys_are_answered_in_the_protocol_of_the_client(start_guard, items, direct):
    guard = start_guard(items())
    with guard.wire() as wire:
        for version in (3, 2, 3):
            hello(wire, version)
            hello(direct, version)
            for words in (["GET", "item:101"], ["HGETALL", "item:101"], ["SMEMBERS", "item:101"],
                          ["ZSCORE", "item:101", "m"], ["TTL", "item:101"],
                          ["MGET", "item:101", "x", "item:102"], ["EXISTS", "item:101"],
                          ["CLIENT", "GETNAME"]):
                assert wire.ask(*words) == direct.ask(*words), words
    assert guard.counter("nestguard_rejected_total") == 3 * 8


def test_rows_are_loaded_for_a_client_of_resp3(start_guard, items, database, cache):
    guard = start_guard(items())
    with guard.wire() as wire:
        hello(wire, 3)
        assert wire.ask("GET", "item:7") == bulk("payload 7")
        cache.wait_for_key("item:7")
        assert wire.ask("GET", "item:7") == bulk("payload 7")
        assert wire.ask("MGET", "item:7", "item:101", "item:8", "x") == \
            b"*4\r\n" + bulk("payload 7") + NULL + bulk("payload 8") + NULL
        assert wire.ask("EXISTS", "item:9", "item:101") == b":1\r\n"
    assert database.count_loads() == 3


def test_a_row_that_went_unnoticed_is_a_null(start_guard, items, database):
    guard = start_guard(items())
    database.execute("DELETE FROM items WHERE id IN (5, 6)")
    with guard.wire() as wire:
        hello(wire, 3)
        assert wire.ask("GET", "item:5") == NULL
        assert wire.ask("MGET", "item:5", "item:6") == b"*2\r\n" + NULL + NULL


def test_every_type_passes_untouched(start_guard, items, direct):
    with start_guard(items()).wire() as wire:
        hello(wire, 3)
        hello(direct, 3)
        for kind in TYPES:
            assert wire.ask("DEBUG", "PROTOCOL", kind) == direct.ask("DEBUG", "PROTOCOL", kind), kind
        for words in (["HSET", "h", "a", "1"], ["SADD", "s", "a"], ["ZADD", "z", "1.5", "a"]):
            assert wire.ask(*words) == b":1\r\n"
        for words in (["HGETALL", "h"], ["SMEMBERS", "s"], ["ZSCORE", "z", "a"],
                      ["ZRANGE", "z", "0", "-1", "WITHSCORES"], ["CONFIG", "GET", "maxmemory"],
                      ["COMMAND", "INFO", "GET"], ["XINFO", "STREAM", "nothing"]):
            assert wire.ask(*words) == direct.ask(*words), words


def test_clients_of_both_protocols_share_connections(start_guard, items, cache):
    guard = start_guard(items(), workers=1, cache_connections=1)
    wires = [guard.wire() for _ in range(20)]
    for n, wire in enumerate(wires):
        hello(wire, 2 + n % 2)
        assert wire.ask("GET", f"item:{n + 1}") == bulk(f"payload {n + 1}")
    mine = [row for row in cache.client().client_list() if row["cmd"] in ("get", "hello")]
    assert len(mine) == 2, mine
    for wire in wires:
        wire.close()


def test_what_was_sent_before_a_switch_is_done_before_what_follows(start_guard, items):
    guard = start_guard(items())
    chance = random.Random(3)
    with guard.wire() as wire:
        sent, wanted, version = [], [], 2
        for n in range(300):
            sent.append(command("SET", "plain", n) + command("GET", "item:101"))
            wanted.append(b"+OK\r\n" + (NULL if version == 3 else bulk(None)))
            if chance.random() < 0.5:
                version = chance.choice([2, 3])
                sent.append(command("HELLO", version))
                wanted.append(version)
            sent.append(command("GET", "plain"))
            wanted.append(bulk(n))
        sender = threading.Thread(target=wire.send, args=(b"".join(sent),))
        sender.start()
        for want in wanted:
            if isinstance(want, int):
                assert wire.read_reply()[:1] == (b"%" if want == 3 else b"*")
            else:
                assert wire.read_bytes(len(want)) == want
        sender.join(PATIENCE)


def test_hello_logs_in(start_guard, items):
    guard = start_guard(items(), password="sesame")
    with guard.wire() as wire:
        assert wire.ask("HELLO", "3").startswith(b"-NOAUTH HELLO")
        assert wire.ask("HELLO", "3", "AUTH", "default", "wrong").startswith(b"-WRONGPASS")
        assert wire.ask("GET", "item:1").startswith(b"-NOAUTH")
        hello(wire, 3, "AUTH", "default", "sesame", "SETNAME", "me")
        assert wire.ask("CLIENT", "GETNAME") == bulk("me")
        assert wire.ask("GET", "item:101") == NULL


@pytest.mark.parametrize("words", [["default", "sesame", "SETNAME", "not a name"],
                                   ["someone", "wrong", "SETNAME", "name"],
                                   ["default", "wrong", "SETNAME", "name"]])
def test_a_hello_that_is_refused_has_no_effect(start_guard, items, cache, words):
    cache.client().acl_setuser("someone", enabled=True, passwords="+secret", categories=["+@all"])
    guard = start_guard(items(), password="sesame")
    with guard.wire() as wire:
        assert wire.ask("HELLO", "3", "AUTH", *words).startswith(b"-")
        assert wire.ask("GET", "item:1").startswith(b"-NOAUTH")
        assert wire.ask("AUTH", "sesame") == b"+OK\r\n"
        assert wire.ask("CLIENT", "GETNAME") == b"$-1\r\n"
        hello(wire, 3, "AUTH", "someone", "secret", "SETNAME", "name")
        assert wire.ask("CLIENT", "GETNAME") == bulk("name")
        hello(wire, 3, "SETNAME", "")
        assert wire.ask("CLIENT", "GETNAME") == NULL
    cache.client().acl_deluser("someone")


class OldRedis(servers.Redis):
    """One that does not know HELLO, as before Redis 6."""

    def command(self):
        return [*super().command(), "--rename-command", "HELLO", ""]


def test_a_cache_too_old_for_resp3_is_told_as_redis_tells_it(start_guard, items):
    old = OldRedis().start()
    guard = start_guard(items(), cache=old.url)
    try:
        with guard.wire() as wire:
            for _ in range(3):
                assert wire.ask("HELLO", "3") == b"-NOPROTO unsupported protocol version\r\n"
                assert wire.ask("GET", "item:101") == bulk(None)
                assert wire.ask("GET", "item:1") == bulk("payload 1")
    finally:
        guard.stop()
        old.remove()


def test_resp3_goes_on_when_the_cache_is_back(start_guard, items, cache):
    guard = start_guard(items())
    with guard.wire() as wire:
        hello(wire, 3)
        cache.stop()
        wait_until(lambda: wire.ask("PING").startswith(b"-NESTGUARD"), PATIENCE, "the loss")
        assert wire.ask("GET", "item:101") == NULL
        assert wire.ask("GET", "item:3") == bulk("payload 3")
        cache.start()
        wait_until(lambda: wire.ask("PING") == b"+PONG\r\n", PATIENCE, "the cache")
        assert wire.ask("HGETALL", "x") == b"%0\r\n"


def test_hello_may_be_typed(start_guard, items):
    with start_guard(items()).wire() as wire:
        wire.send(b'SET plain "a b"\r\nHELLO 3\r\nECHO "a b"\r\nGET item:101\r\n')
        assert wire.read_reply() == b"+OK\r\n"
        assert wire.read_reply().startswith(b"%")
        assert wire.read_bytes(9 + len(NULL)) == bulk("a b") + NULL
        wire.socket.shutdown(socket.SHUT_WR)
