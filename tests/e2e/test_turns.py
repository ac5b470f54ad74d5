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


def test_who_asks_little_is_served_before_who_has_sent_much(guard):
    with clients(guard, 3) as (much, other, little):
        with paused(guard.process.pid):
            much.send(count_up(MUCH))
            other.send(count_up(MUCH))
            little.send(count_up(1))
        assert places(little, 1) == [1]
        assert sorted(places(much, MUCH) + places(other, MUCH)) == list(range(2, 2 * MUCH + 2))


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
