"""Replies that are held behind one that is late: their client is not served further, and gets all of them.
Only who does not read is cut off."""
import pytest

from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

MEGABYTE = 1 << 20
VALUES = [b"%d" % n * MEGABYTE for n in range(8)]
COUNT = 200
LATE = command("GET", "item:1")


@pytest.fixture
def start(start_guard, cache, items):
    cache.client().mset({f"big:{n}": value for n, value in enumerate(VALUES)})
    return lambda **settings: start_guard(items(), workers=1, **settings)


def gets(count):
    return b"".join(command("GET", f"big:{n % len(VALUES)}") for n in range(count))


def must_get(wire, count):
    for n in range(count):
        is_right = wire.read_bytes(len(bulk(VALUES[0]))) == bulk(VALUES[n % len(VALUES)])
        assert is_right, n  # too large to be shown


def held(guard):
    return guard.total("nestguard_client_memory_bytes")


def wait_held(guard, count):
    """All is there that was asked for, or the client is not."""
    wait_until(lambda: held(guard) >= count * MEGABYTE or dropped(guard), PATIENCE, guard.metrics)


def dropped(guard):
    return guard.total("nestguard_clients_dropped_total")


@pytest.mark.parametrize("max_output", ["64mb", "1mb"])
def test_all_arrives_behind_a_slow_load(start, database, cache, max_output):
    guard = start(load_timeout="60s", max_output=max_output)
    with guard.wire() as wire:
        with database.locked():
            wire.send(LATE + gets(COUNT))
            wait_held(guard, COUNT)
            wire.send(command("INCR", "later"))
            assert guard.redis().get("item:none") is None
            assert held(guard) < (COUNT + 16) * MEGABYTE
            assert not cache.client().exists("later"), "it is not served further"
        assert wire.read_reply() == bulk("payload 1")
        must_get(wire, COUNT)
        assert wire.read_reply() == b":1\r\n"
    assert dropped(guard) == 0
    wait_until(lambda: held(guard) < MEGABYTE, PATIENCE, "memory to be free")


def test_it_goes_on_when_the_load_is_given_up(start, database):
    guard = start(load_timeout="1s", max_output="1mb")
    with guard.wire() as wire:
        with database.locked():
            wire.send(LATE + gets(20) + command("INCR", "later"))
            assert wire.read_reply().startswith(b"-NESTGUARD timeout")
            must_get(wire, 20)
            assert wire.read_reply() == b":1\r\n"
        assert wire.ask("GET", "item:2") == bulk("payload 2")
        wire.send(gets(20))
        must_get(wire, 20)


def test_a_command_that_has_begun_comes_to_its_end(start, database, threads):
    """It is passed on while it arrives, behind what is held: its reply needs the client to be read from."""
    guard = start(load_timeout="60s", max_output="1mb")
    large = b"x" * (24 * MEGABYTE)
    with guard.wire() as wire:
        with database.locked():
            sent = threads.submit(wire.send, LATE + gets(20) + command("SET", "large", large) +
                                  command("STRLEN", "large"))
            wait_held(guard, 20)
        assert wire.read_reply() == bulk("payload 1")
        must_get(wire, 20)
        assert wire.read_replies(2) == b"+OK\r\n:%d\r\n" % len(large)
        sent.result(PATIENCE)


def test_who_does_not_read_is_cut_off(start, database):
    guard = start(load_timeout="60s", max_output="1mb", output_timeout="1s")
    with guard.wire() as wire:
        with database.locked():
            wire.send(LATE + gets(50))
            wait_held(guard, 50)
            assert dropped(guard) == 0
        wait_until(lambda: dropped(guard) == 1, PATIENCE, guard.metrics)
        wait_until(lambda: held(guard) < MEGABYTE, PATIENCE, "memory to be free")
        assert len(wire.read_until_closed()) < 50 * MEGABYTE
