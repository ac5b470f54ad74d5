"""Clients of a guard over a fleet, in a random run: pipelines of whatever they like, each reply of
which shows whose it is.

    lookups of rows        a value has its key in it; histories.py says which are allowed
    keys of their own      a value is `key=number`: the last that was acknowledged, unless a server
                           was lost meanwhile (troubles.py), and never another key's
    ECHO                   a text that nobody else sends
"""
import collections
import time

from parts import Part
from servers import PATIENCE
from wire import Wire, command

# What a lookup may be told on a busy machine, whatever becomes of the cache.
DATABASES = ("NESTGUARD busy", "NESTGUARD timeout")
STALL = 0.5  # seconds
SEASON = 4  # seconds; in every other one a client only looks up: who writes reads at primaries
PATIENCE_OF_CACHE = 3  # seconds: the guard's cache_timeout
CLOSED = "the guard closed the connection"


class Refusal(str):
    """An error as it came."""


def refusals_in(replies):
    """Of several keys one may be refused, in its place."""
    for reply in replies:
        if isinstance(reply, Refusal):
            yield reply
        elif isinstance(reply, list):
            yield from refusals_in(reply)


class Line(Wire):
    """Replies as values: bytes, numbers, None, lists; an error is a Refusal."""

    def read_value(self):
        line = self._line()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            return Refusal(rest.decode())
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        assert kind in (b"$", b"*"), f"not a reply: {line!r}"
        if int(rest) < 0:
            return None
        if kind == b"$":
            return self.read_bytes(int(rest) + 2)[:-2]
        return [self.read_value() for _ in range(int(rest))]


class Owned:
    """A key that one client alone writes. `sure`: since when `value` is what it holds; None: it may
    be anything that was ever sent. `fickle`: it is guarded and has no row, so that it may be nil."""

    def __init__(self, name, slot, fickle=False):
        self.name, self.slot, self.fickle = name, slot, fickle
        self.value, self.number, self.sure = None, 0, None

    def next(self):
        self.number += 1
        return b"%s=%d" % (self.name.encode(), self.number)

    def is_ours(self, value):
        head, _, number = value.rpartition(b"=")
        return head == self.name.encode() and int(number) <= self.number

    def learn(self, value, asked):
        self.value, self.sure = value, asked


class Ask:
    """Some commands, and what is to be done with their replies, which come in `replies`."""

    def __init__(self, commands, judge, slots, writes=False, several=False):
        self.commands, self.judge, self.slots, self.writes = commands, judge, slots, writes
        # Several keys in one slot, or a transaction whose slot arrives elsewhere before its end: Redis
        # Cluster may say TRYAGAIN.
        self.several = several
        self.replies = []


