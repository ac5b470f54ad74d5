"""Redis or PostgreSQL away, clients that do not read, and the guard's own end."""
import signal
import socket
import time

import pytest
import redis

from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

MISSING = "item:1000"


def error_of(client, *words):
    with pytest.raises(redis.ResponseError) as caught:
        client.execute_command(*words)
    return str(caught.value)


def connections(admin):
    """How many the cache has been asked for, welcome or not."""
    return admin.info("stats")["total_connections_received"]


def wait_for_miss(guard):
    wait_until(lambda: guard.counter("nestguard_cache_misses_total") >= 1, PATIENCE, "a miss")


def answers(client, key, value):
    try:
        return client.get(key) == value
    except redis.ResponseError:
        return False


def wait_for_fill(guard, cache, key, value):
    """The cache is used again when a lookup fills it, which the guard does once it has noticed."""

    def is_filled():
        assert guard.redis().get(key) == value
        return cache.client().exists(key)

    wait_until(is_filled, PATIENCE, f"{key} to be cached")


class TestCacheDown:
    def test_rows_come_from_the_database_and_the_cache_is_used_when_it_is_back(
            self, start_guard, database, cache, items):
        guard = start_guard(items())
        client = guard.redis()
        assert client.get("item:1") == b"payload 1"
        cache.kill()
        assert client.mget("item:1", "item:2", MISSING) == [b"payload 1", b"payload 2", None]
        assert client.get("item:3") == b"payload 3"
        assert client.get(MISSING) is None
        assert client.exists("item:4", MISSING) == 1
        assert error_of(client, "GET", "plain").startswith("NESTGUARD ")
        assert error_of(client, "SET", "plain", "x").startswith("NESTGUARD ")
        cache.start()
        wait_for_fill(guard, cache, "item:5", b"payload 5")
        wait_until(lambda: answers(client, "plain", None), PATIENCE, "unguarded keys to pass")
        assert client.set("plain", "x") and client.get("plain") == b"x"

    def test_its_budget_bounds_what_reaches_the_database(
            self, start_guard, database, cache, items, threads):
        guard = start_guard(items(), load_budget=2, load_timeout="60s")
        cache.kill()
        with database.locked():
            waiting = [threads.submit(guard.redis().get, f"item:{n}") for n in (1, 2)]
            wait_until(lambda: guard.counter("nestguard_cache_failures_total") >= 2, PATIENCE,
                       "two loads under way")
            waiting.append(threads.submit(guard.redis().get, "item:3"))
            wait_until(lambda: guard.total("nestguard_loads_queued") == 1, PATIENCE,
                       "a third that has no turn")
            assert guard.total("nestguard_loads_in_flight") == 2
        assert [one.result(PATIENCE) for one in waiting] == [
            b"payload 1", b"payload 2", b"payload 3"]

    def test_where_the_application_loads_it_learns_of_the_failure(
            self, start_guard, database, cache, items):
        guard = start_guard(items(on_miss="pass"))
        cache.kill()
        assert error_of(guard.redis(), "GET", "item:1").startswith("NESTGUARD ")
        assert guard.redis().get(MISSING) is None

    def test_it_may_be_down_when_the_guard_starts(self, start_guard, database, cache, items):
        cache.stop()
        guard = start_guard(items())
        assert guard.redis().mget("item:1", MISSING) == [b"payload 1", None]
        cache.start()
        wait_for_fill(guard, cache, "item:1", b"payload 1")

    def test_one_that_hangs_is_given_up(self, start_guard, database, cache, items):
        guard = start_guard(items(), cache_timeout="500ms")
        client = guard.redis()
        assert client.set("plain", "x")
        cache.pause()
        assert client.get(MISSING) is None
        assert client.get("item:1") == b"payload 1"
        assert error_of(client, "GET", "plain").startswith("NESTGUARD ")
        cache.resume()
        wait_until(lambda: answers(client, "plain", b"x"), PATIENCE, "the cache's return")

    def test_connections_that_it_drops_are_opened_again(self, start_guard, cache, items):
        guard = start_guard(items())
        client = guard.redis()
        for _ in range(5):
            cache.client().client_kill_filter(_type="normal", skipme=True)
            wait_until(lambda: answers(client, "item:1", b"payload 1"), PATIENCE, "a row")
            wait_until(lambda: answers(client, "plain", None), PATIENCE, "an unguarded key")

    def test_idle_connections_that_it_closes_are_no_failure(self, start_guard, cache, items):
        """Redis' own `timeout` does so; each lookup meets a connection that was just closed."""
        guard = start_guard(items(), workers=1, cache_connections=1)
        client = guard.redis()
        assert client.set("plain", "x")
        for _ in range(3):
            time.sleep(1.1)  # it counts as idle from here on
            cache.client().client_kill_filter(_type="normal", skipme=True)
            for _ in range(50):
                assert client.get("plain") == b"x"
        assert "worker 0: cache connection" not in guard.log()
        assert guard.total("nestguard_upstream_failures_total") == 0

    def test_the_log_names_each_new_reason(self, start_guard, cache, items):
        guard = start_guard(items(), workers=1, cache_connections=1)
        cache.client().config_set("requirepass", "sesame")
        admin = cache.client(password="sesame")
        try:
            admin.client_kill_filter(_type="normal", skipme=True)
            wait_until(lambda: "NOAUTH" in guard.log(), PATIENCE, guard.log)
            attempts = connections(admin)
            wait_until(lambda: connections(admin) > attempts + 2, PATIENCE, "more attempts")
            assert guard.log().count("NOAUTH") == 1, "the same reason is no news"
            cache.stop()
            wait_until(lambda: "refused" in guard.log().split("NOAUTH")[1], PATIENCE, guard.log)
        finally:
            cache.kill()
            cache.start()  # without the password
        wait_until(lambda: "is back" in guard.log(), PATIENCE, guard.log)


