#!/usr/bin/python3
"""Clients as nobody wants them, all kinds at once, each a process of its own.

    tests/e2e/hostile.py --port N --seconds S [--tls N] [--control N] [--password P] [--rows N] [--seed N] [KIND...]

Needs in the cache the user "weak", who may only PING, and the key "large" of some megabytes; prepare()
makes them; target() is a guard with all that they attack. Prints one object: how many rounds each kind has
made, and how many calls without a valid token were refused. They fail for nothing that the guard does to
them, but for a reply that is none, and for such a call that is not refused.
"""
import argparse
import itertools
import json
import multiprocessing
import os
import random
import socket
import ssl
import sys
import time

from certificates import Certificates
from ports import free_port
from wire import Wire, command, socket_from

TIMEOUT = 60  # of a reply that is awaited; a guard under attack may take its time
NEVER = "item:9%018d"  # no row has such a key
HOME = "127.0.0.2"  # whose ports they use up: others on this machine need those of 127.0.0.1


def prepare(cache, large=8 << 20):
    """What the clients need in the cache, by a client of redis-py."""
    cache.acl_setuser("weak", enabled=True, nopass=True, commands=["+ping"])
    cache.set("large", b"x" * large)


def target(directory, start, **settings):
    """start(setting=value) makes a guard, which listens with and without TLS and has secrets. Its
    certificate is made in the directory."""
    certificates = Certificates(directory)
    certificates.make("guard")
    plain, tls = free_port(), free_port()
    guard = start(listen=[f"127.0.0.1:{plain}", f"tls:127.0.0.1:{tls}"], password="sesame",
                  control_token="poppy", **certificates.settings("guard"), **settings)
    guard.port, guard.tls_port = plain, tls
    return guard


def command_against(guard, *words):
    """What runs them against such a target, with further words of the command line."""
    return list(map(str, [__file__, "--port", guard.port, "--tls", guard.tls_port, "--control",
                          guard.control_port, "--password", guard.password, *words]))


