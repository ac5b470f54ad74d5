"""One ceiling for the memory of all clients: who takes most goes, and what a peak needed is given
back."""
import contextlib
import os
import signal

import pytest

from built import SANITIZED
from following import follow  # follow is a fixture
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

MEGABYTE = 1 << 20


def is_closed(wire):
    wire.socket.settimeout(PATIENCE)
    try:
        return wire.socket.recv(1) == b""
    except ConnectionResetError:
        return True


def test_the_heaviest_client_is_cut_off_and_no_other(start_guard, items):
    guard = start_guard(items(), max_client_memory="24mb", workers=2)
    with contextlib.ExitStack() as wires:
        others = [wires.enter_context(guard.wire()) for _ in range(8)]
        heavy = wires.enter_context(guard.wire())
        for other in others:
            keys = [f"item:{n}" for n in range(1, 70_000)]
            other.send(command("MGET", *keys)[:1_000_000])  # not its end
        with contextlib.suppress(OSError):
            heavy.send(command("MGET", *["x" * 1000] * 50_000)[:48 * MEGABYTE])
        assert is_closed(heavy)
        assert guard.total("nestguard_clients_cut_total") == 1
        for other in others:
            other.send(command("MGET", *keys)[1_000_000:] + command("PING"))
            assert other.read_replies(2).endswith(b"+PONG\r\n")
    assert guard.total("nestguard_clients_cut_total") == 1
    wait_until(lambda: guard.total("nestguard_client_memory_bytes") < MEGABYTE, PATIENCE,
               "memory to be free")
    assert guard.status()["limits"]["client_memory"] == 24 * MEGABYTE


def test_a_host_of_many_clients_is_cut_down_before_one_large_client(start_guard, items):
    guard = start_guard(items(), max_client_memory="64mb", workers=2)
    large = command("MGET", *[f"item:{n}" for n in range(1, 200_000)])
    with contextlib.ExitStack() as wires:
        ordinary = wires.enter_context(guard.wire())
        ordinary.send(large[:-100])  # more than any of the others
        for _ in range(40):
            many = wires.enter_context(guard.wire("127.0.0.2"))
            with contextlib.suppress(OSError):
                many.send(large[:2 * MEGABYTE])
        wait_until(lambda: guard.total("nestguard_clients_cut_total") > 0, PATIENCE, guard.log)
        ordinary.send(large[-100:] + command("PING"))
        assert ordinary.read_replies(2).endswith(b"+PONG\r\n")


def test_by_default_clients_have_a_quarter_of_the_machine(start_guard, items):
    guard = start_guard(items())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = guard.status()["limits"]["client_memory"]
    assert MEGABYTE < limit <= memory // 4
    unit, size = ("GiB", 1 << 30) if limit >= 1 << 30 else ("MiB", 1 << 20)
    assert f"{limit / size:.1f} {unit} of memory for clients" in guard.log()


@pytest.mark.parametrize("name", ["MGET", "EXISTS"])
def test_a_million_keys_take_little_and_give_it_back(start_guard, items, name):
    answer = b":0\r\n" if name == "EXISTS" else b"*1000000\r\n" + bulk(None) * 1_000_000
    guard = start_guard(items(), workers=1)
    before = guard.resident_bytes()
    with guard.wire() as wire:
        wire.send(command(name, *[f"key:{n}" for n in range(1_000_000 - 1)], "item:1000"))
        same = wire.read_replies(1) == answer
        assert same  # both are too large to be shown
    peak = guard.peak_bytes() - before
    assert SANITIZED or peak < 300 * MEGABYTE, f"{peak / MEGABYTE:.0f} MB"
    if not SANITIZED:
        wait_until(lambda: guard.resident_bytes() - before < 16 * MEGABYTE, PATIENCE,
                   lambda: f"{(guard.resident_bytes() - before) / MEGABYTE:.0f} MB to be given back")


@pytest.mark.skipif(SANITIZED, reason="its memory is the sanitizer's")
def test_clients_that_come_and_go_take_no_more_than_those_that_stay(start_guard, items, cache):
    """While the cache does not answer, which each waits for."""
    guard = start_guard(items(), max_client_memory="64mb", workers=1)
    before = guard.resident_bytes()
    lookup = command("MGET", "item:100", *[f"item:{n}" for n in range(10 ** 8, 10 ** 8 + 10 ** 5)])
    cache.pause()
    try:
        for n in range(1, 25):
            with guard.wire() as wire:
                wire.send(lookup)
                wait_until(lambda n=n: guard.total("nestguard_rejected_total") >= n * 10 ** 5,
                           PATIENCE, guard.log)
        assert guard.peak_bytes() - before < 100 * MEGABYTE
    finally:
        cache.resume()
    wait_until(lambda: guard.total("nestguard_client_memory_bytes") < MEGABYTE, PATIENCE,
               "memory to be free")


