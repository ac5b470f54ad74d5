"""Another `cache`, user, password or certificate is taken by a reload, while clients go on: nobody
gets an error, nothing is lost or out of order, and no old value comes back."""
import contextlib
import itertools
import threading
import time

import pytest
import redis

from beside import redis_beside
from following import follow
from gate import Gate
from ports import free_port
from sentinels import NAME as SENTINELS_NAME, Sentinel
from servers import PATIENCE
from test_client_list import number_of
from test_published import NAME, absent, lease, published, wait_lease
from test_tls import cache_settings, certificates, tls_cache
from waiting import wait_until
from wire import command


@pytest.fixture
def other():
    with redis_beside() as server:
        yield server


class Reloading:
    """A guard whose file is written anew and read again."""

    def __init__(self, guard, settings):
        self.guard, self.settings = guard, settings

    def take(self, **settings):
        self.settings = {**self.settings, **settings}
        self.guard.configure(self.settings)
        answer = self.guard.control("POST", "/v1/reload")
        assert answer.status_code == 200, answer.text
        return {change["what"]: change for change in answer.json()["changes"]}

    def wait_left(self, count=1):
        wait_until(lambda: self.guard.log(lines=10**6).count("is not used any more") == count,
                   PATIENCE, self.guard.log)


@pytest.fixture
def moving(start_guard, database, cache, items):
    def start(**settings):
        settings = {"cache": cache.url, "sync": "none", "keyspaces": [items()], **settings}
        keyspaces = settings["keyspaces"]
        guard = start_guard(*keyspaces, **{name: value for name, value in settings.items()
                                           if name != "keyspaces"})
        return guard, Reloading(guard, {"database": database.url, **settings})

    return start


class Pipelines:
    """Clients, each of which sends pipelines without a pause and looks at every reply: its own
    counter, which only grows by what it adds, keys with rows, and keys without."""

    def __init__(self, guard, clients=4, resp3=False):
        self.guard, self.ended = guard, threading.Event()
        self.resp3 = resp3
        self.problems, self.rounds = [], [0] * clients
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.go_on()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def go_on(self, rounds=30):
        """All of them, for some rounds more."""
        before = list(self.rounds)
        wait_until(lambda: self.problems or all(now >= then + rounds for now, then in
                                                zip(self.rounds, before)), PATIENCE,
                   lambda: f"{self.rounds} {self.guard.log()}")
        assert not self.problems, self.problems

    def run(self, n):
        with self.guard.wire() as wire:
            if self.resp3:
                wire.send(b"HELLO 3\r\n")
                wire.read_replies(1)
            try:
                for number in itertools.count():
                    if self.ended.is_set():
                        return
                    self.one_round(wire, n, number)
                    self.rounds[n] += 1
            except Exception as problem:  # pylint: disable=broad-except
                self.problems.append(repr(problem))

    def one_round(self, wire, n, number):
        row = number % 100 + 1
        sent, wanted = b"", b""
        nil = b"_\r\n" if self.resp3 else b"$-1\r\n"
        for i in range(5):
            token = b"%d-%d-%d" % (n, number, i)
            value = b"payload %d" % row
            sent += b"ECHO %s\r\nGET item:%d\r\nSET plain:%d %s\r\nGET item:none%d\r\n" % (
                token, row, n, token, number)
            wanted += b"$%d\r\n%s\r\n$%d\r\n%s\r\n+OK\r\n%s" % (
                len(token), token, len(value), value, nil)
        wire.send(sent)
        found = wire.read_replies(20)
        if found != wanted:
            raise AssertionError(f"{found!r} and not {wanted!r}")


@pytest.mark.parametrize("resp3", [False, True])
def test_under_load_nobody_notices_and_all_goes_to_the_new_one(moving, cache, other, resp3):
    guard, file = moving()
    with Pipelines(guard, resp3=resp3) as clients:
        assert other.calls("set") == 0
        changes = file.take(cache=other.url)
        assert changes["cache"]["taken"], changes
        file.wait_left()
        at_old = {name: cache.calls(name) for name in ("set", "get", "echo")}
        clients.go_on()
        assert {name: cache.calls(name) for name in ("set", "get", "echo")} == at_old
        assert all(other.calls(name) > 100 for name in ("set", "get", "echo"))
        file.take(cache=cache.url)  # and back
        file.wait_left(2)
        at_new = other.calls("set")
        clients.go_on()
        assert other.calls("set") == at_new and cache.calls("set") > at_old["set"]
    assert not clients.problems
    left = [client for client in other.client().client_list() if client.get("lib-name") != "redis-py"
            and (client["name"] or client["cmd"] != "client|list")]
    assert not left, "connections that were left open"


