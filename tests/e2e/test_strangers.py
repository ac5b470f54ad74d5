"""Who has not shown yet who he is keeps nobody else out, and who guesses waits."""
import contextlib
import socket
import time

import pytest

from following import paused
from servers import PATIENCE, Redis
from waiting import wait_until
from wire import Wire, command


def is_closed(one):
    """Nothing is read from it that was not sent before its end."""
    with contextlib.suppress(BlockingIOError):
        one.setblocking(False)
        try:
            return one.recv(1) == b""
        except ConnectionError:
            return True
    return False


@contextlib.contextmanager
def strangers(guard, count, host="127.0.0.1"):
    sockets = []
    try:
        for _ in range(count):
            sockets.append(socket.create_connection(("127.0.0.1", guard.port), source_address=(host, 0)))
        yield sockets
    finally:
        for one in sockets:
            one.close()


@pytest.fixture
def locked(start_guard, items):
    """A guard with a password."""
    return lambda **settings: start_guard(items(), password="secret", workers=1, **settings)


class LockedRedis(Redis):
    def command(self):
        return super().command() + ["--requirepass", "secret"]

    def is_ready(self):
        try:
            with Wire(self.port, PATIENCE) as wire:
                return wire.ask("AUTH", "secret") == b"+OK\r\n"
        except ConnectionError:
            return False


@pytest.fixture(scope="module")
def locked_redis():
    server = LockedRedis().start()
    yield server
    server.stop()
    server.remove()


def all_said(port, data):
    """Every reply to these bytes, behind which nothing comes."""
    with Wire(port, PATIENCE) as wire:
        with contextlib.suppress(OSError):  # it may have hung up by now
            wire.send(data)
            wire.socket.shutdown(socket.SHUT_WR)
        return wire.read_until_closed()


def some(name, count):
    return command(name, *(f"word{n}" for n in range(count - 1)))


LONG = "x" * (16 << 10)
NOT_FOR_STRANGERS = [
    *(some(name, count) for name in ("GET", "MGET", "SET", "EXEC", "exec", "NOSUCH", "SELECT", "RESET", "AUTH")
      for count in (1, 2, 3, 4, 9, 10, 11, 40)),
    *(some(name, 1) for name in ("PING", "MULTI", "DISCARD", "INFO", "COMMAND", "CLIENT", "POST", "host:")),
    command("GET", LONG), command(LONG), b"*2\r\n$3\r\nGET\r\n$16385\r\n",
    command("MGET", *9 * [LONG]), command("MGET", *10 * [LONG]),
    command("NOSUCH", "'", "x" * 127, "y"), command("x" * 200, "y" * 200, "z"),
    command("NOSUCH", "x" * 60, "y" * 60, "z" * 60, "q"), command("no\r\nsuch", "a\rb", "c\0d"),
    command(""), command("AUTH\0x", "y"), command("CLIENT", "ID"), command("CONFIG", "GET", "x"),
    b"*11\r\n", b"*2147483647\r\n", b"*2147483648\r\n", b"*-1\r\n", b"*1\r\n$-1\r\n",
    b"*1\r\n$16385\r\n", b"*1\r\n$536870912\r\n", b"*1\r\n$536870913\r\n",
    b"GET item:1\r\n", b"EXEC\r\n", b"NOSUCH x\r\n", b"SET" + 400 * b" x" + b"\r\n", b"NOSUCH" + 20 * b" x" + b"\r\n",
]


def test_strangers_are_told_what_redis_tells_them(locked, locked_redis):
    port = locked().port
    for said in NOT_FOR_STRANGERS:
        for data in (said, command("PING") + said + command("GET", "item:1"), said + said,
                     command("AUTH", "secret") + command("RESET") + said):
            got, wanted = all_said(port, data), all_said(locked_redis.port, data)
            assert got == wanted, (data[:100], got[:200], wanted[:200])


