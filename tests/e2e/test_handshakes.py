"""TLS handshakes that come at once: those of a host wait for each other, and keep nobody else."""
import contextlib
import select
import socket

import pytest

from certificates import Certificates
from following import paused
from hostile import GREETING
from servers import PATIENCE, free_port
from waiting import wait_until

CROWD = 100


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    made = Certificates(tmp_path_factory.mktemp("handshakes"))
    made.make("guard")
    return made


@pytest.fixture
def guard(start_guard, items, certificates):
    """guard(setting=value): by TLS only, and one worker has all that come."""
    def start(**settings):
        port = free_port()
        made = start_guard(items(), **{
            "listen": [f"tls:127.0.0.1:{port}"], **certificates.settings("guard"), "workers": 1,
            "authentication_timeout": "1h", **settings})
        made.port = port
        return made
    return start


@contextlib.contextmanager
def newcomers(guard, hosts):
    """One connection from each of these, all of which the guard has accepted."""
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(guard.wire(host)) for host in hosts]
        wait_until(lambda: guard.status()["clients"] == len(wires), PATIENCE, "them")
        yield wires


def greet(wires):
    for wire in wires:
        wire.send(GREETING)


def is_answered(wire):
    with contextlib.suppress(BlockingIOError):
        return wire.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    return False


@contextlib.contextmanager
def order_of_answers(wires):
    """A function that gives them by when the first byte came: so the kernel keeps those that are
    ready, until it is asked. All of them must have been answered then."""
    with select.epoll() as ready:
        by_number = {wire.socket.fileno(): wire for wire in wires}
        for number in by_number:
            ready.register(number, select.EPOLLIN)
        yield lambda: [by_number[number] for number, _ in ready.poll(0, len(wires))]


def test_a_crowd_from_one_host_is_in_no_other_hosts_way(guard):
    guard = guard()
    with newcomers(guard, ["127.0.0.2"] * CROWD + ["127.0.0.3", "127.0.0.4"]) as wires:
        with order_of_answers(wires) as answered:
            with paused(guard.process.pid):
                greet(wires)
            wait_until(lambda: all(map(is_answered, wires)), PATIENCE, "all answers")
            order = answered()
    assert len(order) == len(wires)
    assert max(map(order.index, wires[CROWD:])) < CROWD // 4
    crowd = [wire for wire in order if wire in wires[:CROWD]]
    assert crowd == wires[:CROWD]


def test_who_is_sent_away_while_his_handshake_waits_leaves_nothing_behind(guard, certificates):
    """With it goes its host, which has no other client."""
    guard = guard(max_strangers=CROWD)
    waiting = [f"127.0.1.{number}" for number in range(1, CROWD + 1)]
    with newcomers(guard, waiting) as wires, contextlib.ExitStack() as stack:
        with paused(guard.process.pid):
            greet(wires)
            for number in range(1, CROWD // 2 + 1):
                stack.enter_context(guard.wire(f"127.0.2.{number}"))
        wait_until(lambda: guard.total("nestguard_strangers_dropped_total") == CROWD // 2, PATIENCE,
                   "their places")
        wait_until(lambda: all(map(is_answered, wires[CROWD // 2:])), PATIENCE, "others' answers")
        client = guard.redis(ssl=True, ssl_ca_certs=certificates.file("ca.crt"))
        assert client.get("item:1") == b"payload 1"
    wait_until(lambda: guard.status()["clients"] <= 1, PATIENCE, "the end of all")


def test_the_guard_ends_while_handshakes_wait(guard):
    guard = guard(drain_timeout="100ms")
    with newcomers(guard, ["127.0.0.2", "127.0.0.3"] * (CROWD // 2)) as wires:
        with paused(guard.process.pid):
            greet(wires)
            guard.signal(guard.stop_signal)
        assert guard.wait() == 0