def test_what_was_cached_there_before_is_never_read(follow, database, cache, items, other):
    other.client().mset({f"item:{n}": "old" for n in range(1, 101)})
    other.client().mset({f"more:{n}": "x" for n in range(5000)})
    guard = follow(items())
    file = Reloading(guard, {"database": database.url, "sync": "replication",
                             "keyspaces": [items()], "cache": cache.url})
    with Pipelines(guard) as clients:
        file.take(cache=other.url)
        clients.go_on()
        file.wait_left()
        clients.go_on()
    assert not clients.problems
    assert "old" not in str(other.client().mget([f"item:{n}" for n in range(1, 101)]))
    database.execute("UPDATE items SET payload = 'changed' WHERE id = 7")
    wait_until(lambda: guard.redis().get("item:7") == b"changed", PATIENCE, guard.log)


def test_rows_change_meanwhile_and_no_old_value_stays_anywhere(follow, database, cache, items,
                                                              other):
    """Each row's number only grows, and so must what clients see of it once its change was read."""
    database.execute("UPDATE items SET payload = '0'")
    guard = follow(items())
    file = Reloading(guard, {"database": database.url, "sync": "replication",
                             "keyspaces": [items()], "cache": cache.url})
    ended, problems = threading.Event(), []

    def change():
        for number in itertools.count(1):
            if ended.is_set():
                return
            database.execute("UPDATE items SET payload = %s WHERE id <= 20", (str(number),))

    def look():
        client = guard.redis()
        while not ended.is_set():
            try:
                client.mget([f"item:{n}" for n in range(1, 21)])
            except redis.RedisError as problem:
                problems.append(str(problem))

    threads = [threading.Thread(target=change), threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    try:
        for count, server in enumerate([other, cache, other], 1):
            file.take(cache=server.url)
            file.wait_left(count)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not problems
    last = database.value("SELECT payload FROM items WHERE id = 1").encode()
    wait_until(lambda: guard.redis().mget([f"item:{n}" for n in range(1, 21)]) == [last] * 20,
               PATIENCE, guard.log)
    for server in (cache, other):  # in the one before they are deleted, too
        wait_until(lambda server=server: set(server.client().mget(
            [f"item:{n}" for n in range(1, 21)])) <= {None, last}, PATIENCE, guard.log)


class TestConnectionsWithState:
    @pytest.fixture
    def started(self, moving):
        return moving(drain_timeout="1500ms")

    def test_a_transaction_ends_where_it_began(self, started, cache, other):
        guard, file = started
        with guard.wire() as wire:
            wire.send(b"MULTI\r\nSET mine 1\r\n")
            assert wire.read_replies(2) == b"+OK\r\n+QUEUED\r\n"
            file.take(cache=other.url)
            wait_until(lambda: guard.redis().set("plain", "x") and other.calls("set"), PATIENCE,
                       guard.log)
            wire.send(b"EXEC\r\n")
            assert wire.read_replies(1) == b"*1\r\n+OK\r\n"
            assert cache.client().get("mine") == b"1" and not other.client().exists("mine")
            file.wait_left()
            wire.send(b"SET mine 2\r\n")
            assert wire.read_replies(1) == b"+OK\r\n"
            assert other.client().get("mine") == b"2"

    def test_one_that_does_not_end_is_cut_after_drain_timeout(self, started, other):
        guard, file = started
        with guard.wire() as wire:  # redis-py would subscribe anew
            wire.send(command("SUBSCRIBE", "news"))
            assert wire.read_reply().startswith(b"*3\r\n")
            file.take(cache=other.url)
            assert wire.read_until_closed() == b""
        file.wait_left()

    def test_what_was_loaded_while_some_had_not_gone_over_is_loaded_again(self, started, database,
                                                                          cache, other):
        """Without a log their DEL is the only word of a change, and reaches the old one alone."""
        guard, file = started
        with guard.wire() as wire:
            wire.send(b"MULTI\r\n")
            assert wire.read_replies(1) == b"+OK\r\n"
            file.take(cache=other.url)
            wait_until(lambda: guard.redis().get("item:7") and other.client().exists("item:7"),
                       PATIENCE, guard.log)
            database.execute("UPDATE items SET payload = 'changed' WHERE id = 7")
            cache.client().delete("item:7")  # as a worker does that has not gone over
            wire.send(b"EXEC\r\n")
            assert wire.read_replies(1) == b"*0\r\n"
        file.wait_left()
        wait_until(lambda: guard.redis().get("item:7") == b"changed", PATIENCE, guard.log)

    def test_a_command_that_blocks_is_answered_or_fails(self, started, cache, other):
        guard, file = started
        with guard.wire() as wire:
            wire.send(b"BLPOP list 0\r\n")
            wait_until(lambda: cache.client().info("clients")["blocked_clients"], PATIENCE, guard.log)
            file.take(cache=other.url)
            file.wait_left()
            assert wire.read_replies(1) == b"-NESTGUARD cache down\r\n"


class TestNumbersOfTwoServers:
    """What a server calls a client is another's number at the next one."""

    @pytest.fixture
    def waiting(self, cache, other, moving):
        """One that is still at the cache before, and how the new one is brought to give a client
        the same number."""
        guard, file = moving(drain_timeout="60s", workers=1)
        with guard.wire() as x:
            def begin(*words):
                for _ in range(200):  # so that its number is one which the other has yet to give
                    cache.client().ping()
                mine = number_of(x)
                x.ask("CLIENT", "SETNAME", "x")
                x.send(command(*words))
                number = int(wait_until(lambda: named(cache.client(), "x"), PATIENCE, guard.log)["id"])
                file.take(cache=other.url)
                wait_until(lambda: guard.redis().set("plain", "x") and other.calls("set"),
                           PATIENCE, guard.log)
                self.give_numbers_up_to(other, number - 1)
                return mine, number
            yield guard, begin
        file.wait_left()

    @staticmethod
    def give_numbers_up_to(server, last):
        given = 0
        while given < last:
            with contextlib.closing(server.client()) as client:
                given = client.client_id()
        assert given == last

    def test_who_waits_at_the_new_one_is_not_unblocked_for_another(self, waiting, other):
        guard, begin = waiting
        observer = other.client()
        observer.ping()  # so that it takes none of the numbers
        mine, number = begin("BLPOP", "nothing", 0)
        with guard.wire() as y, guard.wire() as admin:
            y.ask("CLIENT", "SETNAME", "y")
            his = number_of(y)
            y.send(command("BLPOP", "nothing", 0))
            found = wait_until(lambda: named(observer, "y"), PATIENCE, guard.log)
            assert int(found["id"]) == number
            assert admin.ask("CLIENT", "UNBLOCK", mine, "ERROR") == b":0\r\n"
            assert admin.ask("CLIENT", "UNBLOCK", his) == b":1\r\n"
            assert y.read_reply() == b"*-1\r\n"

    def test_nobody_at_the_new_one_is_told_of_keys_for_another(self, waiting, other):
        guard, begin = waiting
        mine, number = begin("SUBSCRIBE", "__redis__:invalidate")
        with guard.wire() as y, guard.wire() as tracking:
            y.ask("CLIENT", "SETNAME", "y")
            y.ask("SUBSCRIBE", "news")
            assert int(named(other.client(), "y")["id"]) == number
            assert tracking.ask("CLIENT", "TRACKING", "ON", "REDIRECT", mine).startswith(
                b"-ERR The client ID you want redirect to does not exist")


def named(observer, name):
    return next((client for client in observer.client_list() if client["name"] == name), None)


class TestNotTaken:
    def test_one_that_cannot_be_reached(self, moving, other, cache):
        guard, file = moving()
        url = other.url
        other.stop()
        with Pipelines(guard) as clients:
            change = file.take(cache=url, max_clients=500)
            assert not change["cache"]["taken"] and "cannot connect" in change["cache"]["why"]
            assert change["max_clients"]["taken"]
            clients.go_on()
        assert not clients.problems
        assert f"cache stays {cache.url} for now" in guard.log()
        # When it is there the same file is taken.
        other.start()
        assert file.take()["cache"]["taken"]
        file.wait_left()

    def test_a_replica(self, moving, other, cache):
        guard, file = moving()
        other.client().replicaof("127.0.0.1", cache.port)
        assert "replica" in file.take(cache=other.url)["cache"]["why"]
        assert guard.redis().set("plain", "x")

    def test_a_password_that_is_refused(self, moving, cache):
        guard, file = moving()
        change = file.take(cache=f"redis://:wrong@127.0.0.1:{cache.port}")["cache"]
        assert not change["taken"] and "AUTH" in change["why"] and "wrong" not in str(change)
        assert guard.redis().set("plain", "x")

    def test_a_second_change_waits_for_the_first(self, moving, cache, other):
        guard, file = moving(drain_timeout="1500ms")
        with guard.redis().pubsub() as listener:
            listener.subscribe("news")
            listener.get_message(timeout=PATIENCE)
            assert file.take(cache=other.url)["cache"]["taken"]
            wait_until(lambda: "clients are led to the new one" in guard.log(), PATIENCE, guard.log)
            change = file.take(cache=cache.url)["cache"]
            assert not change["taken"] and "follows" in change["why"]
        file.wait_left(2)
        assert guard.redis().set("where", "here") and cache.client().exists("where")


class TestTheSameServer:
    def test_another_password_costs_nothing_that_is_cached(self, moving, other):
        other.client().acl_setuser("app", enabled=True, passwords=["+one", "+two"],
                                   keys=["*"], channels=["*"], commands=["+@all"])
        url = "redis://app:{}@127.0.0.1:%d" % other.port
        guard, file = moving(cache=url.format("one"))
        with Pipelines(guard) as clients:
            wait_until(lambda: len(other.client().keys("item:*")) > 50, PATIENCE, guard.log)
            deleted = other.calls("del")
            assert file.take(cache=url.format("two"))["cache"]["taken"]
            file.wait_left()
            assert other.calls("scan") == 0 and other.calls("del") == deleted
            other.client().acl_setuser("app", enabled=True, passwords=["-one"])
            clients.go_on()
        assert not clients.problems
        other.client().client_kill_filter(_type="normal", skipme=True)
        wait_until(lambda: sets(guard), PATIENCE, guard.log)

    def test_the_old_connection_lasts_until_its_fills_are_answered(self, moving, cache):
        with contextlib.closing(Gate(cache.port)) as gate:
            guard, file = moving(cache=cache.url.replace(str(cache.port), str(gate.port)),
                                 cache_timeout="30s", drain_timeout="30s")
            gate.hold_requests(having=b"$2\r\nNX")
            assert guard.redis().get("item:7") == b"payload 7"
            gate.wait_held()
            assert file.take(cache=cache.url)["cache"]["taken"]
            wait_until(lambda: "clients are led to the new one" in guard.log(), PATIENCE, guard.log)
            for _ in range(40):  # the keeper goes on, and looks
                guard.control("GET", "/v1/status")
                assert "is not used any more" not in guard.log()
            gate.release()
            file.wait_left()
            assert "is deleted" not in guard.log() and cache.client().exists("item:7")
            guard.stop()

    def test_another_database_is_other_keys(self, moving, cache):
        guard, file = moving()
        cache.client(db=3).set("item:7", "old")
        assert file.take(cache=cache.url[:-1] + "3")["cache"]["taken"]
        file.wait_left()
        assert guard.redis().get("item:7") == b"payload 7"
        guard.redis().set("plain", "x")
        assert cache.client(db=3).get("plain") == b"x" and not cache.client().exists("plain")


def sets(guard):
    with contextlib.suppress(redis.RedisError):
        return all(guard.redis().set("plain", n) for n in range(8))
    return False


def test_it_ends_in_the_middle_of_it(moving, other):
    guard, file = moving()
    with guard.redis().pubsub() as listener:
        listener.subscribe("news")
        listener.get_message(timeout=PATIENCE)
        assert file.take(cache=other.url)["cache"]["taken"]
        wait_until(lambda: "clients are led to the new one" in guard.log(), PATIENCE, guard.log)
        assert guard.stop() == 0


@pytest.mark.parametrize("listen, url", [
    ("127.0.0.1:{port}", "redis://localhost:{port}/0"),
    ("0.0.0.0:{port}", "redis://127.0.0.1:{port}"),
    ("unix:{folder}/guard.sock", "unix:{folder}/./guard.sock")])
def test_the_guard_itself_is_refused(moving, cache, tmp_path, listen, url):
    """It looks like the cache behind it, and would be asked by itself without end. Where it listens it still
    does when the file names another address."""
    places = {"port": free_port(), "folder": tmp_path}
    guard, file = moving(listen=[listen.format(**places)])
    client = redis.from_url(url.format(**places).replace("unix:", "unix://"))
    for settings in ({}, {"listen": ["127.0.0.1:1"]}):
        guard.configure({**file.settings, "cache": url.format(**places), **settings})
        answer = guard.control("POST", "/v1/reload")
        assert answer.status_code == 409, answer.text
        assert answer.json()["error"] == "the file has errors: nothing was changed"
        assert "it is the guard's own address (listen: " in answer.text
    assert client.set("plain", "x") and cache.client().get("plain") == b"x"
    assert "it is the guard's own address" in guard.status()["reload_refused"]


def test_the_guard_named_by_a_sentinel_is_refused(moving):
    guard, file = moving()
    sentinel = Sentinel(guard)
    sentinel.start()
    try:
        guard.configure({**file.settings, "cache": f"redis-sentinel://{sentinel.address}/{SENTINELS_NAME}"})
        answer = guard.control("POST", "/v1/reload")
        assert answer.status_code == 409 and "it is the guard's own address" in answer.text, answer.text
    finally:
        sentinel.stop()


def test_a_signal_does_the_same(moving, other):
    guard, file = moving()
    guard.configure({**file.settings, "cache": other.url})
    guard.signal(1)
    file.wait_left()
    assert guard.redis().set("plain", "x") and other.client().exists("plain")


def test_another_certificate_under_the_same_name_is_taken(moving, tls_cache, certificates):
    settings = cache_settings(tls_cache, certificates)
    own, key = certificates.make("rotated", "before")
    guard, file = moving(**{**settings, "cache_cert_file": own, "cache_key_file": key})
    accepted = tls_cache.client().info("stats")["total_connections_received"]
    assert file.take() == {}, "nothing is another"
    with Pipelines(guard) as clients:
        certificates.make("rotated", "after")
        assert file.take()["the cache's TLS files"]["taken"]
        file.wait_left()
        clients.go_on()
    assert not clients.problems
    assert tls_cache.client().info("stats")["total_connections_received"] > accepted + 4
    with open(own, "w", encoding="ascii") as broken:
        broken.write("no certificate")
    assert guard.control("POST", "/v1/reload").status_code == 409
    assert guard.redis().set("plain", "x")


def test_what_is_published_begins_anew_there_and_lapses_here(follow, items, cache, other, database):
    guard = follow(published())
    wait_lease(cache, guard)
    file = Reloading(guard, {"database": database.url, "sync": "replication", "max_lag": "2s",
                             "keyspaces": [published()], "cache": cache.url})
    file.take(cache=other.url)
    wait_lease(other, guard)
    assert absent(other, *range(1, 101)) == [False] * 100
    wait_until(lambda: not lease(cache), PATIENCE, "the lease to lapse")
    database.execute("INSERT INTO items VALUES (5000, 'new')")
    wait_until(lambda: lease(other) and not any(absent(other, 5000)), PATIENCE, guard.log)


def test_from_one_that_is_gone(follow, items, database, cache, other):
    """That is why it is changed, mostly: what it would have been told is told to the log."""
    with redis_beside() as gone:
        guard = follow(items(), cache=gone.url, drain_timeout="1s")
        file = Reloading(guard, {"database": database.url, "sync": "replication",
                                 "keyspaces": [items()], "drain_timeout": "1s"})
        assert guard.redis().get("item:7") == b"payload 7"
        gone.kill()
        database.execute("UPDATE items SET payload = 'changed' WHERE id = 7")
        wait_until(lambda: guard.redis().get("item:7") == b"changed", PATIENCE, guard.log)
        other.client().set("item:7", "old")
        file.take(cache=other.url)
        wait_until(lambda: sets(guard), PATIENCE, guard.log)
        file.wait_left()
        assert guard.redis().get("item:7") == b"changed"
        assert "not deleted from the cache" in guard.log()


def test_one_that_cannot_be_swept_is_not_used_before_it_can(moving, other):
    """Nobody knows what lies there."""
    other.client().acl_setuser("app", enabled=True, passwords=["+one"], keys=["*"], channels=["*"],
                               commands=["+@all", "-scan"])
    other.client().set("item:7", "old")
    guard, file = moving()
    assert file.take(cache=f"redis://app:one@127.0.0.1:{other.port}")["cache"]["taken"]
    wait_until(lambda: "refused SCAN" in guard.log(), PATIENCE, guard.log)
    assert guard.redis().get("item:7") == b"payload 7"
    other.client().acl_setuser("app", enabled=True, commands=["+scan"])
    file.wait_left()
    assert guard.redis().get("item:7") == b"payload 7"
    assert other.client().get("item:7") != b"old"