class TestDatabaseDown:
    def test_hits_and_rejects_go_on_and_loads_fail_fast(self, start_guard, database, cache, items):
        guard = start_guard(items(), load_timeout="20s")
        client = guard.redis()
        assert client.get("item:1") == b"payload 1"
        cache.wait_for_key("item:1")
        database.server.stop()
        for _ in range(3):
            assert client.mget("item:1", MISSING) == [b"payload 1", None]
            begin = time.monotonic()
            assert error_of(client, "GET", "item:2").startswith("NESTGUARD database down")
            assert time.monotonic() - begin < 5
        reply = guard.raw(command("MGET", "item:1", "item:2", MISSING), replies=1)
        assert reply.startswith(b"*3\r\n" + bulk("payload 1") + b"-NESTGUARD database down")
        assert reply.endswith(bulk(None))
        database.server.start()
        wait_until(lambda: answers(client, "item:2", b"payload 2"), PATIENCE, "loads to work again")

    def test_it_may_be_down_when_the_guard_starts(self, start_guard, database, cache, items):
        cache.client().set("item:1", "cached")
        database.server.stop()
        guard = start_guard(items(), ready=False)
        client = guard.redis()
        assert guard.control("GET", "/guardz").status_code == 503
        assert guard.keyspace()["state"] == "loading"
        assert client.get("item:1") == b"cached"
        assert error_of(client, "GET", "item:2").startswith("NESTGUARD database down")
        assert error_of(client, "GET", MISSING).startswith("NESTGUARD database down")
        database.server.start()
        guard.wait_guarding()
        assert client.mget("item:2", MISSING) == [b"payload 2", None]
        assert guard.keyspace()["state"] == "guarding"

    def test_a_crash_ends_loads_in_flight_with_an_error(
            self, start_guard, database, items, threads):
        guard = start_guard(items(), load_timeout="60s")
        with database.locked():
            waiting = threads.submit(error_of, guard.redis(), "GET", "item:1")
            wait_for_miss(guard)
            database.server.kill()
            assert waiting.result(PATIENCE).startswith("NESTGUARD ")
            database.server.start()
        wait_until(lambda: answers(guard.redis(), "item:1", b"payload 1"), PATIENCE, "recovery")

    def test_one_that_hangs_times_out_and_comes_back(self, start_guard, database, items):
        guard = start_guard(items(), load_timeout="300ms")
        database.server.pause()
        assert error_of(guard.redis(), "GET", "item:1").startswith("NESTGUARD ")
        assert guard.redis().get(MISSING) is None
        assert guard.is_alive()
        database.server.resume()
        wait_until(lambda: answers(guard.redis(), "item:1", b"payload 1"), PATIENCE, "recovery")

    def test_a_rebuild_that_fails_keeps_the_generation(self, start_guard, database, items):
        guard = start_guard(items())
        database.server.stop()
        assert guard.control("POST", "/v1/rebuild").status_code in (202, 503)
        for _ in range(20):
            assert guard.redis().get(MISSING) is None
            assert guard.is_ready()
        before = guard.generation()
        database.server.start()
        guard.rebuild()
        assert guard.generation() > before
        wait_until(lambda: answers(guard.redis(), "item:7", b"payload 7"), PATIENCE, "loads")
        assert guard.redis().get(MISSING) is None


