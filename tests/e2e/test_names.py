"""The database's name is looked up anew for each connection, and nobody else waits for that. Of a
name with several addresses each is tried."""
import concurrent.futures
import contextlib
import socket
import subprocess

import pytest

import servers
from servers import PATIENCE
from waiting import wait_until

# Goes before libc's, with names of its own: one is looked up for as long as a file is there, and one
# has two addresses.
RESOLVER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))
            dlsym(RTLD_NEXT, "getaddrinfo");
    if (node && !strcmp(node, "cache.test")) {
        int status = next("127.0.0.2", service, hints, found);
        struct addrinfo *last = status ? 0 : *found;
        while (last && last->ai_next)
            last = last->ai_next;
        return last ? next("127.0.0.1", service, hints, &last->ai_next) : status;
    }
    if (!node || strcmp(node, "database.test"))
        return next(node, service, hints, found);
    if (access(getenv("NAMES_HELD"), F_OK) == 0)
        close(open(getenv("NAMES_ENTERED"), O_CREAT | O_WRONLY, 0600));
    while (access(getenv("NAMES_HELD"), F_OK) == 0)
        usleep(10000);
    return next("127.0.0.1", service, hints, found);
}
"""


@pytest.fixture
def resolver(tmp_path):
    """{name: value} of an environment with it; the files are NAMES_HELD and NAMES_ENTERED."""
    source, library = tmp_path / "resolver.c", tmp_path / "resolver.so"
    source.write_text(RESOLVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "NAMES_HELD": str(tmp_path / "held"),
            "NAMES_ENTERED": str(tmp_path / "entered"),
            "ASAN_OPTIONS": servers.SANITIZERS["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}


@pytest.fixture
def guard(database, cache, items, resolver):
    started = servers.Nestguard({"cache": cache.url, "keyspaces": [items()], "load_connections": 2,
                                 "database": database.url.replace("127.0.0.1", "database.test")})
    started.environment.update(resolver)
    started.start()
    yield started
    if started.is_running():
        started.finish()
    started.remove()


def loaders(database):
    return [pid for pid, in database.query(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND usename = 'guard'"
        " AND query LIKE '%payload%' AND state = 'idle' ORDER BY pid")]


def test_while_the_name_is_looked_up_for_one_connection_others_go_on(guard, database, resolver,
                                                                     tmp_path):
    client = guard.redis(socket_timeout=PATIENCE)
    wait_until(lambda: client.get("item:1") and loaders(database), PATIENCE, guard.log)
    held, entered = tmp_path / "held", tmp_path / "entered"
    held.touch()
    try:
        database.execute("SELECT pg_terminate_backend(%s)", (loaders(database)[0],))
        wait_until(entered.exists, PATIENCE, guard.log)
        assert [client.get(f"item:{n}") for n in range(2, 50)] == [
            b"payload %d" % n for n in range(2, 50)]
        assert guard.status()
    finally:
        held.unlink()
    wait_until(lambda: "connections for loads are up" in guard.log(), PATIENCE, guard.log)
    assert client.get("item:60") == b"payload 60"


def test_it_ends_while_a_name_is_looked_up(guard, database, tmp_path):
    client = guard.redis(socket_timeout=PATIENCE)
    wait_until(lambda: client.get("item:1") and loaders(database), PATIENCE, guard.log)
    held, entered = tmp_path / "held", tmp_path / "entered"
    held.touch()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        try:
            database.execute("SELECT pg_terminate_backend(%s)", (loaders(database)[0],))
            wait_until(entered.exists, PATIENCE, guard.log)
            ended = pool.submit(guard.finish)
            wait_until(lambda: "finishing what is under way" in guard.log(), PATIENCE, guard.log)
        finally:
            held.unlink()
        ended.result()


def test_what_is_no_name_waits_for_no_name(guard, database, cache, tmp_path):
    """Though as many are looked up as can be at a time."""
    held, entered = tmp_path / "held", tmp_path / "entered"
    held.touch()
    try:
        database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guard'")
        wait_until(entered.exists, PATIENCE, guard.log)
        cache.stop()
        wait_until(lambda: guard.metric("nestguard_cache_up") == 0, PATIENCE, guard.log)
        cache.start()
        wait_until(lambda: guard.metric("nestguard_cache_up") == 1, PATIENCE, guard.log)
        wait_until(lambda: guard.wire().ask("SET", "plain", "x") == b"+OK\r\n", PATIENCE, guard.log)
    finally:
        held.unlink()


# ---- a name of the cache with several addresses ----

class Replica(servers.Redis):
    """At the name's first address, of the server at the second."""

    def __init__(self, primary):
        super().__init__()
        self.port, self.primary = primary.port, primary

    def command(self):
        words = ["127.0.0.2" if word == "127.0.0.1" else word for word in super().command()]
        return [*words, "--replicaof", "127.0.0.1", str(self.primary.port)]

    def client(self, **options):
        return super().client(host="127.0.0.2", **options)


@contextlib.contextmanager
def silent(cache):
    with socket.create_server(("127.0.0.2", cache.port)):
        yield


@contextlib.contextmanager
def full(cache):
    """What knocks there is dropped, as by a firewall: whoever listens has no place for it."""
    with socket.create_server(("127.0.0.2", cache.port), backlog=0), contextlib.ExitStack() as queue:
        for _ in range(4):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.2", cache.port))
        yield


@contextlib.contextmanager
def replica(cache):
    started = Replica(cache).start()
    yield
    started.remove()


@pytest.mark.parametrize("first", [contextlib.nullcontext, silent, full, replica])
def test_the_next_address_is_taken_when_the_first_is_of_no_use(database, cache, items, resolver, first):
    """Nobody listens there; somebody listens and says nothing, or does not even answer the knock; it
    is no primary."""
    with first(cache):
        guard = servers.Nestguard({"cache": f"redis://cache.test:{cache.port}/0", "database": database.url,
                                   "keyspaces": [items()], "cache_timeout": "300ms"})
        guard.environment.update(resolver)
        try:
            guard.start()
            wait_until(lambda: guard.metric("nestguard_cache_up") == 1, PATIENCE, guard.log)
            for n in range(1, 9):  # of either worker
                wait_until(lambda n=n: guard.wire().ask("SET", f"plain:{n}", n) == b"+OK\r\n", PATIENCE, guard.log)
                assert cache.client().get(f"plain:{n}") == str(n).encode()
                assert guard.redis().get(f"item:{n}") == f"payload {n}".encode()
                cache.wait_for_key(f"item:{n}")
            guard.finish()
        finally:
            guard.remove()
