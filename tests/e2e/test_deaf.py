"""A connection by which a client listens, and that carries nothing any more while it stays open: as
behind a firewall that has forgotten it. In a cluster it hears again, or is told to forget everything;
of one server its own connection is all that it has, and it is told that by an end of it."""
import contextlib
import socket

import pytest

from clusters import Cluster
from following import follow  # a fixture
from gate import Fronted, Gate
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

CHANNEL = "news"
EVERYTHING = b">2\r\n" + bulk("invalidate") + b"_\r\n"


@pytest.fixture
def node():
    cluster = Cluster(primaries=1, replicas=0).start()
    yield cluster.nodes[0]
    cluster.remove()


@pytest.fixture
def gate(node):
    with Fronted(node, "cluster-announce-port") as gate:
        yield gate


@pytest.fixture
def guard(follow, items, node, gate):
    started = follow(items(), cache=f"redis-cluster://{node.address}", cache_timeout="1s")
    yield started
    assert started.stop() == 0


def listen(guard, version, word):
    wire = guard.wire()
    if version == 3:
        wire.ask("HELLO", 3)
    wire.send(command(word, CHANNEL))
    assert word.lower().encode() in wire.read_reply()
    return wire


def message(version, kind, text):
    sign = b">" if version == 3 else b"*"
    return sign + b"3\r\n" + bulk(f"{kind.lower()}message") + bulk(CHANNEL) + bulk(text)


@contextlib.contextmanager
def kept_by(gate, having):
    """From the first that has this on the connection carries nothing more; others do, afterwards."""
    gate.hold_answers(having)
    yield
    gate.wait_held()
    gate.hold_no_more()


def hears(wire, node, kind, text):
    """What it is told so long, it hears a moment later."""
    node.ask(f"{kind}PUBLISH", CHANNEL, text)
    wire.socket.settimeout(0.1)
    with contextlib.suppress(socket.timeout):
        return wire.read_reply()
    return None


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["", "S"])
def test_who_has_gone_deaf_hears_again(guard, gate, node, kind, version):
    with listen(guard, version, f"{kind}SUBSCRIBE") as wire:
        with kept_by(gate, b"unheard"):
            node.ask(f"{kind}PUBLISH", CHANNEL, "unheard")
        heard = wait_until(lambda: hears(wire, node, kind, "again"), PATIENCE, guard.log)
        assert heard == message(version, kind, "again")


def pings(node):
    return node.client().info("commandstats").get("cmdstat_ping", {"calls": 0})["calls"]


def wait_pings(node, whose="pings"):
    before = pings(node)
    wait_until(lambda: pings(node) >= before + 2, PATIENCE, whose)


# ---- who tracks keys ----

@contextlib.contextmanager
def tracker(guard, *options):
    """It has read "plain"."""
    with guard.wire() as wire:
        wire.ask("HELLO", 3)
        assert wire.ask("CLIENT", "TRACKING", "ON", *options) == b"+OK\r\n"
        assert wire.ask("GET", "plain") == b"_\r\n"
        yield wire


@pytest.mark.parametrize("options", [[], ["BCAST"]], ids=["by key", "all"])
def test_who_tracks_and_has_gone_deaf_is_told_to_forget_everything(guard, gate, node, options):
    with tracker(guard, *options) as wire:
        with kept_by(gate, b"invalidate"):
            node.client().set("plain", "unheard")
        assert wire.read_reply() == EVERYTHING
        wire.send(command("GET", "plain"))
        while (reply := wire.read_reply()) == EVERYTHING:  # with BCAST once more when it is there again
            pass
        assert reply == bulk("unheard")


# ---- of one server ----

@pytest.fixture
def guarded_gate(cache):
    with Gate(cache.port) as gate:
        yield gate


@pytest.fixture
def guard_of_one(follow, items, guarded_gate):
    started = follow(items(), cache=f"redis://127.0.0.1:{guarded_gate.port}", cache_timeout="1s")
    yield started
    assert started.stop() == 0


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("word", ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"])
def test_who_has_gone_deaf_is_not_left_waiting(guard_of_one, guarded_gate, cache, word, version):
    with listen(guard_of_one, version, word) as wire:
        publish = "SPUBLISH" if word == "SSUBSCRIBE" else "PUBLISH"
        with kept_by(guarded_gate, b"unheard"):
            assert cache.client().execute_command(publish, CHANNEL, "unheard") == 1
        assert wire.read_until_closed() == b""


@pytest.mark.parametrize("options", [[], ["BCAST"]], ids=["by key", "all"])
def test_who_tracks_and_has_gone_deaf_does_not_go_on(guard_of_one, guarded_gate, cache, options):
    with tracker(guard_of_one, *options) as wire:
        with kept_by(guarded_gate, b"invalidate"):
            cache.client().set("plain", "unheard")
        assert wire.read_until_closed() == b""


# ---- what asking must not do ----

@pytest.fixture(params=["of a cluster", "of one server"])
def guarded(request):
    """A guard, and the server behind it."""
    names = ("guard", "node") if request.param == "of a cluster" else ("guard_of_one", "cache")
    return [request.getfixturevalue(name) for name in names]


@pytest.mark.parametrize("version", [2, 3])
def test_whoever_has_nothing_to_hear_is_told_nothing(guarded, version):
    guard, server = guarded
    with listen(guard, version, "SUBSCRIBE") as wire:
        wait_pings(server)
        assert server.client().publish(CHANNEL, "first") == 1
        assert wire.read_reply() == message(version, "", "first")
        assert len([each for each in server.client().client_list() if each["sub"] == "1"]) == 1


def test_no_ping_goes_into_a_transaction(guarded):
    guard, server = guarded
    with tracker(guard) as wire, listen(guard, 3, "SUBSCRIBE"):
        assert wire.ask("MULTI") == b"+OK\r\n"
        assert wire.ask("GET", "plain") == b"+QUEUED\r\n"  # in a cluster it has a node from here on
        wait_pings(server, "the listener's pings")
        assert wire.ask("EXEC") == b"*1\r\n_\r\n"


def test_no_ping_comes_between_caching_and_what_it_is_said_of(guard_of_one, cache):
    with tracker(guard_of_one, "OPTIN") as wire, listen(guard_of_one, 3, "SUBSCRIBE"):
        assert wire.ask("CLIENT", "CACHING", "YES") == b"+OK\r\n"
        assert wire.ask("CLIENT", "GETNAME") == b"_\r\n"  # it stands over these
        wait_pings(cache, "the listener's pings")
        assert wire.ask("GET", "plain") == b"_\r\n"
        cache.client().set("plain", "changed")
        assert wire.read_reply() == b">2\r\n" + bulk("invalidate") + b"*1\r\n" + bulk("plain")


@pytest.mark.parametrize("version", [2, 3])
def test_a_message_stays_before_the_end_of_listening_whatever_was_asked_between(
        follow, items, guarded_gate, cache, version):
    url = f"redis://127.0.0.1:{guarded_gate.port}"
    guard = follow(items(), cache=url, cache_timeout="20s")
    pong = b"+PONG\r\n" if version == 3 else b"*2\r\n" + bulk("pong") + bulk("")
    with listen(guard, version, "SUBSCRIBE") as wire:
        guarded_gate.hold_answers(b"heard")
        assert cache.client().publish(CHANNEL, "heard") == 1
        guarded_gate.wait_held(pong)
        wire.send(command("UNSUBSCRIBE", CHANNEL))
        guarded_gate.wait_held(b":0\r\n")
        guarded_gate.release()
        assert wire.read_reply() == message(version, "", "heard")
        assert bulk("unsubscribe") in wire.read_reply()
