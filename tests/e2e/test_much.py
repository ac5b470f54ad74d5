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


def connection_of(cache, word):
    """Which one has last had this command."""
    found = [client["addr"] for client in cache.client().client_list() if client["cmd"] == word]
    assert len(found) == 1, found
    return found[0]


def are_apart(guard, cache, much, other, source=MUCH):
    take_much(guard, source)
    assert much.ask("STRLEN", "large") == b":%d\r\n" % (4 * MEGABYTE)
    assert other.ask("TTL", "large") == b":-1\r\n"
    found = [client["addr"] for client in cache.client().client_list() if client["cmd"] in ("strlen", "ttl")]
    return len(found) == 2


def begin(start_guard, items, cache, **settings):
    cache.client().set("large", b"x" * 4 * MEGABYTE)
    return start_guard(items(), workers=1, cache_connections=1, **settings)


def test_others_do_not_share_its_connection(start_guard, items, cache):
    guard = begin(start_guard, items, cache)
    with guard.wire() as other, guard.wire(source=MUCH) as much:
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")
        there = connection_of(cache, "strlen")
        with guard.wire(source=MUCH) as newcomer, guard.wire() as another:
            assert newcomer.ask("STRLEN", "large") == b":%d\r\n" % (4 * MEGABYTE)
            assert connection_of(cache, "strlen") == there
            assert another.ask("GET", "item:101") == bulk(None)
            assert another.ask("GET", "item:1") == bulk("payload 1")


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
        cache.client().client_kill(connection_of(cache, "strlen"))
        wait_until(lambda: much.ask("ECHO", "back") == bulk("back"), PATIENCE, "a connection")
        assert other.ask("GET", "item:1") == bulk("payload 1")
        wait_until(lambda: are_apart(guard, cache, much, other), PATIENCE, "a connection apart")
