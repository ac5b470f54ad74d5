"""What the guard says is in force, every worker decides by: whoever reads it there may ask any of them,
also one that has much to deliver and comes late to what the keeper tells it."""
import contextlib

import pytest

from servers import PATIENCE
from waiting import wait_until
from wire import command

CLIENTS = 600
NEW = b"$3\r\nnew\r\n"
KEYS = "/v1/keyspaces/pushed/keys"
MEGABYTE = 1 << 20


@contextlib.contextmanager
def much_to_deliver(guard, key, begun=True):
    """All ask for one large row that is not cached, and each is to have a copy of it; `begun`: the first
    has some of his."""
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(guard.wire("127.0.0.2")) for _ in range(CLIENTS)]
        for client in crowd:
            client.send(command("GET", key))
        if begun:
            assert crowd[0].socket.recv(1) == b"$"
        yield


@pytest.fixture
def large(database):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    database.execute("INSERT INTO items SELECT n, repeat('x', %s) FROM generate_series(1, 10) n", (MEGABYTE,))
    return {"name": "items", "key": "item:{id}", "table": "items", "value": "payload", "ttl": "1h"}


@pytest.fixture(params=range(1, 4))
def number(request):
    """Each once more, since it may come out well by chance."""
    return request.param


def test_a_generation_is_told_of_when_all_workers_have_it(start_guard, database, large, number):
    guard = start_guard(large, workers=1, max_client_memory="4gb")
    with guard.wire() as wire, much_to_deliver(guard, f"item:{number}", begun=False):
        database.execute("INSERT INTO items VALUES (1000, 'new')")
        wanted = guard.control("POST", "/v1/rebuild").json()["generation"]
        wait_until(lambda: guard.generation() >= wanted, PATIENCE, guard.status)
        assert wire.ask("GET", "item:1000") == NEW


def test_who_pushes_keys_is_answered_when_all_workers_have_them(start_guard, cache, large, number):
    pushed = {"name": "pushed", "key": "pushed:{id}", "source": "push", "on_miss": "pass"}
    guard = start_guard(large, pushed, ready=False, workers=1, max_client_memory="4gb")
    assert guard.control("PUT", KEYS, data="pushed:1\n").status_code == 200
    wait_until(guard.is_ready, PATIENCE, guard.status)
    cache.client().set("pushed:1000", "new")
    with guard.wire() as wire, much_to_deliver(guard, f"item:{number}"):
        assert guard.control("PUT", KEYS, data="pushed:1\npushed:1000\n").status_code == 200
        assert wire.ask("GET", "pushed:1000") == NEW


def test_who_has_the_file_read_is_answered_when_all_workers_have_it(start_guard, database, cache, large,
                                                                    number):
    guard = start_guard(large, workers=1, max_client_memory="4gb")
    guard.configure({"cache": cache.url, "database": database.url, "max_client_memory": "4gb", "workers": 1,
                     "keyspaces": [{**large, "enforce": False}]})
    with guard.wire() as wire, much_to_deliver(guard, f"item:{number}"):
        database.execute("INSERT INTO items VALUES (1000, 'new')")
        assert guard.control("POST", "/v1/reload").status_code == 200
        assert wire.ask("GET", "item:1000") == NEW
