"""Random pipelines of everything at once, in both protocols, against a Redis asked directly: local
answers, hits, loads, transactions, subscriptions, blocking commands, other databases, RESET.

    NESTGUARD_SEED   repeats a run
    NESTGUARD_ROUNDS how many pipelines of each client, 60 unless it says otherwise

The direct one holds each row under its key. So a guarded lookup must be answered alike, outside of
transactions and in the guarded database; there, what is read of guarded keys is left out.
"""
import os
import random
import threading

import pytest

from beside import Pair, redis_beside
from servers import PATIENCE

SEED = int(os.environ.get("NESTGUARD_SEED", random.SystemRandom().randrange(1 << 32)))
ROUNDS = int(os.environ.get("NESTGUARD_ROUNDS", 60))
CLIENTS = 4


@pytest.fixture(scope="module")
def other():
    with redis_beside() as server:
        client = server.client()
        for n in range(1, 101):
            client.set(f"item:{n}", f"payload {n}")
        yield server


class Talk:
    """One client's commands: each round a pipeline, and how many replies each line of it has."""

    def __init__(self, number, chance):
        self.own = f"{{{number}}}:"  # a client's keys are its own
        self.chance = chance
        self.resp3 = False
        self.db = 0

    def key(self):
        return self.own + self.chance.choice("abc")

    def row(self):
        return self.chance.randint(1, 100)

    def missing(self):
        return self.chance.randint(101, 10**9)

    def plain(self):
        key, n = self.key(), self.chance.randint(0, 99)
        return self.chance.choice([
            f"SET {key} {n}", f"GET {key}", f"DEL {key}", f"ECHO {n}", f"TYPE {key}", "NOSUCH x",
            f"STRLEN {key}", f"APPEND {key} {n}", "GET", f"EXISTS {key} {key}", "CLIENT GETNAME",
            f"MGET {key} {key}x", f"RPUSH {key}l {n}", f"LRANGE {key}l 0 -1", f"LPOP {key}l",
            f"HSET {key}h f {n}", f"HGETALL {key}h", "INCR " + key, f"SELECT {self.db}",
        ])

    def guarded(self):
        row, missing = self.row(), self.missing()
        return self.chance.choice([
            f"GET item:{row}", f"GET item:{missing}", f"MGET item:{row} {self.key()} item:{missing}",
            f"EXISTS item:{row} item:{missing} item:{row}", f"STRLEN item:{missing}",
            f"HGETALL item:{missing}", f"ZSCORE item:{missing} m", f"TTL item:{missing}",
        ])

    def transaction(self):
        inside = [self.plain() for _ in range(self.chance.randint(0, 4))]
        inside = [line for line in inside if not line.startswith(("SELECT", "CLIENT"))]
        watch = [f"WATCH {self.key()}"] if self.chance.random() < 0.3 else []
        return [*watch, "MULTI", *inside, f"GET item:{self.missing()}",
                self.chance.choice(["EXEC", "EXEC", "EXEC", "DISCARD"])]

    def blocking(self):
        key = self.key()
        return [f"RPUSH {key}l 1", self.chance.choice([
            f"BLPOP {key}l 0", f"BLMOVE {key}l {key}m LEFT LEFT 0", f"BRPOP {key}n {key}l 0",
            f"BLPOP {key}none 0.001", f"BLMPOP 0 1 {key}l LEFT"])]

    def subscription(self):
        a, b = self.own + "one", self.own + "two"
        return [(f"SUBSCRIBE {a} {b}", 2), (f"UNSUBSCRIBE {a}", 1), (f"PSUBSCRIBE {a}*", 1), "PING",
                (f"UNSUBSCRIBE {b}", 1), ("PUNSUBSCRIBE", 1)]

    def elsewhere(self):
        self.db = 1
        lines = ["SELECT 1", *[self.plain() for _ in range(3)], f"GET item:{self.missing()}"]
        self.db = 0
        return [*lines, "SELECT 0"]

    def unheard(self):
        return [("CLIENT REPLY OFF", 0), *[(self.plain(), 0) for _ in range(3)],
                (f"GET item:{self.row()}", 0), "CLIENT REPLY ON", ("CLIENT REPLY SKIP", 0),
                (self.plain(), 0)]

    def again(self):
        self.resp3 = self.chance.random() < 0.5
        return [self.chance.choice(["RESET", "PING"]), f"HELLO {3 if self.resp3 else 2}"]

    def round(self):
        lines = []
        for _ in range(self.chance.randint(1, 12)):
            kind = self.chance.choices(
                ["plain", "guarded", "transaction", "blocking", "subscription", "elsewhere",
                 "unheard", "again"], [30, 30, 8, 6, 2, 3, 3, 3])[0]
            made = getattr(self, kind)()
            lines += [made] if isinstance(made, str) else made
        return [line if isinstance(line, tuple) else (line, 1) for line in lines]


def talk(guard, other, number, problems):
    chance = random.Random(SEED + number)
    client = Talk(number, chance)
    try:
        with Pair(guard, other) as pair:
            for _ in range(ROUNDS):
                lines = client.round()
                pair.send(*[line for line, _ in lines])
                for line, replies in lines:
                    pair.read(replies, line)
    except (AssertionError, OSError) as problem:
        problems.append(f"client {number} of NESTGUARD_SEED={SEED}: {problem!r}")


def test_every_mixture_is_answered_as_by_redis(start_guard, items, other):
    print(f"NESTGUARD_SEED={SEED}")
    guard = start_guard(items(), load_budget=1000)
    problems = []
    threads = [threading.Thread(target=talk, args=(guard, other, number, problems))
               for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(6 * PATIENCE)
    assert not problems, problems[0]
    assert not any(thread.is_alive() for thread in threads)