class Client(Part):
    def __init__(self, run, number):
        super().__init__(run, f"client {number}")
        self.number, self.line, self.tags = number, None, 0
        self.last = collections.deque(maxlen=100)  # asks, for whoever finds something wrong
        slot_of = run.slot_of
        free = [f"own{number}:{n}" for n in range(12)]
        tied = [f"{{own{number}}}{n}" for n in range(4)]
        hinted = [f"item:{10**9 + 1000 * number + n}" for n in range(4)]
        self.free = [Owned(name, slot_of(name)) for name in free]
        self.tied = [Owned(name, slot_of(name)) for name in tied]
        self.hinted = [Owned(name, slot_of(name), fickle=True) for name in hinted]
        self.queue = Owned(f"queue{number}", slot_of(f"queue{number}"))
        self.lookups = [self.look_up] * 8 + [self.look_up_many] * 2 + [self.exists] * 2
        self.kinds = self.lookups + [
            self.forget, self.set, self.set, self.get, self.get, self.set_many, self.get_many,
            self.delete, self.transact, self.watch, self.pop, self.echo]

    def close(self):
        if self.line:
            self.line.close()
            self.line = None

    def kinds_now(self):
        season = int(time.monotonic() / SEASON) + self.number
        return self.lookups if season % 2 else self.kinds

    def step(self):
        kinds = self.kinds_now()
        asks = [self.chance.choice(kinds)() for _ in range(self.chance.choice([1, 4, 16]))]
        asked = self.run_.histories.now()
        done = 0
        try:
            self.line = self.line or Line(self.run_.guard.port, PATIENCE)
            self.line.send(b"".join(command(*each) for ask in asks for each in ask.commands))
            for ask in asks:
                ask.replies = [self.line.read_value() for _ in ask.commands]
                answered = time.monotonic()
                self.last.append((asked.time, answered, ask.commands, ask.replies))
                self.judge(ask, asked, answered)
                done += 1
        except (AssertionError, OSError) as error:
            if not isinstance(error, OSError) and CLOSED not in str(error):
                raise
            self.take_end(asks[done:], asked, error)
        self.run_.stop.wait(0.01)

    # errors

    def judge(self, ask, asked, answered):
        refusals = list(refusals_in(ask.replies))
        if refusals:
            self.take_refusals(ask, refusals, asked, answered)
        else:
            self.run_.counts["replies"] += len(ask.replies)
            ask.judge(ask.replies, asked, answered)

    def take_refusals(self, ask, refusals, asked, answered):
        self.doubt(ask)
        run = self.run_
        run.refused[f"{ask.commands[0][0]}: {' '.join(refusals[0].split()[:4])}"] += 1
        if not ask.writes and all(refusal.startswith(DATABASES) for refusal in refusals):
            return
        if ask.several and run.troubles.was_moving(ask.slots, asked.time, answered) and all(
                refusal.startswith(("TRYAGAIN", "EXECABORT")) for refusal in refusals):
            return
        if not run.troubles.have_excused(ask.writes, ask.slots, asked.time, answered):
            run.fail(f"{self.name}: {ask.commands} of the slots {ask.slots}, which had a"
                     f" primary, at {asked.time:.4f} to {answered:.4f}: {ask.replies}")

    def take_end(self, asks, asked, error):
        """A connection whose transaction's server is lost is closed."""
        self.close()
        for ask in asks:
            self.doubt(ask)
        slots = [slot for ask in asks for slot in ask.slots or []]
        self.run_.counts["closed"] += 1
        if not self.run_.troubles.have_excused(True, slots, asked.time, time.monotonic()):
            self.run_.fail(f"{self.name}: {error}, at {asked.time:.4f},"
                           f" before {[ask.commands for ask in asks]}")

    def doubt(self, ask):
        if ask.writes:
            for each in self.free + self.tied + self.hinted:
                if any(each.name in words for words in ask.commands):
                    each.sure = None

    def story(self, name):
        return "\n".join(f"  {asked:.4f} to {answered:.4f}: {commands} {replies}"
                         for asked, answered, commands, replies in self.last
                         if any(name in words for words in commands))

    def wrong(self, what, asked, answered):
        what += "; in the same pipeline: " + str([
            (commands, replies) for begun, _, commands, replies in self.last if begun == asked.time])
        what += f"; {self.run_.troubles.describe()}"
        self.run_.fail(f"{self.name}: {what}, {asked.time:.4f} to {answered:.4f}")

    # rows

    def pick(self):
        table = self.chance.choice(self.run_.tables)
        return table, table.key(self.chance.choice(table.ids))

    def look_up(self):
        table, key = self.pick()
        way = self.chance.choice(["HGETALL", "HGET"]) if not table.is_string() else "GET"
        words = (way, key, "payload") if way == "HGET" else (way, key)

        def judge(replies, asked, answered):
            [reply] = replies
            if way == "HGETALL":
                assert not reply or len(reply) == 4, f"{key}: {reply}"
                reply = dict(zip(reply[::2], reply[1::2])).get(b"payload")
            self.judge_value(key, reply, asked, answered)

        return Ask([words], judge, [self.run_.slot_of(key)])

    def look_up_many(self):
        table = self.chance.choice([each for each in self.run_.tables if each.is_string()])
        keys = [table.key(number) for number in self.chance.sample(table.ids, 8)]
        slots = [self.run_.slot_of(key) for key in keys]

        def judge(replies, asked, answered):
            for key, reply in zip(keys, replies[0], strict=True):
                self.judge_value(key, reply, asked, answered)

        return Ask([("MGET", *keys)], judge, slots, several=len(set(slots)) < len(slots))

    def exists(self):
        _, key = self.pick()

        def judge(replies, asked, answered):
            allowed = self.run_.histories.allowed(key, asked, answered)
            self.run_.counts["exists"] += 1
            if bool(replies[0]) not in {value is not None for value in allowed}:
                self.wrong_row(key, f"EXISTS was answered {replies[0]}", allowed, asked, answered)

        return Ask([("EXISTS", key)], judge, [self.run_.slot_of(key)])

    def forget(self):
        """Whoever changes a row may do so: it is loaded anew."""
        _, key = self.pick()
        return Ask([("DEL", key)], lambda *_: None, [self.run_.slot_of(key)], writes=True)

    def judge_value(self, key, reply, asked, answered):
        value = None if reply is None else reply.decode()
        allowed = self.run_.histories.allowed(key, asked, answered)
        self.run_.counts["nils" if reply is None else "values"] += 1
        if value not in allowed:
            self.wrong_row(key, f"a lookup was answered {value!r}", allowed, asked, answered)

    def wrong_row(self, key, what, allowed, asked, answered):
        self.wrong(f"{key}: {what}, allowed: {allowed}\n"
                   + self.run_.histories.explain(key, asked), asked, answered)

    # keys of its own

    def some(self):
        return self.chance.sample(self.free, 5)

    def one(self):
        return self.chance.choice(self.free + self.tied + self.hinted)

    def judge_owned(self, owned, value, asked, answered):
        troubles = self.run_.troubles
        lost = owned.sure is None or troubles.may_have_lost([owned.slot], owned.sure, answered)
        self.run_.counts["own keys" if lost else "own keys, surely"] += 1
        is_right = value is None or owned.is_ours(value) if lost else value == owned.value
        if owned.fickle and value is None:
            return  # it has no row: that is told while the guard may tell it, whatever is cached
        if not is_right:
            self.wrong(f"{owned.name} is {value}, and not {owned.value} (of {owned.number}, since"
                       f" {owned.sure}):\n{self.story(owned.name)}", asked, answered)
        owned.learn(value, asked.time)

    def set(self):
        owned = self.one()
        value = owned.next()

        def judge(replies, asked, _):
            assert replies == [b"OK"], replies
            owned.learn(value, asked.time)

        return Ask([("SET", owned.name, value)], judge, [owned.slot], writes=True)

    def get(self):
        owned = self.one()

        def judge(replies, asked, answered):
            self.judge_owned(owned, replies[0], asked, answered)

        return Ask([("GET", owned.name)], judge, [owned.slot], writes=True)

    def set_many(self):
        values = {owned: owned.next() for owned in self.some()}

        def judge(replies, asked, _):
            assert replies == [b"OK"], replies
            for owned, value in values.items():
                owned.learn(value, asked.time)

        words = [word for owned, value in values.items() for word in (owned.name, value)]
        return Ask([("MSET", *words)], judge, [owned.slot for owned in values], writes=True)

    def get_many(self):
        some = self.some()

        def judge(replies, asked, answered):
            for owned, value in zip(some, replies[0], strict=True):
                self.judge_owned(owned, value, asked, answered)

        return Ask([("MGET", *(owned.name for owned in some))], judge,
                   [owned.slot for owned in some], writes=True)

    def delete(self):
        some = self.some()

        def judge(replies, asked, answered):
            slots = [owned.slot for owned in some]
            if all(owned.sure for owned in some) and not self.run_.troubles.may_have_lost(
                    slots, min(owned.sure for owned in some), answered):
                there = sum(owned.value is not None for owned in some)
                if replies[0] != there:
                    self.wrong(f"DEL of {[owned.name for owned in some]} found {replies[0]} of"
                               f" {there}", asked, answered)
            for owned in some:
                owned.learn(None, asked.time)

        return Ask([("DEL", *(owned.name for owned in some))], judge,
                   [owned.slot for owned in some], writes=True)

    def transact(self):
        """Of one slot, and whole whatever happens."""
        one, other = self.chance.sample(self.tied, 2)
        first, second = one.next(), other.next()
        commands = [("MULTI",), ("SET", one.name, first), ("GET", one.name),
                    ("SET", other.name, second), ("MGET", one.name, other.name), ("EXEC",)]

        def judge(replies, asked, answered):
            expected = [b"OK", *[b"QUEUED"] * 4, [b"OK", first, b"OK", [first, second]]]
            if replies != expected:
                self.wrong(f"{commands} was answered {replies}", asked, answered)
            one.learn(first, asked.time)
            other.learn(second, asked.time)

        return Ask(commands, judge, [one.slot], writes=True, several=True)

    def watch(self):
        """Nobody else changes the key. (Of a guarded one nothing is told while it is in doubt.)"""
        owned = self.chance.choice(self.free + self.tied)
        value = owned.next()
        commands = [("WATCH", owned.name), ("MULTI",), ("SET", owned.name, value),
                    ("GET", owned.name), ("EXEC",)]

        def judge(replies, asked, answered):
            if replies != [b"OK"] * 2 + [b"QUEUED"] * 2 + [[b"OK", value]]:
                self.wrong(f"{commands} was answered {replies}", asked, answered)
            owned.learn(value, asked.time)

        return Ask(commands, judge, [owned.slot], writes=True, several=True)

    def pop(self):
        """What was pushed last is there: it does not wait, unless a server was lost in between."""
        owned = self.queue
        value = owned.next()
        commands = [("LPUSH", owned.name, value), ("BLPOP", owned.name, 1)]

        def judge(replies, asked, answered):
            lost = self.run_.troubles.may_have_lost([owned.slot], asked.time, answered)
            if replies[1] != [owned.name.encode(), value] and not lost:
                self.wrong(f"{commands} was answered {replies}", asked, answered)

        return Ask(commands, judge, [owned.slot], writes=True)

    def echo(self):
        self.tags += 1
        tag = b"%d of %d" % (self.tags, self.number)

        def judge(replies, asked, answered):
            if replies != [tag]:
                self.wrong(f"ECHO {tag} was answered {replies}", asked, answered)

        return Ask([("ECHO", tag)], judge, None, writes=True)