def test_what_modules_alone_have_needs_a_password_first(locked):
    """Nobody here knows whether the cache has it."""
    assert all_said(locked().port, command("JSON.GET", "x")) == b"-NOAUTH Authentication required.\r\n"


def test_strangers_have_places_of_their_own(locked):
    guard = locked(max_strangers=10, max_clients=100, authentication_timeout="1h")
    client = guard.redis()
    assert client.get("item:1") == b"payload 1"
    with strangers(guard, 60) as sockets:
        wait_until(lambda: sum(map(is_closed, sockets)) >= 50, PATIENCE, "the end of 50 of them")
        assert guard.status()["clients"] <= 11
        assert client.get("item:2") == b"payload 2"
        assert guard.redis().get("item:3") == b"payload 3"
    assert guard.total("nestguard_strangers_dropped_total") >= 50
    assert guard.log_path.read_text().count("shown who they are") < 10


def test_a_crowd_of_one_host_pushes_out_its_own(locked):
    """Who takes his time to say the password, from elsewhere, has it."""
    guard = locked(max_strangers=10, authentication_timeout="1h")
    with guard.wire() as slow, strangers(guard, 60, "127.0.0.2") as sockets:
        wait_until(lambda: sum(map(is_closed, sockets)) >= 50, PATIENCE, "the end of 50 of them")
        assert slow.ask("AUTH", "secret") == b"+OK\r\n"


def test_a_stranger_has_so_long_and_no_longer(locked):
    guard = locked(authentication_timeout="200ms")
    client = guard.redis(single_connection_client=True)
    assert client.get("item:1") == b"payload 1"
    with strangers(guard, 3) as sockets:
        wait_until(lambda: all(map(is_closed, sockets)), PATIENCE, "their end")
    assert client.get("item:2") == b"payload 2"
    assert guard.total("nestguard_connections_total") == 4


def test_who_guesses_waits_longer_each_time_and_is_seen(locked):
    guard = locked()
    with guard.wire() as wire, guard.wire() as other:
        began = time.monotonic()
        for number in range(3):
            assert wire.ask("AUTH", f"guess{number}").startswith(b"-WRONGPASS")
        assert time.monotonic() - began >= 0.25 + 0.5 + 0.75
        assert other.ask("HELLO", "3", "AUTH", "default", "guess").startswith(b"-WRONGPASS")
        assert wire.ask("AUTH", "secret") == b"+OK\r\n"
        assert wire.ask("GET", "item:1") == b"$9\r\npayload 1\r\n"
    assert guard.total("nestguard_authentication_failures_total") == 4
    assert 1 <= guard.log_path.read_text().count("failed authentication: 127.0.0.1:") <= 4


def test_hundreds_whose_wait_is_over_at_once_keep_nobody_waiting(locked):
    """Counted in what the cache was asked before him who asks when all of them are due."""
    many = 300
    guard = locked(cache_connections=1)
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(guard.wire())
        assert client.ask("AUTH", "secret") == b"+OK\r\n"
        wires = [stack.enter_context(guard.wire()) for _ in range(many)]
        for wire in wires:
            wire.send(2 * command("AUTH", "guess") + command("AUTH", "secret") + command("INCR", "turns"))
        wait_until(lambda: guard.total("nestguard_authentication_failures_total") == 2 * many, PATIENCE,
                   "their second guesses")
        with paused(guard.process.pid):
            time.sleep(1)  # not a wait for anything: the time for which the answers are held back
            client.send(command("INCR", "turns"))
        assert int(client.read_reply()[1:]) < many // 2
        for wire in wires:
            assert wire.read_replies(4).count(b"WRONGPASS") == 2


def test_a_user_that_the_cache_refuses_is_a_guess_too(locked):
    guard = locked()
    with guard.wire() as wire:
        assert wire.ask("AUTH", "nobody", "guess").startswith(b"-WRONGPASS")
        assert wire.ask("PING").startswith(b"-NOAUTH")
    assert guard.total("nestguard_authentication_failures_total") == 1


