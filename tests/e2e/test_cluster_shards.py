"""Subscriptions in a cluster through the guard: a client hears what it has subscribed to wherever that
is, and nobody is deaf without knowing."""
import contextlib
import threading

import pytest

from clusters import Node, slot_of
from following import follow  # a fixture
from heirs import cluster, guard  # fixtures
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

CHANNEL = "news"
BOUND = (b"-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
         b"allowed in this context\r\n")


def head_of(version):
    return b">3\r\n" if version == 3 else b"*3\r\n"


def confirmed(version, word, name, count):
    nil = b"_\r\n" if version == 3 else b"$-1\r\n"
    return head_of(version) + bulk(word) + (nil if name is None else bulk(name)) + b":%d\r\n" % count


def message(version, name, text, word="smessage"):
    return head_of(version) + bulk(word) + bulk(name) + bulk(text)


def connect(guard, version):
    wire = guard.wire()
    if version == 3:
        wire.ask("HELLO", 3)
    return wire


def subscribed(guard, version, *names, word="SSUBSCRIBE"):
    wire = connect(guard, version)
    wire.send(command(word, *names))
    for number, name in enumerate(names, 1):
        assert wire.read_reply() == confirmed(version, word.lower(), name, number)
    return wire


def publish(guard, name, text):
    with guard.wire() as wire:
        return wire.ask("SPUBLISH", name, text)


def reach(guard, name, text):
    """Who has moved is heard of a moment later."""
    wait_until(lambda: publish(guard, name, text) == b":1\r\n", PATIENCE, "a subscriber")


def one_on_each(cluster):
    names, owners = {}, cluster.owners()
    for number in range(1000):
        names.setdefault(owners[slot_of(f"news{number}")], f"news{number}")
    return [names[node] for node in cluster.primaries]


def move_away(cluster, name):
    giver = cluster.node_of(name)
    cluster.move(slot_of(name), next(node for node in cluster.primaries if node is not giver))


@pytest.mark.parametrize("version", [2, 3])
class TestFollowed:
    def test_when_the_slot_moves(self, guard, cluster, version):
        with subscribed(guard, version, CHANNEL) as wire:
            for text in ["first", "second", "third"]:
                reach(guard, CHANNEL, text)
                assert wire.read_reply() == message(version, CHANNEL, text)
                move_away(cluster, CHANNEL)
            reach(guard, CHANNEL, "last")
            assert wire.read_reply() == message(version, CHANNEL, "last")
            assert wire.ask("SUNSUBSCRIBE", CHANNEL) == confirmed(version, "sunsubscribe", CHANNEL, 0)

    def test_when_the_primary_hands_over(self, guard, cluster, version):
        with subscribed(guard, version, CHANNEL) as wire:
            cluster.hand_over(cluster.follower_of(cluster.node_of(CHANNEL)))
            wait_until(lambda: cluster.node_of(CHANNEL) in cluster.followers, PATIENCE, "the heir")
            reach(guard, CHANNEL, "again")
            assert wire.read_reply() == message(version, CHANNEL, "again")

    def test_when_the_primary_dies(self, guard, cluster, version):
        here, other, _ = one_on_each(cluster)
        with subscribed(guard, version, here, other) as wire:
            cluster.node_of(here).kill()
            reach(guard, here, "again")
            assert wire.read_reply() == message(version, here, "again")
            reach(guard, other, "still")
            assert wire.read_reply() == message(version, other, "still")

    def test_when_the_primary_hangs(self, guard, cluster, version):
        with subscribed(guard, version, CHANNEL) as wire:
            paused = cluster.node_of(CHANNEL)
            paused.pause()
            reach(guard, CHANNEL, "again")
            assert wire.read_reply() == message(version, CHANNEL, "again")
            paused.resume()
            cluster.settle()
            reach(guard, CHANNEL, "once")
            assert wire.read_reply() == message(version, CHANNEL, "once")
            reach(guard, CHANNEL, "last")
            assert wire.read_reply() == message(version, CHANNEL, "last")