@pytest.mark.skipif(SANITIZED, reason="its memory is the sanitizer's")
def test_who_takes_much_leaves_before_those_who_take_little(start_guard, items, cache):
    """What a client takes does not count any more when it goes, so it must not stay while thousands do
    that at once."""
    guard = start_guard(items(), workers=1)
    cache.client().set("large", b"x" * (8 * MEGABYTE))
    before = guard.resident_bytes()

    def is_freed():
        return guard.resident_bytes() - before < 64 * MEGABYTE

    with contextlib.ExitStack() as wires:
        crowd = [guard.wire() for _ in range(3000)]
        heavy = [guard.wire() for _ in range(20)]
        for wire in crowd + heavy:
            wires.callback(wire.close)
        for wire in heavy:
            wire.send(command("GET", "large") * 2)
        wait_until(lambda: guard.total("nestguard_client_memory_bytes") > 250 * MEGABYTE, PATIENCE,
                   "replies that nobody reads")
        assert not is_freed()
        guard.process.send_signal(signal.SIGSTOP)
        for wire in heavy + crowd:
            wire.close()
        guard.process.send_signal(signal.SIGCONT)
        wait_until(is_freed, PATIENCE, "memory to be free")
        assert guard.total("nestguard_clients") > 100


LISTED = command("LRANGE", "list", 0, -1)
UNREAD = {
    "MGET": command("MGET", "item:no", *["plain"] * 12),
    "EVAL": command("EVAL", "return redis.call('LRANGE', KEYS[1], 0, -1)", "1", "list"),
    "EXEC": command("MULTI") + LISTED + command("EXEC"),
}


@pytest.mark.skipif(SANITIZED, reason="its memory is the sanitizer's")
@pytest.mark.parametrize("name", UNREAD)
def test_copies_of_replies_that_nobody_reads_stay_within_the_ceiling(start_guard, items, cache,
                                                                     name):
    guard = start_guard(items(), max_client_memory="128mb", workers=1, cache_timeout="30s")
    cache.client().set("plain", b"x" * (4 * MEGABYTE))
    cache.client().rpush("list", *[b"y" * MEGABYTE] * 48)
    before = guard.resident_bytes()

    def is_decided(others):
        """A reply to EXEC must be there whole: with its copies it cuts its own client off."""
        cut = guard.total("nestguard_clients_cut_total")
        if name == "EXEC":
            return cut == others + 1
        return guard.total("nestguard_client_memory_bytes") > 40 * MEGABYTE and cut >= others - 1

    with contextlib.ExitStack() as wires:
        for turn in range(6):
            wires.enter_context(guard.wire()).send(UNREAD[name])
            wait_until(lambda: is_decided(turn), PATIENCE,
                       "its reply, or the end of one who has it")
        with guard.wire() as other:
            assert other.ask("GET", "item:1") == bulk("payload 1")
        peak = guard.peak_bytes() - before
    assert peak < (128 + 24) * MEGABYTE, f"{peak / MEGABYTE:.0f} MB"


@pytest.mark.parametrize("sent, before", [
    (command("MGET", *["plain"] * 40, "item:2"), b""),
    (command("EVAL", "return redis.call('LRANGE', KEYS[1], 0, -1)", "1", "list"), b""),
    (command("MULTI") + LISTED + command("EXEC"), b"+OK\r\n+QUEUED\r\n"),
], ids=["MGET", "EVAL", "EXEC"])
def test_a_reply_that_is_too_much_cuts_its_client_off_while_it_arrives(start_guard, items, cache,
                                                                       sent, before):
    """Also of a kind that must be there whole; and those who share the connection get theirs."""
    guard = start_guard(items(), max_client_memory="24mb", workers=1, cache_connections=1,
                        cache_timeout="30s")
    cache.client().set("plain", b"x" * (4 * MEGABYTE))
    cache.client().rpush("list", *[b"y" * MEGABYTE] * 150)
    with guard.wire() as greedy, guard.wire() as other:
        assert other.ask("GET", "item:1") == bulk("payload 1")
        at_first = guard.peak_bytes()
        greedy.send(sent)
        assert greedy.read_bytes(len(before)) == before
        other.send(command("ECHO", "first") + command("GET", "item:1")
                   + command("MGET", "no", "item:2"))
        assert other.read_replies(2) == bulk("first") + bulk("payload 1")
        assert other.read_reply() == b"*2\r\n" + bulk(None) + bulk("payload 2")
        assert is_closed(greedy)
        grown = guard.peak_bytes() - at_first
    assert grown < 80 * MEGABYTE, f"{grown / MEGABYTE:.0f} MB"
    assert guard.total("nestguard_clients_cut_total") == 1
    assert guard.total("nestguard_upstream_failures_total") == 0


