"""Whoever sends much waits for itself, not others for it: counted in what the cache was asked before
them. The guard is paused while they send, so that it finds all of it there at once."""
import contextlib

import pytest

from following import paused
from servers import PATIENCE
from wire import Wire, command

MUCH = 900
BATCH = 64


@pytest.fixture
def guard(start_guard, items):
    """Everything goes over one connection to the cache."""
    return start_guard(items(), workers=1, cache_connections=1)


@contextlib.contextmanager
def clients(guard, count):
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(guard.port, PATIENCE)) for _ in range(count)]
        for wire in wires:
            assert wire.ask("PING") == b"+PONG\r\n"
        yield wires


def count_up(times):
    return times * command("INCR", "turns")


def places(wire, times):
    """Of each of the client's commands among those of all."""
    return [int(wire.read_reply()[1:]) for _ in range(times)]


@pytest.mark.parametrize("place", range(3))
def test_who_asks_little_is_served_before_who_has_sent_much(guard, place):
    """Wherever it stands among those whose input is there: neither who came first is served first,
    nor who came last."""
    with clients(guard, 3) as wires:
        little = wires[place]
        much = [wire for wire in wires if wire is not little]
        with paused(guard.process.pid):
            for wire in wires:
                wire.send(count_up(1 if wire is little else MUCH))
        assert places(little, 1) == [1]
        assert sorted(places(much[0], MUCH) + places(much[1], MUCH)) == list(range(2, 2 * MUCH + 2))


def test_those_who_have_sent_much_are_served_in_turn_and_each_in_order(guard):
    with clients(guard, 2) as (first, second):
        with paused(guard.process.pid):
            first.send(count_up(MUCH))
            second.send(count_up(MUCH))
        of_first, of_second = places(first, MUCH), places(second, MUCH)
    assert of_first == sorted(of_first) and of_second == sorted(of_second)
    # Nobody is ahead of the other by more than a batch, while both have some left.
    for mine, others in ((of_first, of_second), (of_second, of_first)):
        half = mine[MUCH // 2]
        assert abs(sum(place < half for place in others) - MUCH // 2) <= 2 * BATCH


def test_what_was_sent_before_the_end_is_served_however_much(guard):
    with clients(guard, 1) as (much,):
        with paused(guard.process.pid):
            much.send(count_up(MUCH))
            much.socket.shutdown(1)
        assert places(much, MUCH) == list(range(1, MUCH + 1))
        assert much.socket.recv(1) == b""


GIANT = 3000  # keys: several pieces


def giant(name, start):
    return command(name, *(f"item:{start + i}" for i in range(GIANT)))


def test_lookups_of_thousands_of_keys_keep_their_place_in_a_pipeline(guard):
    with clients(guard, 2) as (much, little):
        rounds = 5
        for number in range(rounds):
            much.send(count_up(1) + giant("MGET", 10**6) + count_up(1) + giant("EXISTS", 10**6) +
                      giant("MGET", 10**6 + number))
            little.send(command("GET", "item:1000000"))
        much.socket.shutdown(1)
        for number in range(rounds):
            assert places(much, 1) == [2 * number + 1]
            assert much.read_reply() == b"*%d\r\n" % GIANT + b"$-1\r\n" * GIANT
            assert places(much, 1) == [2 * number + 2]
            assert much.read_reply() == b":0\r\n"
            assert much.read_reply() == b"*%d\r\n" % GIANT + b"$-1\r\n" * GIANT
            assert little.read_reply() == b"$-1\r\n"
        assert much.socket.recv(1) == b""


def pairs(start):
    return [word for i in range(GIANT) for word in (f"item:{start + i}", "v")]


def test_writes_of_thousands_of_keys_keep_their_place_in_a_pipeline(guard):
    rounds = 3
    with clients(guard, 2) as (much, little):
        for number in range(rounds):
            much.send(count_up(1) + command("MSET", *pairs(10**6)) + count_up(1) +
                      command("GET", "item:1000001") + giant("DEL", 10**6) + count_up(1))
            little.send(command("GET", "other"))
        much.socket.shutdown(1)
        for number in range(rounds):
            assert places(much, 1) == [3 * number + 1]
            assert much.read_reply() == b"+OK\r\n"
            assert places(much, 1) == [3 * number + 2]
            assert much.read_reply() == b"$1\r\nv\r\n"
            assert much.read_reply() == b":%d\r\n" % GIANT
            assert places(much, 1) == [3 * number + 3]
            assert little.read_reply() == b"$-1\r\n"
        assert much.socket.recv(1) == b""


def test_of_a_large_lookup_each_key_is_answered_in_its_place(guard):
    words = [f"other:{i}" if i % 3 else f"item:{i % 5 + 1}" for i in range(2000)]
    with clients(guard, 1) as (wire,):
        for i in range(2000):
            if i % 3 == 1:
                wire.send(command("SET", f"other:{i}", str(i)))
        wire.read_replies(sum(i % 3 == 1 for i in range(2000)))
        one_by_one = []
        for word in words:
            wire.send(command("GET", word))
            one_by_one.append(wire.read_reply())
        assert wire.ask("MGET", *words) == b"*2000\r\n" + b"".join(one_by_one)
        present = sum(reply != b"$-1\r\n" for reply in one_by_one)
        assert wire.ask("EXISTS", *words) == b":%d\r\n" % present
