"""Large values pass through in pieces, in either direction, whatever is slow."""
import contextlib
import pathlib
import re
import subprocess
import threading
import time

import pytest

from built import SANITIZED
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

MEGABYTE = 1 << 20
SIZE = 64 * MEGABYTE
BOUND = 24 * MEGABYTE  # far from the value's size


def peak(guard):
    text = pathlib.Path(f"/proc/{guard.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", text).group(1)) * 1024


@pytest.fixture
def guard(start_guard, items):
    return start_guard(items(), workers=1)


@pytest.fixture(scope="module")
def value():
    piece = bytes(range(256)) * (MEGABYTE // 256)
    return b"".join(piece[n:] + piece[:n] for n in range(SIZE // MEGABYTE))


@pytest.fixture
def bounded(guard):
    """What the test does may not need much memory. (A sanitizer keeps what was freed.)"""
    before = peak(guard)
    yield
    grown = peak(guard) - before
    assert SANITIZED or grown < BOUND, f"{grown / MEGABYTE:.0f} MB more"


def send_in_background(wire, data):
    thread = threading.Thread(target=wire.send, args=(data,))
    thread.start()
    return thread


def test_a_large_value_is_written_and_read(guard, cache, value, bounded):
    with guard.wire() as wire:
        wire.send(command("SET", "before", "x") + command("SET", "plain", value)
                  + command("GET", "item:101") + command("STRLEN", "plain"))
        assert wire.read_replies(4) == b"+OK\r\n+OK\r\n" + bulk(None) + b":%d\r\n" % SIZE
        assert wire.ask("GET", "plain") == bulk(value)


def test_a_large_value_is_read_over_a_shared_connection(guard, cache, value):
    """Which a reader may not hold up for long: what he is slow to take is kept for him."""
    cache.client().set("plain", value)
    with guard.wire() as wire:
        wire.send(command("GET", "plain") + command("GET", "item:1") + command("ECHO", "x"))
        assert wire.read_reply() == bulk(value)
        assert wire.read_replies(2) == bulk("payload 1") + bulk("x")


def test_several_large_arguments_of_one_command(guard, cache, value):
    parts = [value[:3 * MEGABYTE], b"", b"x", value[:2 * MEGABYTE]]
    with guard.wire() as wire:
        wire.send(command("RPUSH", "list", *parts))
        assert wire.read_reply() == b":4\r\n"
        wire.send(command("SET", "item:1", parts[0], "EX", "100"))
        assert wire.read_reply() == b"+OK\r\n"
        assert wire.ask("GET", "item:1") == bulk(parts[0])
    assert cache.client().lrange("list", 0, -1) == parts


def test_what_must_be_gathered_goes_over_a_connection_of_its_own(guard, cache, value):
    """Others would wait behind it on a shared one."""
    parts = [value[:3 * MEGABYTE], value[:2 * MEGABYTE]]
    with guard.wire() as wire:
        wire.send(command("SET", "before", "x")
                  + command("MSET", "item:1", parts[0], "before", "y", "plain", parts[1])
                  + command("GET", "before") + command("STRLEN", "item:1"))
        assert wire.read_replies(4) == b"+OK\r\n+OK\r\n" + bulk("y") + b":%d\r\n" % len(parts[0])
        assert guard.status()["own_connections"] == 1
        assert wire.ask("EVAL", "return #ARGV[1]", "1", "item:2", value) == b":%d\r\n" % SIZE
    assert cache.client().mget("item:1", "plain") == parts


@pytest.mark.parametrize("first", [10, 20, 40])
def test_many_arguments_are_passed_on_however_the_first_bytes_come(start_guard, items, cache,
                                                                   first):
    """All of them would be more than clients may have."""
    guard = start_guard(items(), workers=1, max_client_memory="24mb")
    count = 200_000
    head = b"*%d\r\n" % (count + 2) + bulk("RPUSH") + bulk("plain")
    with guard.wire() as wire:
        wire.send(head[:first])
        assert guard.redis().ping()  # by then it has been looked at
        wire.send(head[first:])
        for _ in range(200):
            wire.send(bulk("x" * 300) * (count // 200))
        assert wire.read_reply() == b":%d\r\n" % count
    assert guard.total("nestguard_clients_cut_total") == 0


def test_a_large_write_is_a_hint_too(guard, value):
    with guard.wire() as wire:
        assert wire.ask("GET", "item:999") == bulk(None)
        wire.send(command("SET", "item:999", value[:5 * MEGABYTE]))
        assert wire.read_reply() == b"+OK\r\n"
        assert wire.ask("STRLEN", "item:999") == b":%d\r\n" % (5 * MEGABYTE)


def test_half_a_command_is_none(guard, cache, value):
    sent = command("SET", "plain", value[:8 * MEGABYTE])
    with guard.wire() as wire:
        wire.send(sent[:5 * MEGABYTE])
    with guard.wire() as wire:
        wire.send(sent[:5 * MEGABYTE])
        wait_until(lambda: guard.status()["own_connections"] >= 1, PATIENCE, "the upload")
        assert guard.redis().get("item:1") == b"payload 1"
    wait_until(lambda: guard.status()["own_connections"] == 0, PATIENCE, "its end")
    assert cache.client().get("plain") is None


def test_a_slow_cache_makes_the_client_wait(guard, cache, value, bounded):
    with guard.wire() as wire:
        assert wire.ask("PING") == b"+PONG\r\n"
        cache.pause()
        sender = send_in_background(wire, command("SET", "plain", value))
        sender.join(1)
        assert sender.is_alive(), "somebody has taken all of it"
        cache.resume()
        assert wire.read_reply() == b"+OK\r\n"
        sender.join(PATIENCE)
    assert cache.client().strlen("plain") == SIZE


def test_a_slow_reader_holds_up_others_for_a_moment_only(start_guard, items, cache, value):
    guard = start_guard(items(), workers=1, cache_connections=1)
    cache.client().set("plain", value)
    with guard.wire() as slow, guard.wire() as other:
        slow.send(command("GET", "plain") + command("ECHO", "end"))
        got = slow.read_bytes(100_000)
        for _ in range(5):
            assert other.ask("GET", "item:101") == bulk(None)
            assert other.ask("ECHO", "x") == bulk("x")
        got += slow.read_bytes(len(bulk(value)) - len(got))
        assert got == bulk(value)
        assert slow.read_reply() == bulk("end")


def must_be_a_tenth_of_each_second(guard, seconds):
    """What shared connections waited for slow readers by the guard's own clock, a timer's delay each
    time let in: what else takes time on a busy machine is no matter."""
    stalled = guard.total("nestguard_shared_connections_stalled_seconds_total")
    assert 0 < stalled < 0.15 * (seconds + 1)


def test_many_slow_readers_hold_up_others_no_longer_than_one(start_guard, items, cache):
    """A tenth of each second for all of them together; then they have connections of their own."""
    guard = start_guard(items(), workers=1, cache_connections=1)
    cache.client().set("plain", b"x" * 16 * MEGABYTE)
    with contextlib.ExitStack() as open_wires:
        other = open_wires.enter_context(guard.wire())
        assert other.ask("GET", "item:1") == bulk("payload 1")
        began, newcomers = time.monotonic(), 0
        while newcomers < 12 and not guard.status()["own_connections"]:
            slow = open_wires.enter_context(guard.wire())
            slow.send(command("GET", "plain") + command("GET", "plain"))
            slow.read_bytes(1000)  # it has begun
            assert other.ask("GET", "item:1") == bulk("payload 1")
            newcomers += 1
        took = time.monotonic() - began
        must_be_a_tenth_of_each_second(guard, took)
        if took < newcomers * 0.2:  # else they may come too seldom to use up what all have
            wait_until(lambda: guard.status()["own_connections"] >= 1, PATIENCE, "one of its own")


def test_newcomers_who_never_read_hold_up_a_tenth_of_a_second_in_all(start_guard, items, cache):
    """Seven a second, each with 16 MB: what shared connections wait for them is bounded whoever they
    are, and the lookups of others meanwhile are served."""
    guard = start_guard(items(), workers=1, cache_connections=1)
    cache.client().set("plain", b"x" * 8 * MEGABYTE)
    with contextlib.ExitStack() as open_wires:
        other = open_wires.enter_context(guard.wire())
        assert other.ask("GET", "item:1") == bulk("payload 1")
        began, newcomers = time.monotonic(), 0
        while time.monotonic() - began < 4:
            if newcomers <= 7 * (time.monotonic() - began):
                slow = open_wires.enter_context(guard.wire())
                slow.send(command("GET", "plain") + command("GET", "plain"))
                newcomers += 1
            assert other.ask("GET", "item:1") == bulk("payload 1")
        must_be_a_tenth_of_each_second(guard, time.monotonic() - began)
    assert guard.redis().get("item:2") == b"payload 2"


def test_a_reader_that_leaves_in_the_middle_harms_nobody(guard, cache, value):
    cache.client().set("plain", value)
    for _ in range(3):
        with guard.wire() as wire:
            wire.send(command("GET", "plain"))
            wire.read_bytes(100_000)
    with guard.wire() as wire:
        assert wire.ask("GET", "item:1") == bulk("payload 1")
        assert wire.ask("ECHO", "x") == bulk("x")


def test_a_cache_lost_in_the_middle_ends_its_reader(guard, cache, value):
    cache.client().set("plain", value)
    with guard.wire() as wire:
        wire.send(command("GET", "plain"))
        wire.read_bytes(100_000)
        cache.kill()
        assert len(wire.read_until_closed()) < SIZE


def test_a_large_reply_waits_for_its_place(guard, database, cache, value):
    cache.client().set("plain", value[:9 * MEGABYTE])
    with guard.wire() as wire:
        with database.locked():
            wire.send(command("GET", "item:3") + command("GET", "plain") + command("ECHO", "x"))
            wait_until(lambda: guard.counter("nestguard_cache_misses_total"), PATIENCE, "the load")
        assert wire.read_replies(3) == bulk("payload 3") + bulk(value[:9 * MEGABYTE]) + bulk("x")


def test_limits_hold_for_what_is_passed_on(start_guard, items, value):
    guard = start_guard(items(), max_bulk="3mb", max_command="4mb")
    for words in (["SET", "k", value[:3 * MEGABYTE + 1]],
                  ["RPUSH", "k", value[:2 * MEGABYTE], value[:3 * MEGABYTE]]):
        with guard.wire() as wire:
            try:
                wire.send(command(*words))
                assert not wire.read_until_closed().startswith(b":")
            except OSError:
                pass
    assert guard.redis().exists("k") == 0


def test_who_waits_behind_a_large_write_for_a_moment_goes_on(start_guard, items):
    """The shared connection is full for a part of a turn: its input waits, and nothing more of it comes."""
    guard = start_guard(items(), workers=1, cache_connections=1, max_client_memory="2gb")
    words = []
    for number in range(300):
        words += [f"other:{number:06d}", "v" * ((16 * MEGABYTE + 60_000) // 300 - 28)]
    write = command("MSET", *words)
    flood = ["redis-benchmark", "-p", guard.port, "-c", 1, "-P", 1500, "-n", 2_000_000_000, "-q", "GET", "item:nothere"]
    with guard.wire() as writer, subprocess.Popen([str(word) for word in flood], stdout=subprocess.DEVNULL) as reader:
        try:
            for _ in range(60):
                writer.send(write)
                assert writer.read_reply() == b"+OK\r\n"
                before = guard.total("nestguard_rejected_total")
                wait_until(lambda: guard.total("nestguard_rejected_total") > before, PATIENCE, guard.status)
        finally:
            reader.kill()