@pytest.mark.parametrize("version", [2, 3])
class TestSeveralNodes:
    def test_each_is_heard(self, guard, cluster, version):
        a, b, c = one_on_each(cluster)
        with subscribed(guard, version, a, b, c) as wire:
            assert wire.ask("SSUBSCRIBE", a) == confirmed(version, "ssubscribe", a, 3)
            for name in [a, b, c]:
                assert publish(guard, name, "hello") == b":1\r\n"
                assert wire.read_reply() == message(version, name, "hello")

    def test_one_ends_or_all_do(self, guard, cluster, version):
        a, b, c = one_on_each(cluster)
        with subscribed(guard, version, a, b, c) as wire:
            assert wire.ask("SUNSUBSCRIBE", b) == confirmed(version, "sunsubscribe", b, 2)
            assert publish(guard, b, "nobody") == b":0\r\n"
            wire.send(command("SUNSUBSCRIBE") + command("SUNSUBSCRIBE") + command("GET", "item:1"))
            assert {wire.read_reply(), wire.read_reply()} in [
                {confirmed(version, "sunsubscribe", x, 1), confirmed(version, "sunsubscribe", y, 0)}
                for x, y in [(a, c), (c, a)]]
            assert wire.read_reply() == confirmed(version, "sunsubscribe", None, 0)
            assert wire.read_reply().startswith(b"$")
            assert publish(guard, a, "nobody") == b":0\r\n"

    def test_they_count_apart_from_other_channels(self, guard, cluster, version):
        a, b, _ = one_on_each(cluster)
        with connect(guard, version) as wire:
            wire.send(command("SUBSCRIBE", a) + command("SSUBSCRIBE", a, b) + command("PSUBSCRIBE", "n*")
                      + command("UNSUBSCRIBE") + command("SUNSUBSCRIBE", a))
            for word, name, count in [("subscribe", a, 1), ("ssubscribe", a, 1), ("ssubscribe", b, 2),
                                      ("psubscribe", "n*", 2), ("unsubscribe", a, 1),
                                      ("sunsubscribe", a, 1)]:
                assert wire.read_reply() == confirmed(version, word, name, count)

    def test_what_is_published_before_is_not_heard(self, guard, cluster, version):
        with connect(guard, version) as wire:
            wire.send(command("SPUBLISH", CHANNEL, "early") + command("SSUBSCRIBE", CHANNEL))
            assert wire.read_reply() == b":0\r\n"
            assert wire.read_reply() == confirmed(version, "ssubscribe", CHANNEL, 1)
            assert publish(guard, CHANNEL, "late") == b":1\r\n"
            assert wire.read_reply() == message(version, CHANNEL, "late")


def test_nobody_has_more_connections_than_there_may_be(follow, items, cluster):
    guard = follow(items(), cache=cluster.url, workers=1, own_connections=2)
    a, b, c = one_on_each(cluster)
    with guard.wire() as wire:
        assert wire.ask("SSUBSCRIBE", a, b, c).startswith(b"-NESTGUARD busy")
        for name in [a, b, c]:
            wait_until(lambda name=name: publish(guard, name, "nobody") == b":0\r\n", PATIENCE, "an end")
        wire.send(command("SSUBSCRIBE", a, b))
        assert wire.read_replies(2) == (confirmed(2, "ssubscribe", a, 1)
                                        + confirmed(2, "ssubscribe", b, 2))


def test_a_subscriber_of_resp2_may_ask_for_nothing_else(guard, cluster):
    with subscribed(guard, 2, CHANNEL) as wire:
        assert wire.ask("GET", "item:1") == BOUND
        assert wire.ask("PING") == b"*2\r\n" + bulk("pong") + bulk("")
        assert wire.ask("PING", "x") == b"*2\r\n" + bulk("pong") + bulk("x")
        assert wire.ask("RESET") == b"+RESET\r\n"
        assert publish(guard, CHANNEL, "nobody") == b":0\r\n"
        assert wire.ask("GET", "item:404") == bulk(None)


def test_who_switches_protocols_goes_on_hearing(guard, cluster):
    with subscribed(guard, 3, CHANNEL) as wire:
        wire.ask("HELLO", 2)
        assert publish(guard, CHANNEL, "hello") == b":1\r\n"
        assert wire.read_reply() == message(2, CHANNEL, "hello")