class Listener(Part):
    """A subscriber, who subscribes again when its connection is closed. Shard channels (`kind`: "S")
    are one on each third of the slots."""

    def __init__(self, run, kind, names):
        super().__init__(run, f"listener {kind}")
        self.kind, self.names = kind, names
        self.line, self.ends, self.heard = None, 0, {}  # heard: the last number of each channel

    def close(self):
        if self.line:
            self.line.close()
            self.line = None
            self.ends += 1

    def subscribe(self):
        self.line = Line(self.run_.guard.port, PATIENCE)
        self.line.send(command(f"{self.kind}SUBSCRIBE", *self.names))
        for number, name in enumerate(self.names, 1):
            reply = self.line.read_value()
            if isinstance(reply, Refusal):
                return self.close()
            assert reply[1:] == [name.encode(), number], reply
        self.line.socket.settimeout(0.2)

    def step(self):
        try:
            if not self.line:
                self.run_.stop.wait(0.1)
                self.subscribe()
                return
            _, name, number = self.line.read_value()
            self.heard[name.decode()] = int(number)
        except TimeoutError:  # nothing was said; none of a few messages comes in pieces
            pass
        except (AssertionError, OSError) as error:
            if not isinstance(error, OSError) and CLOSED not in str(error):
                raise
            self.close()

    def hears(self, ends, number):
        """Asked again and again: what is published now is heard, or the connection was closed."""
        with Line(self.run_.guard.port, PATIENCE) as line:
            for name in self.names:
                line.send(command(f"{self.kind}PUBLISH", name, number))
                line.read_value()
        return self.ends > ends or all(self.heard.get(name, 0) >= number for name in self.names)


class Watchman(Part):
    """Of the machine itself: where a moment takes that long, nobody answers in time."""

    def step(self):
        begun = time.monotonic()
        time.sleep(0.05)
        if time.monotonic() - begun > STALL:
            self.run_.counts["stalls"] += 1
            self.run_.troubles.stalled(begun - PATIENCE_OF_CACHE)


class Prober(Client):
    """Writes to each part of the fleet again and again: how long can nobody?"""

    def __init__(self, run, number, names):
        super().__init__(run, number)
        self.probes = [Owned(name, run.slot_of(name)) for name in names]

    def step(self):
        for probe in self.probes:
            self.kinds = self.lookups = [lambda probe=probe: self.probe(probe)]
            super().step()

    def probe(self, owned):
        def judge(replies, asked, _):
            assert replies == [b"OK"], replies
            owned.learn(None, asked.time)

        return Ask([("SET", owned.name, owned.next())], judge, [owned.slot], writes=True)
