"""Random transactions of clients that each write keys of their own, without rows, which only the cache
has. What EXEC has done is found behind it, by whoever asks, however long the transaction was open; and
what it has not done admits nothing. See random_run.py for the variables.
"""
import collections
import os
import time

import pytest

from following import follow, is_possible  # follow: a fixture
from parts import SEED, Soloist
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

SECONDS = float(os.environ.get("NESTGUARD_SECONDS", 10))
CLIENTS, KEYS = 4, 10
LONG = 3600  # of hint_ttl
WATCHED = "watched"  # is no guarded key


def set_key(key, value, values):
    values[key] = value
    return True


def set_new(key, value, values):
    return key not in values and set_key(key, value, values)


def set_old(key, value, values):
    return key in values and set_key(key, value, values)


def delete(key, _, values):
    values.pop(key, None)
    return False


def read(*_):
    return False


def increment(key, _, values):
    """A value that is no number is an error of this command alone."""
    value = values.get(key, "0")
    return value.isdigit() and set_key(key, str(int(value) + 1), values)


# What is sent, and what that does to the keys of a client: true if it has written one.
COMMANDS = [(lambda key, value: ("SET", key, value), set_key),
            (lambda key, value: ("SETEX", key, 1000, value), set_key),
            (lambda key, value: ("MSET", key, value), set_key),
            (lambda key, value: ("GETSET", key, value), set_key),
            (lambda key, value: ("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", 1, key, value), set_key),
            (lambda key, value: ("SET", key, value, "NX"), set_new),
            (lambda key, value: ("SET", key, value, "XX"), set_old),
            (lambda key, _: ("INCR", key), increment),
            (lambda key, _: ("DEL", key), delete),
            (lambda key, _: ("GET", key), read)]


class Owner(Soloist):
    def __init__(self, number, guard, cache, hint_ttl):
        super().__init__(number, SECONDS)
        self.guard, self.cache, self.hint_ttl = guard, cache, hint_ttl
        self.think = 0.1 if hint_ttl == LONG else 2 * hint_ttl  # seconds before EXEC, now and then
        self.values, self.never = {}, []  # of keys in the cache; keys that never were
        self.counts = collections.Counter()
        self.numbers = iter(range(1_000_000 * (number + 1), 1_000_000 * (number + 2)))
        self.keys = [self.new_key() for _ in range(KEYS)]
        self.wire, self.other = guard.wire(), guard.wire()

    def new_key(self):
        return f"item:{next(self.numbers)}"

    def close(self):
        self.wire.close()
        self.other.close()

    def choose(self):
        """Some commands, one of them for a key that nobody has written before."""
        chosen = []
        for key in [*self.chance.choices(self.keys, k=self.chance.randint(0, 5)), self.new_key()]:
            make, effect = self.chance.choice(COMMANDS)
            value = f"v{next(self.numbers)}"
            chosen.append((make(key, value), effect, key, value))
        self.chance.shuffle(chosen)
        return chosen

    def step(self):
        chosen = self.choose()
        end = self.chance.choice([self.execute] * 5 + [self.discard, self.reset, self.abort, self.lose, self.leave])
        self.counts[end.__name__] += 1
        if end == self.lose:
            assert self.wire.ask("WATCH", f"{WATCHED}:{self.number}") == b"+OK\r\n"
        words = [("MULTI",)] + [words for words, *_ in chosen]
        self.wire.send(b"".join(command(*one) for one in words))
        if end == self.leave and self.chance.random() < 0.5:
            self.leave(chosen)
            return
        replies = [self.wire.read_reply() for _ in words]
        assert replies == [b"+OK\r\n"] + len(chosen) * [b"+QUEUED\r\n"], (words, replies)
        if self.chance.random() < 0.1:
            time.sleep(self.chance.random() * self.think)
        end(chosen)

    def forget(self, chosen):
        self.never += [key for *_, key, _ in chosen if key not in self.keys]

    def execute(self, chosen):
        values, keys = dict(self.values), set()
        for _, effect, key, value in chosen:
            if effect(key, value, values):
                keys.add(key)
        if self.hint_ttl == LONG:  # what was written earlier is admitted as well
            keys = {key for *_, key, _ in chosen}
        keys = sorted(keys)
        wanted = b"".join(bulk(values.get(key)) for key in keys)
        ask = b"".join(command("GET", key) for key in keys)
        sent = time.monotonic()
        self.wire.send(command("EXEC") + ask)
        reply = self.wire.read_reply()
        assert reply.startswith(b"*%d\r\n" % len(chosen)), reply
        found = self.wire.read_replies(len(keys))
        self.other.send(ask)
        others = self.other.read_replies(len(keys))
        if time.monotonic() < sent + self.hint_ttl and not found == others == wanted:
            raise AssertionError(f"{[words for words, *_ in chosen]} {reply}: {keys}: {found}, {others}, not {wanted}")
        self.forget([one for one in chosen if one[2] not in values])
        self.values = {key: value for key, value in values.items() if key in self.keys}

    def discard(self, chosen):
        assert self.wire.ask("DISCARD") == b"+OK\r\n"
        self.forget(chosen)

    def reset(self, chosen):
        assert self.wire.ask("RESET") == b"+RESET\r\n"
        self.forget(chosen)

    def abort(self, chosen):
        assert self.wire.ask("SET", self.keys[0]).startswith(b"-ERR wrong number")
        assert self.wire.ask("EXEC").startswith(b"-EXECABORT")
        self.forget(chosen)

    def lose(self, chosen):
        self.cache.client().incr(f"{WATCHED}:{self.number}")
        assert self.wire.ask("EXEC") == b"*-1\r\n"
        self.forget(chosen)

    def leave(self, chosen):
        self.wire.close()
        self.wire = self.guard.wire()
        self.forget(chosen)


@pytest.mark.parametrize("sync,hint_ttl", [("replication", LONG), ("replication", 2), ("poll", LONG)])
def test_what_exec_has_done_is_found_and_nothing_else_is_admitted(follow, items, cache, sync, hint_ttl):
    guard = follow(items(false_positive_rate=1e-7), sync=sync, poll_interval="1h", hint_ttl=f"{hint_ttl}s", workers=2)
    owners = [Owner(number, guard, cache, hint_ttl) for number in range(CLIENTS)]
    for owner in owners:
        owner.start()
    for owner in owners:
        owner.join()
    print(sum((owner.counts for owner in owners), collections.Counter()))
    assert not [owner.problem for owner in owners if owner.problem]
    never = [key for owner in owners for key in owner.never]
    assert never
    wait_until(lambda: not any(is_possible(guard, key) for key in never[-20:]), PATIENCE, never[-20:])
    assert not [key for key in never if is_possible(guard, key)]
    if hint_ttl == LONG:
        with guard.wire() as wire:
            for owner in owners:
                for key in owner.keys:
                    assert wire.ask("GET", key) == bulk(owner.values.get(key)), (SEED, key)
