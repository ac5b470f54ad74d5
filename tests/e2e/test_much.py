"""Hosts that take large replies have a connection to the cache for that, beside those of the others.
Hosts that send more than it takes wait until it does."""
import contextlib
import random

import pytest

from clusters import Cluster
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

MEGABYTE = 1 << 20
MUCH = "127.0.0.2"


def take_much(guard, source=MUCH, key="large"):
    """Asks, and leaves: so it comes as fast as the guard reads it, however slow this program is."""
    for _ in range(3):
        with guard.wire(source) as wire:
            wire.send(command("GET", key) * 4)


def connections(cache, *wires, slot="any"):
    """Over which each of these asks the cache for what is in that slot."""
    probes = [f"STRLEN {{{slot}}}{number}" for number in range(len(wires))]
    found = {}
    with cache.client().monitor() as monitor:
        for wire, probe in zip(wires, probes):
            assert wire.ask(*probe.split()) == b":0\r\n"
        while len(found) < len(wires):
            seen = monitor.next_command()
            if seen["command"] in probes:
                found[seen["command"]] = f"{seen['client_address']}:{seen['client_port']}"
    return [found[probe] for probe in probes]


def are_apart(guard, cache, much, other, source=MUCH):
    take_much(guard, source)
    return len(set(connections(cache, much, other))) == 2


def begin(start_guard, items, cache):
    cache.client().set("large", b"x" * 4 * MEGABYTE)
    return start_guard(items(), workers=1, cache_connections=1)


def test_others_do_not_share_its_connection(start_guard, items, cache):
    guard = begin(start_guard, items, cache)
    with guard.wire() as other, guard.wire(source=MUCH) as much:
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")
        with guard.wire(source=MUCH) as newcomer, guard.wire() as another:
            apart, shared, *found = connections(cache, much, other, newcomer, another)
            assert apart != shared and found == [apart, shared]
            assert another.ask("GET", "item:101") == bulk(None)
            assert another.ask("GET", "item:1") == bulk("payload 1")


def test_who_only_asks_and_leaves_is_remembered(start_guard, items, cache):
    guard = begin(start_guard, items, cache)

    def newcomer_is_apart(other):
        take_much(guard)
        wait_until(lambda: guard.status()["clients"] == 1, PATIENCE, "that only the other is left")
        with guard.wire(MUCH) as newcomer:
            return len(set(connections(cache, newcomer, other))) == 2

    with guard.wire() as other:
        wait_until(lambda: newcomer_is_apart(other), PATIENCE, "a connection apart")


def test_who_is_alone_keeps_its_connection(start_guard, items, cache):
    guard = begin(start_guard, items, cache)
    with guard.wire() as other, guard.wire() as much:
        for _ in range(20):
            assert much.ask("GET", "item:1") == bulk("payload 1")
            assert not are_apart(guard, cache, much, other, "127.0.0.1")


def test_nothing_is_overtaken_on_the_way(start_guard, items, cache):
    """Writes and reads of a client that is led to the connection apart, and back where it is lost."""
    guard = begin(start_guard, items, cache)
    chance = random.Random(1)
    written = 0
    with guard.wire() as other, guard.wire(source=MUCH) as much:
        assert other.ask("PING") == b"+PONG\r\n"
        for turn in range(60):
            sent, wanted = [], []
            for _ in range(chance.randrange(1, 80)):
                if chance.random() < 0.02:
                    sent.append(command("GET", "large"))
                    wanted.append(bulk(b"x" * 4 * MEGABYTE))
                else:
                    written += 1
                    sent += [command("SET", "last", written), command("GET", "last"),
                             command("GET", "item:1"), command("GET", "item:101")]
                    wanted += [b"+OK\r\n", bulk(written), bulk("payload 1"), bulk(None)]
            much.send(b"".join(sent))
            for reply in wanted:
                assert much.read_reply() == reply, turn
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")


def test_one_that_is_lost_is_made_anew(start_guard, items, cache):
    guard = begin(start_guard, items, cache)
    with guard.wire() as other, guard.wire(source=MUCH) as much:
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")
        cache.client().client_kill(connections(cache, much)[0])
        wait_until(lambda: much.ask("ECHO", "back") == bulk("back"), PATIENCE, "a connection")
        assert other.ask("GET", "item:1") == bulk("payload 1")
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")


@pytest.fixture
def cluster():
    """Whose nodes have patience with one that is busy with megabytes."""
    started = Cluster(replicas=0, settings=("--cluster-node-timeout", "60000")).start()
    yield started
    started.remove()


def test_nobody_is_led_where_a_node_gives_no_more_connections(start_guard, items, cluster):
    keys = [next(key for key in map(str, range(1000)) if cluster.node_of(key) is node)
            for node in cluster.primaries]
    free, full = (node.client() for node in cluster.primaries[:2])
    guard = start_guard(items(), cache=cluster.url, workers=1, cache_connections=1)
    with guard.wire() as other, contextlib.ExitStack() as stack:
        much = [stack.enter_context(guard.wire(source=MUCH)) for _ in range(6)]
        for wire in (other, *much):
            assert [wire.ask("SET", key, "x") for key in keys] == [b"+OK\r\n"] * 3
        free.set(keys[0], b"x" * 4 * MEGABYTE)
        before = full.config_get("maxclients")["maxclients"]

        def is_refused(*wires):
            if guard.status()["clients"] <= 1 + len(wires):  # who asked before has all of it
                take_much(guard, key=keys[0])
            for wire in wires:
                assert [wire.ask("STRLEN", key) for key in keys[1:]] == [b":1\r\n"] * 2
            return full.info("stats")["rejected_connections"] >= 3

        full.config_set("maxclients", 1)  # those that there are stay
        try:
            wait_until(lambda: is_refused(*much), PATIENCE, "that the guard tries to connect")
        finally:
            full.config_set("maxclients", before)

        def are_led():
            take_much(guard, key=keys[0])
            return len(set(connections(cluster.primaries[0], much[0], other, slot=keys[0]))) == 2

        wait_until(are_led, PATIENCE, "a connection apart to each node")


def test_when_a_cache_that_stood_still_goes_on_so_do_all_whose_input_waits(start_guard, items, cache):
    """They are more than are told of it at once, with more than the connection holds."""
    guard = start_guard(items(), workers=1, cache_connections=1, cache_timeout="30s")
    with contextlib.ExitStack() as wires:
        crowd = [wires.enter_context(guard.wire()) for _ in range(300)]
        cache.pause()
        try:
            for number, wire in enumerate(crowd):
                wire.send(command("SET", f"other:{number}", "v" * 200_000))
        finally:
            cache.resume()
        for wire in crowd:
            assert wire.read_reply() == b"+OK\r\n"