@pytest.mark.skipif(SANITIZED, reason="memory is the sanitizer's")
@pytest.mark.parametrize("own", [True, False], ids=["own connection", "shared"])
def test_what_arrives_behind_a_reply_that_is_late_counts_as_it_comes(follow, items, cache, database,
                                                                     own):
    guard = follow(items(), max_client_memory="64mb", workers=1, cache_timeout="30s")
    cache.client().set("large", b"x" * (40 * MEGABYTE))
    before = guard.resident_bytes()
    with database.locked(), contextlib.ExitStack() as wires:
        for _ in range(8):
            wire = wires.enter_context(guard.wire())
            if own:
                assert wire.ask("WATCH", "w") == b"+OK\r\n"
            wire.send(command("GET", "item:1") + command("GET", "large"))
        wait_until(lambda: guard.total("nestguard_clients_cut_total") >= 6, PATIENCE,
                   "the end of all but one or two")
        peak = guard.peak_bytes() - before
    assert peak < (64 + 64) * MEGABYTE, f"{peak / MEGABYTE:.0f} MB"


def test_what_hints_of_large_keys_took_is_given_back(follow, items):
    guard = follow(items(), workers=2, hint_ttl="2s", cache_timeout="30s")
    before = guard.resident_bytes()
    for turn in range(3):
        with guard.wire() as wire:
            keys = [f"item:{turn}{n:04}" + "9" * 60_000 for n in range(1000)]
            assert wire.ask("EVAL", "return 1", "1000", *keys) == b":1\r\n"
    assert guard.peak_bytes() - before > 100 * MEGABYTE
    wait_until(lambda: guard.status()["entries"] == 0, PATIENCE, "the hints' end")
    if not SANITIZED:
        wait_until(lambda: guard.resident_bytes() - before < 32 * MEGABYTE, PATIENCE,
                   lambda: f"{(guard.resident_bytes() - before) / MEGABYTE:.0f} MB to be given back")


@pytest.mark.skipif(SANITIZED, reason="its memory is the sanitizer's")
def test_hints_of_large_keys_are_bounded_by_their_bytes(follow, items):
    """However many of them a script declares, over and over."""
    guard = follow(items(), workers=2, max_hints=100_000, hint_ttl="1h", cache_timeout="30s")
    before, answers = guard.resident_bytes(), []
    with guard.wire() as wire:
        for turn in range(60):
            keys = [f"item:{turn}{n:04}" + "9" * 60_000 for n in range(100)]
            answers.append(wire.ask("EVAL", "return 1", len(keys), *keys))
    refused = [answer for answer in answers if answer.startswith(b"-NESTGUARD busy")]
    assert answers[0] == b":1\r\n" and len(refused) > 20
    assert {*answers} <= {b":1\r\n", *refused}
    peak = guard.peak_bytes() - before
    assert peak < 100 * MEGABYTE, f"{peak / MEGABYTE:.0f} MB of {60 * 100 * 60_000 / MEGABYTE:.0f}"


def test_commands_keep_their_names_when_memory_was_given_back(start_guard, items):
    """A worker knows a command by how the last one like it began; what it keeps to see that is let go
    with the memory of a peak."""
    guard = start_guard(items(), workers=1)
    keys = command("MGET", *[f"key:{n}" for n in range(500_000)])

    def taken():
        return guard.total("nestguard_client_memory_bytes")

    with guard.wire() as wire:
        assert wire.ask("SET", "plain", "x") == b"+OK\r\n"
        with contextlib.ExitStack() as wires:
            for _ in range(14):
                wires.enter_context(guard.wire()).send(keys[:3 * MEGABYTE])
            wait_until(lambda: taken() > 40 * MEGABYTE, PATIENCE, "a peak")
        wait_until(lambda: taken() < MEGABYTE, PATIENCE, "its end")
        assert wire.ask("GET", "item:1") == bulk("payload 1")
        assert wire.ask("DEL", "plain") == b":1\r\n"
