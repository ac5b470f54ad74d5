"""A cache whose replies are not those of the commands that were sent: a module answers twice, or a
connection is in a state that nobody knows of. What is no error is no yes for that."""
import collections

import pytest

from following import fill, follow, wait_purged
from played import Node
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

OTHERS = [b"*1\r\n+OK\r\n", b":1\r\n", b"+QUEUED\r\n", bulk("OK")]
STRANGE = b"-NESTGUARD cache error"


class Server(Node):
    """By itself."""

    def say(self, words, wire):
        said = self.answer(words)
        return wire.ask(*words) if said is None else said

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"


@pytest.fixture
def played(cache):
    node = Server(cache)
    yield node
    node.close()


@pytest.fixture
def guard(start_guard, items, played):
    """Of a cache that has answer() asked before."""
    return start_guard(items(), cache=played.url, password="sesame")


def only(name, reply):
    """To that command."""
    return lambda words: reply if b" ".join(words).upper().startswith(name) else None


@pytest.mark.parametrize("reply", OTHERS)
def test_nobody_is_logged_in(guard, played, reply):
    played.answer = lambda words: reply if b"alice" in words else None
    for login in (["AUTH", "alice", "guess"], ["HELLO", "3", "AUTH", "alice", "guess"]):
        with guard.wire() as wire:
            wire.send(command(*login) + command("GET", "item:1"))
            told = wire.read_until_closed()
            assert told.startswith(STRANGE) and b"payload" not in told, told


@pytest.mark.parametrize("reply", OTHERS)
def test_nobody_is_listed_or_killed(guard, played, reply):
    with guard.wire() as wire, guard.wire() as other:
        for one in (wire, other):
            assert one.ask("AUTH", "sesame") == b"+OK\r\n"
        if reply != bulk("OK"):
            played.answer = only(b"CLIENT LIST", reply)
            assert wire.ask("CLIENT", "LIST").startswith(STRANGE)
        if reply != b":1\r\n":
            played.answer = only(b"CLIENT KILL", reply)
            assert wire.ask("CLIENT", "KILL", "TYPE", "normal").startswith(STRANGE)
        assert other.ask("PING") == b"+PONG\r\n"
        played.answer = lambda words: None
        assert b"id=" in wire.ask("CLIENT", "LIST")
        assert wire.ask("CLIENT", "KILL", "TYPE", "normal") == b":1\r\n"


def test_a_deletion_that_was_not_confirmed_as_one_is_repeated(follow, items, played, database, cache):
    guard = follow(items(), cache=played.url)
    fill(guard, cache, "item:1")
    said = collections.deque([b"+OK\r\n", b"+PONG\r\n", bulk("x")])
    played.answer = lambda words: said.popleft() if words[0] == b"DEL" and said else None
    database.execute("UPDATE items SET payload = 'changed' WHERE id = 1")
    wait_purged(cache, "item:1")
    assert not said and guard.redis().get("item:1") == b"changed"


@pytest.mark.parametrize("step, reply", [(b"SELECT", b":7\r\n"), (b"ROLE", b"+OK\r\n")])
def test_a_connection_that_is_out_of_step_is_not_used(start_guard, items, played, step, reply):
    guard = start_guard(items(), cache=played.url)
    with guard.wire() as wire:
        assert wire.ask("SET", "plain", "x") == b"+OK\r\n"
        played.answer = only(step, reply)
        played.hang_up()
        wait_until(lambda: wire.ask("SET", "plain", "x").startswith(b"-NESTGUARD cache down"), PATIENCE,
                   guard.log)
        wait_until(lambda: "out of step" in guard.log(lines=1000), PATIENCE, guard.log)
        assert wire.ask("SET", "plain", "x").startswith(b"-NESTGUARD cache down")
        played.answer = lambda words: None
        wait_until(lambda: wire.ask("SET", "plain", "x") == b"+OK\r\n", PATIENCE, guard.log)
