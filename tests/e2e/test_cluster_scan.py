"""SCAN goes through all nodes of a cluster by one cursor, which any worker can go on with."""
import itertools

import pytest

from played import Node, array, ranges
from servers import PATIENCE
from test_cluster import one_on_each_worker
from waiting import wait_until
from wire import bulk

IN_MIDDLE, AT_END = b"plain:0", b"plain:2"  # slots 5001 to 10000, and from 10001 on


class Scanned(Node):
    """Gives its keys in two parts, and has only those slots that it is told."""

    def __init__(self, server, number):
        super().__init__(server)
        self.keys = [b"node %d, %s" % (number, part) for part in (b"begun", b"ended")]
        self.moved = {}  # a key and where it is
        self.answer = self.say_for_itself

    def say_for_itself(self, words):
        if words[0] == b"SCAN":
            ends = int(words[1]) == 1 << 40
            return array(bulk("0" if ends else str(1 << 40)), array(bulk(self.keys[ends])))
        if words[0] == b"GET" and words[1] in self.moved:
            return b"-MOVED %d 127.0.0.1:%d\r\n" % self.moved[words[1]]
        return None


@pytest.fixture
def nodes(cache):
    made = [Scanned(cache, number) for number in range(3)]
    yield made
    for node in made:
        node.close()


def set_slots(nodes, first, second):
    a, b, c = nodes
    for node in nodes:
        node.slots = ranges((0, first - 1, a.port), (first, second - 1, b.port),
                            (second, 16383, c.port))


def step(wire, cursor):
    """What comes next, and the keys."""
    parts = wire.ask("SCAN", cursor).split(b"\r\n")
    assert parts[0] == b"*2", parts
    return parts[2], parts[5::2]


def scan(*wires):
    """By each in turn."""
    found, cursor = [], b"0"
    for wire in itertools.cycle(wires):
        cursor, keys = step(wire, cursor)
        assert int(cursor) < 1 << 63
        found += keys
        if cursor == b"0":
            return sorted(found)


@pytest.fixture
def workers(start_guard, items, nodes):
    """A client on each of two workers, which have heard of the nodes in another order."""
    for node in nodes:
        node.slots = ranges((0, 16383, nodes[0].port))
    guard = start_guard(items(ttl=0), cache=nodes[0].url, workers=2)
    wires = list(one_on_each_worker(guard, 2))
    nodes[0].moved = {IN_MIDDLE: (slot_of(IN_MIDDLE), nodes[1].port),
                      AT_END: (slot_of(AT_END), nodes[2].port)}
    for wire, key in zip(wires, (IN_MIDDLE, AT_END)):
        wire.ask("GET", key)
    set_slots(nodes, 5001, 10001)
    # Each gets through by itself when it has heard of all.
    for wire in wires:
        wait_until(lambda wire=wire: scans_all(wire, nodes), PATIENCE, guard.log)
    yield wires
    for wire in wires:
        wire.close()


def scans_all(wire, nodes):
    try:
        return scan(wire) == all_keys(nodes)
    except AssertionError:
        return False


def all_keys(nodes):
    return sorted(key for node in nodes for key in node.keys)


def slot_of(key):
    crc = 0
    for byte in key:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xffff
    return crc % 16384


def test_any_worker_goes_on_with_it(workers, nodes):
    assert 5001 <= slot_of(IN_MIDDLE) < 10001 <= slot_of(AT_END)
    one, other = workers
    assert scan(one, other) == scan(other, one) == scan(one, one, other) == all_keys(nodes)


def test_it_begins_again_when_a_slot_has_moved_meanwhile(workers, nodes):
    begun = step(workers[0], b"0")[0]
    set_slots(nodes, 5000, 10001)
    for wire in workers:
        wait_until(lambda wire=wire: wire.ask("SCAN", begun).startswith(
            b"-NESTGUARD cluster changed"), PATIENCE, "the worker to hear of it")
    assert scan(*workers) == all_keys(nodes)
