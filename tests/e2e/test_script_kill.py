"""SCRIPT KILL and FUNCTION KILL: they reach the server that a script keeps busy, whichever it is of
a cluster, and however much waits for the script."""
import contextlib

import pytest
import redis

from clusters import slot_of
from following import follow  # a fixture
from servers import PATIENCE
from waiting import wait_until
from wire import command

ENDLESS = "while true do end"
WRITES = "redis.call('SET', KEYS[1], 'x') while true do end"
FUNCTION = "#!lua name=endless\nredis.register_function('endless', function() while true do end end)"
NONE_RUNS = b"-NOTBUSY No scripts in execution right now.\r\n"


def is_busy(server):
    try:
        server.client().ping()
        return False
    except redis.ResponseError as error:
        return "busy" in str(error).lower()


@contextlib.contextmanager
def running(guard, server, *words):
    """Over a connection of the guard's that others share."""
    with guard.wire() as wire:
        wire.send(command(*words))
        wait_until(lambda: is_busy(server), PATIENCE, "the script")
        try:
            yield wire
        finally:
            for kill in ("SCRIPT", "FUNCTION"):
                with contextlib.suppress(redis.RedisError):
                    server.client().execute_command(kill, "KILL")


def key_of(cluster, node):
    owners = cluster.owners()
    return next(f"key{n}" for n in range(1000) if owners[slot_of(f"key{n}")] is node)


@pytest.fixture
def guard(follow, items, cluster):
    for node in cluster.primaries:
        node.client().config_set("lua-time-limit", 50)
        node.client().flushall()
        node.client().execute_command("FUNCTION", "FLUSH")
    return follow(items(), cache=cluster.url, workers=1, cache_connections=1, cache_timeout="3s")


@pytest.fixture(params=[2, 3])
def wire(guard, request):
    with guard.wire() as opened:
        opened.ask("HELLO", request.param)
        yield opened


def test_one_that_no_node_has_is_refused_as_one_server_does(wire):
    for _ in range(2):
        assert wire.ask("SCRIPT", "KILL") == NONE_RUNS
        assert wire.ask("FUNCTION", "KILL") == NONE_RUNS
    assert b"wrong number of arguments" in wire.ask("SCRIPT", "KILL", "now")


def test_a_script_is_ended_on_whichever_node_it_runs(guard, cluster, wire):
    for node in cluster.primaries:
        key = key_of(cluster, node)
        with running(guard, node, "EVAL", ENDLESS, 1, key) as caller, guard.wire() as behind:
            behind.send(command("GET", key))
            assert wire.ask("SCRIPT", "KILL") == b"+OK\r\n"
            assert b"killed by user" in caller.read_reply()
            assert behind.read_reply() == b"$-1\r\n"
            assert wire.ask("SET", key, "x") == b"+OK\r\n"
        assert wire.ask("SCRIPT", "KILL") == NONE_RUNS
        assert wire.ask("DEL", key) == b":1\r\n"


def test_a_function_is_ended_on_whichever_node_it_runs(guard, cluster, wire):
    assert wire.ask("FUNCTION", "LOAD", FUNCTION).startswith(b"$7")
    for node in cluster.primaries:
        with running(guard, node, "FCALL", "endless", 1, key_of(cluster, node)) as caller:
            assert wire.ask("SCRIPT", "KILL").startswith(b"-BUSY")
            assert wire.ask("FUNCTION", "KILL") == b"+OK\r\n"
            assert b"killed by user" in caller.read_reply()


def test_a_script_that_has_written_is_refused_to_be_ended(guard, cluster, wire):
    node = cluster.primaries[-1]
    with running(guard, node, "EVAL", WRITES, 1, key_of(cluster, node)):
        assert wire.ask("SCRIPT", "KILL").startswith(b"-UNKILLABLE")
        node.kill()
        node.start()
    cluster.settle()


def test_what_was_sent_with_it_is_answered_in_order(guard, cluster, wire):
    node, other = cluster.primaries[:2]
    key = key_of(cluster, node)
    assert wire.ask("SET", key, "0") == b"+OK\r\n"  # its connection is up: else it would hear of BUSY first
    sent = [("SET", key_of(cluster, other), "1"), ("SCRIPT", "KILL"), ("SET", key, "2"), ("GET", key)]
    for _ in range(5):
        with running(guard, node, "EVAL", ENDLESS, 1, key):
            wire.send(b"".join(command(*words) for words in sent))
            said = wire.read_replies(4)
        # Redis says OK when the script is about to end: what comes at once may still find it busy.
        if not said.startswith(b"+OK\r\n+OK\r\n-BUSY"):
            break
    assert said == b"+OK\r\n+OK\r\n+OK\r\n$1\r\n2\r\n"


def test_of_a_node_that_does_not_answer_nobody_says_that_none_runs(guard, cluster, wire):
    hung, busy = cluster.primaries[:2]
    key = key_of(cluster, busy)
    with running(guard, busy, "EVAL", ENDLESS, 1, key):
        hung.pause()
        try:
            assert wire.ask("SCRIPT", "KILL") == b"+OK\r\n"
            assert wire.ask("SCRIPT", "KILL").startswith((b"-NESTGUARD", b"-CLUSTERDOWN"))
        finally:
            hung.resume()
    cluster.settle()


def test_inside_multi_it_is_refused(wire):
    assert wire.ask("MULTI") == b"+OK\r\n"
    assert b"inside MULTI" in wire.ask("SCRIPT", "KILL")
    assert wire.ask("EXEC").startswith(b"-EXECABORT")


def test_one_server_ends_a_function(start_guard, items, cache):
    """Until others that share the connection have been given up as well as while they wait."""
    cache.client().config_set("lua-time-limit", 50)
    guard = start_guard(items(), workers=1, cache_connections=1, cache_timeout="3s")
    client = guard.redis()
    client.execute_command("FUNCTION", "LOAD", "REPLACE", FUNCTION)
    with running(guard, cache, "FCALL", "endless", 0) as caller, guard.wire() as behind:
        behind.send(command("GET", "plain"))
        with pytest.raises(redis.ResponseError, match="(?i)busy"):
            client.execute_command("SCRIPT", "KILL")
        assert client.execute_command("FUNCTION", "KILL") in (b"OK", True)
        assert b"killed by user" in caller.read_reply()
        assert behind.read_reply() == b"$-1\r\n"
    cache.client().execute_command("FUNCTION", "FLUSH")
