"""A transaction may be open for longer than what admitted its keys when they were queued: what EXEC
has written is found all the same."""
import pytest

from following import follow, is_possible, wait_removed  # follow: a fixture
from servers import PATIENCE
from waiting import wait_until

NEW = "item:777"
MANY = [f"item:{n}" for n in range(1000, 2000)]


@pytest.fixture
def guard(follow, items):
    return follow(items(), hint_ttl="1s")


def outlive(guard, *keys):
    wait_until(lambda: not any(is_possible(guard, key) for key in keys), PATIENCE, guard.status)


def execute(guard, wire, *keys):
    assert wire.ask("EXEC") == b"*%d\r\n" % len(keys) + len(keys) * b"+OK\r\n"
    for reader in [wire, guard.wire(), guard.wire(), guard.wire()]:
        assert reader.ask("MGET", *keys) == b"*%d\r\n" % len(keys) + len(keys) * b"$1\r\nw\r\n"


def queue(wire, *keys):
    assert wire.ask("MULTI") == b"+OK\r\n"
    for key in keys:
        assert wire.ask("SET", key, "w") == b"+QUEUED\r\n"


def test_that_began_while_another_write_admitted_its_key(guard):
    with guard.wire() as wire:
        assert wire.ask("SET", NEW, "v") == b"+OK\r\n"
        queue(wire, NEW)
        outlive(guard, NEW)
        execute(guard, wire, NEW)


def test_that_writes_more_than_is_held_back(guard):
    with guard.wire() as wire:
        queue(wire, *MANY)
        outlive(guard, *MANY[-10:])
        execute(guard, wire, *MANY)


def test_that_began_when_its_key_had_a_row(guard, database):
    with guard.wire() as wire:
        queue(wire, "item:5")
        database.execute("DELETE FROM items WHERE id = 5")
        wait_removed(guard, database)
        execute(guard, wire, "item:5")


def test_that_is_not_executed_leaves_nothing(guard, cache):
    with guard.wire() as wire:
        queue(wire, "item:5", NEW)
        assert wire.ask("DISCARD") == b"+OK\r\n"
    assert guard.status()["entries"] == 0
    assert not is_possible(guard, NEW)
