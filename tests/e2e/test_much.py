"""Hosts that take large replies have a connection to the cache for that, beside those of the others."""
import random

from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

MEGABYTE = 1 << 20
MUCH = "127.0.0.2"


def take_much(guard, source=MUCH):
    """Asks, and leaves: so it comes as fast as the guard reads it, however slow this program is."""
    for _ in range(3):
        with guard.wire(source) as wire:
            wire.send(command("GET", "large") * 4)


def connections(cache, *wires):
    """Over which each of these asks the cache."""
    found = {}
    with cache.client().monitor() as monitor:
        for number, wire in enumerate(wires):
            assert wire.ask("STRLEN", f"probe {number}") == b":0\r\n"
        while len(found) < len(wires):
            seen = monitor.next_command()
            if seen["command"].startswith("STRLEN probe "):
                found[seen["command"]] = f"{seen['client_address']}:{seen['client_port']}"
    return [found[f"STRLEN probe {number}"] for number in range(len(wires))]


def are_apart(guard, cache, much, other, source=MUCH):
    take_much(guard, source)
    return len(set(connections(cache, much, other))) == 2


def begin(start_guard, items, cache):
    cache.client().set("large", b"x" * 4 * MEGABYTE)
    return start_guard(items(), workers=1, cache_connections=1)


def test_others_do_not_share_its_connection(start_guard, items, cache):
    guard = begin(start_guard, items, cache)
    with guard.wire() as other, guard.wire(source=MUCH) as much:
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")
        with guard.wire(source=MUCH) as newcomer, guard.wire() as another:
            apart, shared, *found = connections(cache, much, other, newcomer, another)
            assert apart != shared and found == [apart, shared]
            assert another.ask("GET", "item:101") == bulk(None)
            assert another.ask("GET", "item:1") == bulk("payload 1")


def test_who_only_asks_and_leaves_is_remembered(start_guard, items, cache):
    guard = begin(start_guard, items, cache)

    def newcomer_is_apart(other):
        take_much(guard)
        wait_until(lambda: guard.status()["clients"] == 1, PATIENCE, "that only the other is left")
        with guard.wire(MUCH) as newcomer:
            return len(set(connections(cache, newcomer, other))) == 2

    with guard.wire() as other:
        wait_until(lambda: newcomer_is_apart(other), PATIENCE, "a connection apart")


def test_who_is_alone_keeps_its_connection(start_guard, items, cache):
    guard = begin(start_guard, items, cache)
    with guard.wire() as other, guard.wire() as much:
        for _ in range(20):
            assert much.ask("GET", "item:1") == bulk("payload 1")
            assert not are_apart(guard, cache, much, other, "127.0.0.1")


def test_nothing_is_overtaken_on_the_way(start_guard, items, cache):
    """Writes and reads of a client that is led to the connection apart, and back where it is lost."""
    guard = begin(start_guard, items, cache)
    chance = random.Random(1)
    written = 0
    with guard.wire() as other, guard.wire(source=MUCH) as much:
        assert other.ask("PING") == b"+PONG\r\n"
        for turn in range(60):
            sent, wanted = [], []
            for _ in range(chance.randrange(1, 80)):
                if chance.random() < 0.02:
                    sent.append(command("GET", "large"))
                    wanted.append(bulk(b"x" * 4 * MEGABYTE))
                else:
                    written += 1
                    sent += [command("SET", "last", written), command("GET", "last"),
                             command("GET", "item:1"), command("GET", "item:101")]
                    wanted += [b"+OK\r\n", bulk(written), bulk("payload 1"), bulk(None)]
            much.send(b"".join(sent))
            for reply in wanted:
                assert much.read_reply() == reply, turn
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")


def test_one_that_is_lost_is_made_anew(start_guard, items, cache):
    guard = begin(start_guard, items, cache)
    with guard.wire() as other, guard.wire(source=MUCH) as much:
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")
        cache.client().client_kill(connections(cache, much)[0])
        wait_until(lambda: much.ask("ECHO", "back") == bulk("back"), PATIENCE, "a connection")
        assert other.ask("GET", "item:1") == bulk("payload 1")
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")