SOME_SLOTS = range(slot_of(CHANNEL) // 400 * 400, slot_of(CHANNEL) // 400 * 400 + 400)


@pytest.fixture
def added(cluster):
    """A primary more, which has the channel's slot, and some more, for whoever has no key."""
    node = Node(*cluster.nodes[0].settings, "--cluster-allow-replica-migration", "no").start()
    cluster.nodes.append(node)
    cluster.introduce(node)
    cluster.wait_known()
    for slot in SOME_SLOTS:
        cluster.move(slot, node)
    yield node
    node.remove()


@pytest.mark.parametrize("kind", ["", "S"])
def test_whose_node_is_forgotten_hears_on(guard, cluster, added, kind):
    """It has lost its slots and lives on: nothing tells who is connected to it."""
    def hearers(*nodes):
        return sum(node.ask("PUBSUB", f"{'SHARD' if kind else ''}NUMSUB", CHANNEL)[1] for node in nodes)
    with contextlib.ExitStack() as stack:
        wires = []

        def is_there():
            wires.append(stack.enter_context(subscribed(guard, 2, CHANNEL, word=f"{kind}SUBSCRIBE")))
            return hearers(added)
        wait_until(is_there, PATIENCE, "a subscriber at the node")
        for slot in SOME_SLOTS:
            cluster.move(slot, cluster.primaries[0])
        cluster.nodes.remove(added)
        name = added.id()
        for node in cluster.nodes:
            node.ask("CLUSTER", "FORGET", name)
        wait_until(lambda: hearers(*cluster.nodes) == len(wires), PATIENCE, "everybody elsewhere")
        assert not hearers(added)
        with guard.wire() as wire:
            wait_until(lambda: wire.ask(f"{kind}PUBLISH", CHANNEL, "x")[:1] == b":", PATIENCE, "the slot")
        for wire in wires:
            assert wire.read_reply() == message(2, CHANNEL, "x", f"{kind.lower()}message")


# ---- what it must not wait for, and what must not overtake it ----

def test_a_message_does_not_wait_for_a_connection_that_is_yet_to_come_up(guard, cluster):
    with subscribed(guard, 3, CHANNEL, word="SUBSCRIBE") as wire:
        heard, = (node for node in cluster.primaries
                  if any(each["sub"] != "0" for each in node.client().client_list()))
        other = next(node for node in cluster.primaries if node is not heard)
        queue = next(f"q{n}" for n in range(1000) if cluster.node_of(f"q{n}") is other)
        before = guard.total("nestguard_commands_total")
        other.pause()
        try:
            wire.send(command("BLPOP", queue, 0))
            wait_until(lambda: guard.total("nestguard_commands_total") > before, PATIENCE, "BLPOP")
            heard.ask("PUBLISH", CHANNEL, "meanwhile")
            assert wire.read_reply() == message(3, CHANNEL, "meanwhile", "message")
        finally:
            other.resume()


def kill_subscribers(cluster):
    for node in cluster.primaries:
        node.client().execute_command("CLIENT", "KILL", "TYPE", "PUBSUB")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["", "s"])
def test_however_many_names_there_are_each_is_heard_until_its_end(guard, cluster, version, kind):
    """They are asked for in pieces, with others' commands between them, and nothing shows of that."""
    begin, end, names = f"{kind}subscribe", f"{kind}unsubscribe", [f"{CHANNEL}:{i}" for i in range(30000)]
    some = names[::9999]
    with connect(guard, version) as wire, guard.wire() as other:
        wire.send(command("PING") + command(begin, *names) + command("GET", "item:404") + command("PING"))
        assert wire.read_reply() == b"+PONG\r\n"
        assert wire.read_replies(len(names)) == b"".join(
            confirmed(version, begin, name, count) for count, name in enumerate(names, 1))
        assert wire.read_reply() == (BOUND if version == 2 else b"_\r\n")
        assert wire.read_reply() == (b"+PONG\r\n" if version == 3 else b"*2\r\n" + bulk("pong") + bulk(""))
        for name in some:
            other.ask(f"{kind}publish", name, "once")
            assert wire.read_reply() == message(version, name, "once", f"{kind}message")
        kill_subscribers(cluster)
        for name in some if kind else []:  # whether any other is heard is said by one node alone
            reach(guard, name, "again")
            assert wire.read_reply() == message(version, name, "again")
        wire.send(command(end, *names[:20000]) + command(end) + command("PING"))
        assert wire.read_replies(len(names)) == b"".join(
            confirmed(version, end, name, len(names) - count) for count, name in enumerate(names, 1))
        assert wire.read_reply() == b"+PONG\r\n"


@pytest.mark.parametrize("version", [2, 3])
def test_no_message_overtakes_what_is_said_of_many_names(guard, cluster, version):
    """The cache reads so long a command in pieces, and serves others between them."""
    names = [f"{CHANNEL}:{number:030}" for number in range(1500)]
    ended = threading.Event()

    def publish_always():
        client = cluster.primaries[0].client()
        while not ended.is_set():
            client.publish(names[0], "early")

    publisher = threading.Thread(target=publish_always)
    publisher.start()
    try:
        for _ in range(10):
            subscribed(guard, version, *names, word="SUBSCRIBE").close()
    finally:
        ended.set()
        publisher.join()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["", "s"])
def test_whose_replies_are_off_is_told_that_it_listens(guard, version, kind):
    with connect(guard, version) as wire:
        wire.send(command("CLIENT", "REPLY", "OFF"))
        for word, count in ((f"{kind}subscribe", 1), (f"{kind}unsubscribe", 0)):
            wire.send(command(word, CHANNEL))
            assert wire.read_reply() == confirmed(version, word, CHANNEL, count)
