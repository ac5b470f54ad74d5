"""Random pipelines of small commands and some of megabytes, of clients that each have keys of their own:
each byte of the replies is what a Redis without a guard says to the same pipeline. See random_run.py for
the variables.
"""
import collections
import os
import random
import threading

import pytest

from gated import other  # a fixture
from parts import Soloist
from servers import PATIENCE
from waiting import wait_until
from wire import Wire, bulk, command

SECONDS = float(os.environ.get("NESTGUARD_SECONDS", 10))
CLIENTS, KEYS, MEGABYTE = 3, 8, 1 << 20
PUT_SECOND = "redis.call('SET', KEYS[1], ARGV[1]) return #ARGV[2]"
NOTHING = "none:%d"


class Talker(Soloist):
    def __init__(self, number, guard, twin, may_have_state):
        super().__init__(number, SECONDS)
        self.guard, self.twin, self.may_have_state = guard, twin, may_have_state
        self.lives, self.counts = 0, collections.Counter()
        self.wires = []
        self.begin()

    def close(self):
        for wire in self.wires:
            wire.close()

    def begin(self):
        """As another client, with other keys: what the one before has left behind may yet be done."""
        self.close()
        self.wires = [self.guard.wire(), Wire(self.twin.port, PATIENCE)]
        self.lives += 1
        first = 1_000_000 * (self.number + 1) + KEYS * self.lives
        self.keys = [f"item:{n}" for n in range(first, first + KEYS)]
        self.keys += [f"plain:{n}" for n in range(first, first + KEYS)]
        self.list = f"list:{first}"

    def value(self, is_large):
        size = int(self.chance.choice([1, 1, 1.5, 4, 12]) * MEGABYTE) if is_large else 0
        return self.chance.randbytes(16) * (size // 16 + self.chance.randrange(3))

    def many(self):
        return [NOTHING % n for n in range(self.chance.choice([10, 1000, 90_000]))]

    def command(self, is_large):
        """What is sent; those that have several keys, or words that are not looked at, are gathered."""
        key, second, value = *self.chance.sample(self.keys, 2), self.value(is_large)
        stateless = [
            lambda: command("GET", key),
            lambda: command("SET", key, value),
            lambda: command("SET", key, value, "GET"),
            lambda: command("MSET", key, value, second, "small"),
            lambda: command("MSET", key, "odd", value),
            lambda: command("MGET", key, *(self.many() if is_large else []), second),
            lambda: command("EXISTS", key, *(self.many() if is_large else []), second),
            lambda: command("DEL", *(self.many() if is_large else []), key),
            lambda: command("EVAL", PUT_SECOND, 1, key, "short", value),
            lambda: command("EVAL", PUT_SECOND, 1, key, value, "short"),
            lambda: command("RENAME", key, second),
            lambda: command("APPEND", key, self.value(False)),
            lambda: command("CLIENT", "REPLY", "SKIP") + command("MSET", key, value),
            lambda: b"\r\n*0\r\n",
            lambda: f"GET {key}\r\n".encode()]
        stateful = [
            lambda: command("NOSUCH", value),
            lambda: command("MULTI") + command("MSET", key, value) + command("GET", second) + command("EXEC"),
            lambda: command("WATCH", key) + command("MULTI") + command("EVAL", PUT_SECOND, 1, key, "x", value)
            + command("DISCARD"),
            lambda: command("RPUSH", self.list, value) + command("BLPOP", self.list, value, 0)]
        return self.chance.choice(stateless + (stateful if self.may_have_state else []))()

    def send(self, wire, data):
        """In pieces of any size."""
        chance, at = random.Random(len(data)), 0
        while at < len(data):
            size = chance.choice([10, 1000, 70_000, len(data), len(data)])
            wire.send(data[at:at + size])
            at += size

    def step(self):
        """The pipeline's end has a reply of its own, by which it is known."""
        large = [self.chance.random() < 0.3 for _ in range(self.chance.randrange(1, 9))]
        self.counts["large"] += sum(large)
        data = b"".join(map(self.command, large)) + command("ECHO", "the end of it")
        if self.chance.random() < 0.1:
            self.wires[0].send(data[:self.chance.randrange(len(data))])
            self.counts["gone"] += 1
            self.begin()
            return
        senders = [threading.Thread(target=self.send, args=(wire, data), daemon=True) for wire in self.wires]
        for sender in senders:
            sender.start()
        said, wanted = (list(iter(wire.read_reply, bulk("the end of it"))) for wire in self.wires)
        for sender in senders:
            sender.join(PATIENCE)
        assert len(said) == len(wanted), (said, wanted)
        for one, two in zip(said, wanted):
            assert one == two, (one[:200], two[:200], data[:1000])
        self.counts["compared"] += len(said)


@pytest.mark.parametrize("own_connections", [1000, 0], ids=["apart", "shared"])
def test_what_is_large_is_answered_in_its_place(start_guard, items, other, own_connections):
    guard = start_guard(items(), workers=2, own_connections=own_connections)
    talkers = [Talker(n, guard, other, own_connections > 0) for n in range(CLIENTS)]
    for talker in talkers:
        talker.start()
    for talker in talkers:
        talker.join(SECONDS + 2 * PATIENCE)
    assert not [talker.problem for talker in talkers if talker.problem or talker.is_alive()]
    counts = sum((talker.counts for talker in talkers), collections.Counter())
    print(dict(counts))
    assert counts["large"] and counts["compared"], counts
    wait_until(lambda: guard.status()["own_connections"] == 0, PATIENCE, guard.status)
    wait_until(lambda: guard.status()["clients"] == 0, PATIENCE, guard.status)