class TestSlowReaders:
    def test_one_that_never_reads_is_bounded_and_dropped(self, start_guard, cache, items):
        guard = start_guard(items(), max_output="1mb", output_timeout="1s")
        cache.client().set("big", b"x" * 100_000)
        other = guard.redis()
        assert other.ping()
        at_rest = guard.resident_bytes()
        with guard.wire() as wire:
            wire.socket.setblocking(False)
            try:
                wire.socket.send(command("GET", "big") * 5000)
            except OSError:
                pass
            peak = at_rest
            deadline = time.monotonic() + PATIENCE
            while guard.total("nestguard_clients_dropped_total") < 1:
                assert time.monotonic() < deadline, "it is still connected"
                peak = max(peak, guard.resident_bytes())
                assert other.get("item:1") == b"payload 1"
            assert peak - at_rest < 100e6, "500 MB of replies must not wait in memory"
            wire.socket.setblocking(True)
            assert len(wire.read_until_closed()) < 100_000 * 5000

    def test_one_that_reads_slowly_gets_everything(self, start_guard, cache, items):
        """It takes three times output_timeout for all, but never so long for some of it."""
        guard = start_guard(items(), max_output="64mb", output_timeout="2s")
        value = b"y" * 100_000
        cache.client().set("big", value)
        wanted = bulk(value) * 300 + bulk(None)
        rate = len(wanted) / 6
        with guard.wire() as wire:
            wire.send(command("GET", "big") * 300 + command("GET", MISSING))
            begin, taken = time.monotonic(), 0
            while taken < len(wanted):
                due = min(int(rate * (time.monotonic() - begin)), len(wanted))
                if due > taken:
                    assert wire.read_bytes(due - taken) == wanted[taken:due]
                    taken = due
                assert guard.is_alive()


class TestTheEnd:
    def test_what_was_begun_is_finished(self, start_guard, database, items, threads):
        guard = start_guard(items(), load_timeout="60s", drain_timeout="60s")
        client = guard.redis()
        with database.locked():
            waiting = threads.submit(client.get, "item:1")
            wait_for_miss(guard)
            guard.signal(signal.SIGTERM)
            wait_until(lambda: refuses(guard.port), PATIENCE, "the port to close")
        assert waiting.result(PATIENCE) == b"payload 1"
        assert guard.wait() == 0

    def test_idle_clients_do_not_hold_it_up(self, start_guard, items):
        guard = start_guard(items(), drain_timeout="5m")
        client = guard.redis()
        assert client.ping() and guard.is_alive()
        guard.signal(signal.SIGTERM)
        assert guard.wait(timeout=PATIENCE) == 0

    def test_the_drain_has_an_end(self, start_guard, database, items, threads):
        guard = start_guard(items(), load_timeout="5m", drain_timeout="300ms")
        with database.locked():
            waiting = threads.submit(guard.redis().get, "item:1")
            wait_for_miss(guard)
            guard.signal(signal.SIGTERM)
            assert guard.wait() == 0
        with pytest.raises(redis.RedisError):
            waiting.result(PATIENCE)

    def test_it_ends_while_it_builds(self, start_guard, database, items):
        with database.locked():
            guard = start_guard(items(), ready=False)
            guard.signal(signal.SIGTERM)
            assert guard.wait() == 0

    def test_it_ends_while_both_servers_are_down(self, start_guard, database, cache, items):
        guard = start_guard(items())
        cache.kill()
        database.server.stop()
        assert guard.redis().get(MISSING) is None
        guard.signal(signal.SIGINT)
        assert guard.wait() == 0

    def test_after_a_crash_it_starts_again_on_its_ports(self, start_guard, items):
        guard = start_guard(items())
        client = guard.redis()
        assert client.get("item:1") == b"payload 1"
        guard.kill()
        guard.start()
        assert client.mget("item:1", MISSING) == [b"payload 1", None]


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
        return False
    except ConnectionRefusedError:
        return True
