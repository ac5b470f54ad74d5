"""What probes ask: the process lives, clients are served, every keyspace guards. Three questions, for an
outage of the database must not become one of the cache."""
import signal
import socket

from following import follow  # noqa: F401, a fixture
from servers import PATIENCE, run_nestguard
from waiting import wait_until

MISSING = "item:1000"
SERVING, GUARDING = "/readyz", "/guardz"


def probes(guard):
    return tuple(guard.control("GET", path).status_code for path in ("/healthz", SERVING, GUARDING))


def ctl(guard, word):
    return run_nestguard("ctl", "-c", guard.file, word)[0]


def test_while_loading_clients_are_served_and_nothing_is_guarded(start_guard, database, items):
    with database.locked():
        guard = start_guard(items(), ready=False)
        assert probes(guard) == (200, 200, 503)
        assert guard.redis().ping()
        assert guard.control("GET", GUARDING).json() == {
            "guarding": False, "keyspaces": {"items": "loading"}}
        assert (ctl(guard, "ready"), ctl(guard, "guarding")) == (0, 1)
        status = guard.status()
        assert status["ready"] is True and status["guarding"] is False
    guard.wait_guarding()
    assert probes(guard) == (200, 200, 200)
    assert guard.control("GET", GUARDING).json()["keyspaces"] == {"items": "guarding"}
    assert guard.status()["guarding"] is True


def test_while_the_database_is_down_it_stays_in_rotation(follow, database, cache, items):
    guard = follow(items())
    cache.client().set("item:1", "cached")
    database.server.stop()
    wait_until(lambda: probes(guard)[2] == 503, PATIENCE, "an alert")
    assert probes(guard) == (200, 200, 503)
    assert (ctl(guard, "ready"), ctl(guard, "guarding")) == (0, 1)
    assert guard.redis().get("item:1") == b"cached"
    database.server.start()
    guard.wait_guarding()
    assert probes(guard) == (200, 200, 200)
    assert ctl(guard, "guarding") == 0


def test_while_the_cache_is_down_it_stays_in_rotation(start_guard, cache, items):
    guard = start_guard(items())
    cache.kill()
    assert guard.redis().get(MISSING) is None
    assert probes(guard) == (200, 200, 200)


def test_while_draining_no_client_is_sent_to_it(start_guard, database, items, threads):
    guard = start_guard(items(), load_timeout="60s", drain_timeout="60s")
    client = guard.redis()
    with database.locked():
        waiting = threads.submit(client.get, "item:1")
        wait_until(lambda: guard.counter("nestguard_cache_misses_total"), PATIENCE, "a miss")
        guard.signal(signal.SIGTERM)
        wait_until(lambda: probes(guard)[1] == 503, PATIENCE, "the end of its readiness")
        assert probes(guard) == (200, 503, 200)
        assert ctl(guard, "ready") == 1
        assert guard.status()["ready"] is False
    assert waiting.result(PATIENCE) == b"payload 1"
    assert guard.wait() == 0


def test_who_is_told_that_clients_are_served_can_connect(start_guard, database, items):
    """The first answer of the control port is no earlier than the first client that is served."""
    with database.locked():
        for _ in range(5):
            guard = start_guard(items(), ready=None)
            wait_until(guard.is_serving, PATIENCE, guard.log)
            with socket.create_connection(("127.0.0.1", guard.port), PATIENCE) as client:
                client.sendall(b"PING\r\n")
                assert client.recv(7) == b"+PONG\r\n"


def test_probes_need_no_token(start_guard, items):
    guard = start_guard(items(), control_token="sesame")
    for path in ("/healthz", SERVING, GUARDING):
        assert guard.control("GET", path, headers={"Authorization": ""}).status_code == 200