def test_connections_to_the_cache_that_guesses_took_are_there_for_others(locked):
    """The cache itself has to say whether there is such a user, over a connection of the stranger's own."""
    guard = locked(own_connections=2)
    with contextlib.ExitStack() as stack:
        for number in range(5):
            wire = stack.enter_context(guard.wire())
            assert wire.ask("AUTH", f"nobody{number}", "guess").startswith(b"-WRONGPASS")
        assert guard.total("nestguard_own_connections") <= 2
        for wire in (stack.enter_context(guard.wire()) for _ in range(2)):
            assert wire.ask("AUTH", "secret") == wire.ask("MULTI") == b"+OK\r\n"
            assert wire.ask("EXEC") == b"*0\r\n"


def test_guesses_that_are_held_back_keep_nobody_from_connections_to_the_cache(locked):
    guard = locked(own_connections=3)
    with contextlib.ExitStack() as stack:
        guessers = [stack.enter_context(guard.wire()) for _ in range(12)]
        for guesser in guessers:
            guesser.send(8 * command("AUTH", "nobody", "guess"))
        wait_until(lambda: guard.total("nestguard_authentication_failures_total") >= 3, PATIENCE, "guesses")
        for _ in range(10):
            with guard.wire() as wire:
                assert wire.ask("AUTH", "secret") == wire.ask("MULTI") == b"+OK\r\n"
                assert wire.ask("EXEC") == b"*0\r\n"


def test_strangers_whom_the_cache_lets_wait_leave_connections_to_others(locked, cache):
    guard = locked(own_connections=4)
    with contextlib.ExitStack() as stack:
        guessers = [stack.enter_context(guard.wire()) for _ in range(6)]
        wire = stack.enter_context(guard.wire())
        with paused(cache.process.pid):
            for guesser in guessers:
                guesser.send(command("AUTH", "nobody", "guess"))
            assert wire.ask("AUTH", "secret") == b"+OK\r\n"
            wire.send(command("MULTI") + command("EXEC"))
        assert wire.read_replies(2) == b"+OK\r\n*0\r\n"
        assert any(guesser.read_reply().startswith(b"-NESTGUARD busy") for guesser in guessers)


def test_who_knows_the_password_is_no_stranger_while_the_cache_is_waited_for(locked, cache):
    guard = locked(max_strangers=3)
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(guard.wire()) for _ in range(3)]
        with paused(cache.process.pid):
            for _ in range(3):
                for wire in wires[-3:]:
                    wire.send(command("HELLO", 3, "AUTH", "default", "secret"))
                wait_until(lambda: guard.total("nestguard_commands_total") >= len(wires), PATIENCE,
                           "that they have asked")
                wires += [stack.enter_context(guard.wire()) for _ in range(3)]
        assert all(wire.read_reply().startswith(b"%") for wire in wires[:9])
    assert guard.total("nestguard_strangers_dropped_total") == 0


def test_who_leaves_before_the_answer_leaves_nothing_behind(locked):
    guard = locked()
    for _ in range(20):
        with guard.wire() as wire:
            wire.send(b"AUTH guess\r\n")
    wait_until(lambda: guard.status()["clients"] == 0, PATIENCE, "their end")


def test_idle_clients_are_closed_when_that_is_wanted(start_guard, items):
    guard = start_guard(items(), client_idle_timeout="300ms")
    with guard.wire() as idle, guard.wire() as subscriber, guard.wire() as waiter:
        assert subscriber.ask("SUBSCRIBE", "news").startswith(b"*3")
        waiter.send(b"BLPOP queue 0\r\n")
        assert idle.ask("PING") == b"+PONG\r\n"
        assert idle.read_until_closed() == b""
        client = guard.redis()
        client.publish("news", "x")
        assert b"news" in subscriber.read_reply()
        client.rpush("queue", "job")
        assert b"job" in waiter.read_reply()
    assert guard.total("nestguard_clients_idle_total") >= 1