def tls_context():
    """Of clients who do not care whom they talk to."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def greeting():
    """The first bytes of a handshake."""
    said = ssl.MemoryBIO()
    try:
        tls_context().wrap_bio(ssl.MemoryBIO(), said).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return said.read()


GREETING = greeting()


class Foe:
    def __init__(self, options, kind):
        self.port, self.password, self.rows = options.port, options.password, options.rows
        self.control, self.tls = options.control, options.tls
        self.refused = 0  # calls of the control port
        self.chance = random.Random(f"{options.seed} {kind}")
        self.end = time.monotonic() + options.seconds
        self.held = []  # connections that stay open

    def is_over(self):
        return time.monotonic() > self.end

    def dial(self, port=None):
        return Wire(port or self.port, TIMEOUT, HOME)

    def enter(self, tls=False):
        """A connection of somebody who knows the password."""
        wire = self.dial(self.tls if tls else None)
        if tls:
            wire.socket = tls_context().wrap_socket(wire.socket)
        if self.password:
            assert wire.ask("AUTH", self.password) == b"+OK\r\n"
        return wire

    def hold(self, wire, most):
        """Leaves it open, and lets the oldest go when there are too many."""
        self.held.append(wire)
        if len(self.held) > most:
            self.held.pop(0).close()

    def absent(self, count):
        return [NEVER % self.chance.randrange(10**18) for _ in range(count)]

    # A round of each kind

    def slow_reader(self):
        """Asks for megabytes twice, and never reads."""
        wire = self.enter()
        wire.send(command("GET", "large") * 2)
        self.hold(wire, 20)
        time.sleep(1 / 7)

    def unread_mget(self):
        """The same of a reply that the guard makes of many."""
        wire = self.enter()
        wire.send(command("MGET", self.absent(1)[0], *["large"] * 2))
        self.hold(wire, 5)
        time.sleep(1 / 3)

    def update_flood(self):
        """Writes of keys without a row that write nothing."""
        with self.enter() as wire:
            wire.send(b"".join(command("SET", key, "v", "XX") for key in self.absent(1000)))
            wire.read_replies(1000)

    def large_keys(self):
        """Keys as long as a value, declared by a script over and over."""
        with self.enter() as wire:
            keys = ["item:9" + "%04d" % n + "9" * 60_000 for n in range(100)]
            wire.ask("EVAL", "return 1", len(keys), *keys)

    def stranger_crowd(self):
        """As many as are let in unnamed, or nearly: those who have waited longest may have to go."""
        for _ in range(100):
            self.hold(self.dial(), 900)
        time.sleep(0.2)

    def control_caller(self):
        """Calls that are refused, and those whose end does not come."""
        if self.control:
            for text in (b"GET /v1/status HTTP/1.1\r\nAuthorization: Bearer guess\r\n\r\n", b"GET /v1/st",
                         b"DELETE /nothing HTTP/1.1\r\nHost: x\r\n\r\n", os.urandom(200),
                         b"PUT /v1/keys/item:1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx"):
                caller = self.dial(self.control)
                self.hold(caller, 20)
                caller.send(text)
        time.sleep(0.1)

    def token_guesser(self):
        """Calls that would do something, with a wrong token and with none."""
        if self.control:
            guess = f"Authorization: Bearer {self.chance.randrange(10**9)}\r\n"
            for method, header in itertools.product(("GET", "PUT", "DELETE"), (guess, "")):
                with self.dial(self.control) as caller:
                    caller.send(f"{method} /v1/keys/item%3A1 HTTP/1.1\r\nHost: localhost\r\n{header}"
                                "Connection: close\r\n\r\n".encode())
                    answer = caller.read_until_closed()
                    assert answer[:12] in (b"", b"HTTP/1.1 401"), f"not a reply of 401: {answer}"
                    self.refused += answer != b""
        time.sleep(0.05)

    def half_handshake(self):
        """Greets, and falls silent anywhere."""
        if self.tls:
            begun = self.dial(self.tls)
            self.hold(begun, 300)
            begun.send(GREETING[:self.chance.randrange(1, len(GREETING) + 1)])
        time.sleep(1 / 50)

    def wrong_handshake(self):
        """What is no TLS from the first byte on, or behind so many that are."""
        if self.tls:
            some = self.chance.randrange(1, len(GREETING))
            for words in (os.urandom(200), command("PING"), GREETING + os.urandom(1000),
                          GREETING[:some] + os.urandom(len(GREETING) - some),
                          b"\x16\x03\x01\xff\xff" + os.urandom(2000)):
                with self.dial(self.tls) as wire:
                    wire.send(words)
        time.sleep(1 / 50)

    def tls_slow_reader(self):
        """As slow_reader, of what would have to be encrypted."""
        if self.tls:
            wire = self.enter(tls=True)
            self.hold(wire, 20)
            wire.send(command("GET", "large") * 2)
        time.sleep(1 / 7)

    def connection_flood(self):
        """Hundreds of connections at once that never say a word."""
        crowd = []
        for _ in range(300):
            one = socket_from(HOME)
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", self.port))
            crowd.append(one)
        time.sleep(0.2)
        for one in crowd:
            one.close()

    def cold_pipeline(self):
        """Thousands of rows that are not cached, in one go."""
        with self.enter() as wire:
            keys = [f"item:{self.chance.randint(self.rows - self.rows // 10, self.rows)}" for _ in range(5000)]
            wire.send(b"".join(command("GET", key) for key in keys))
            wire.read_replies(len(keys))

    def giant_mget(self):
        with self.enter() as wire:
            wire.send(command(self.chance.choice(["MGET", "EXISTS"]), *self.absent(200_000)))
            wire.read_reply()

    def refused_write(self):
        """Scripts and writes of tens of thousands of keys by who may not."""
        with self.enter() as wire:
            assert wire.ask("AUTH", "weak", "x") == b"+OK\r\n"
            for _ in range(3):
                assert wire.ask("EVAL", "return 1", 30_000, *self.absent(30_000))[:7] == b"-NOPERM"
                assert wire.ask("SET", self.absent(1)[0], "v")[:7] == b"-NOPERM"

    def stranger(self):
        """Guesses, begins and leaves, without ever showing who he is."""
        wire = self.dial()
        wire.send(command("AUTH", "guess") + command("AUTH", "nobody", "guess") +
                  command("HELLO", "3", "AUTH", "default", "guess"))
        self.hold(wire, 50)
        half = self.dial()
        half.send(b"*2\r\n$4\r\nAUTH\r\n$100\r\n")
        self.hold(half, 50)

    def absent_flood(self):
        with self.enter() as wire:
            for _ in range(20):
                wire.send(b"".join(command("GET", key) for key in self.absent(1000)))
                wire.read_replies(1000)

    def unknown_command(self):
        with self.enter() as wire:
            wire.send(b"".join(command(f"NOSUCH.{n}", "x") for n in range(20)))
            wire.read_replies(20)

    def wrong_bytes(self):
        """What is no protocol, and half of what is."""
        for words in (b"*3\r\n$-5\r\n", os.urandom(200), b"*99999999999\r\n", b"GET / HTTP/1.1\r\n\r\n",
                      command("SET", "large:half", b"x" * (4 << 20))[:3 << 20]):
            with self.enter() as wire:
                wire.send(words)

    def huge_value(self):
        """Written, read by nobody, deleted."""
        with self.enter() as wire:
            wire.send(command("SET", "large:other", b"y" * (8 << 20)) + command("DEL", "large:other"))
            wire.read_replies(2)

    def flapping_state(self):
        """Back and forth between shared connections and one of its own."""
        with self.enter() as wire:
            for _ in range(20):
                wire.send(command("MULTI") + command("GET", self.absent(1)[0]) + command("EXEC") +
                          command("CLIENT", "LIST") + command("RESET"))
                wire.read_replies(5)
                if self.password:
                    wire.ask("AUTH", self.password)

    def run(self, kind):
        rounds = 0
        while not self.is_over():
            try:
                getattr(self, kind)()
            except OSError:
                pass  # whatever the guard does to such a connection serves it right
            except AssertionError as error:
                if str(error).startswith("not a reply"):
                    raise
            rounds += 1
        for wire in self.held:
            wire.close()
        return rounds


KINDS = [name for name, what in vars(Foe).items()
         if callable(what) and name not in ("__init__", "is_over", "dial", "enter", "hold", "absent",
                                            "run")]


def run_kind(options, kind, results):
    foe, rounds = Foe(options, kind), None  # it failed, and has said why
    try:
        rounds = foe.run(kind)
    finally:
        results.put((kind, rounds, foe.refused))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--tls", type=int, help="its port for TLS, if it has one")
    parser.add_argument("--control", type=int,
                        help="its control port, if that is to be called, too: it must want a token")
    parser.add_argument("--password")
    parser.add_argument("--rows", type=int, default=100, help="items 1 to N exist")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    options = parser.parse_args()
    results = multiprocessing.Queue()
    foes = [multiprocessing.Process(target=run_kind, args=(options, kind, results), daemon=True)
            for kind in options.kinds or KINDS]
    for foe in foes:
        foe.start()
    found = [results.get() for _ in foes]
    for foe in foes:
        foe.join()
    rounds = {kind: count for kind, count, _ in found}
    print(json.dumps({"seed": options.seed, "rounds": rounds,
                      "refused_calls": sum(refused for _, _, refused in found)}))
    sys.exit(None in rounds.values())


if __name__ == "__main__":
    main()
