"""Another `cache` is taken by a reload whatever the two are: one server, the primary that sentinels
name, or a cluster. Clients go on, and no old value comes back."""
import contextlib

import pytest
import redis

from beside import redis_beside
from clusters import Cluster
from following import follow
from ports import free_port
from sentinels import Fleet
from servers import PATIENCE
from test_cache_moves import Pipelines, Reloading
from test_published import published, wait_lease
from waiting import wait_until
from wire import bulk, command


@contextlib.contextmanager
def started(fleet):
    try:
        yield fleet.start()
    finally:
        fleet.remove()


@pytest.fixture(scope="module")
def clusters():
    with started(Cluster(replicas=0)) as one, started(Cluster(replicas=0)) as other:
        yield one, other


@pytest.fixture(scope="module")
def watched():
    with started(Fleet(replicas=1)) as fleet:
        yield fleet


class Place:
    """Where keys are, whatever it is."""

    def __init__(self, url, servers):
        self.url, self.servers = url, servers

    def calls(self, name):
        return sum(server.calls(name) for server in self.servers)

    def put(self, key, value):
        for server in self.servers:
            with contextlib.suppress(redis.ResponseError):  # MOVED
                server.client().set(key, value)

    def values(self, keys):
        found = set()
        for server in self.servers:
            for key in keys:
                with contextlib.suppress(redis.ResponseError):
                    found.add(server.client().get(key))
        return found - {None}

    def empty(self):
        for server in self.servers:
            server.client().flushall()
            server.client().config_resetstat()
        return self


@pytest.fixture
def place(request, cache, clusters):
    def of(kind):
        if kind == "one":
            return Place(cache.url, [cache]).empty()
        if kind == "sentinel":
            fleet = request.getfixturevalue("watched")
            return Place(fleet.url, [fleet.first]).empty()
        cluster = clusters[kind == "another cluster"]
        return Place(cluster.url, cluster.primaries).empty()

    return of


@pytest.fixture
def moving(follow, database, items):
    def start(place, keyspace=None, **settings):
        keyspace = keyspace or items()
        guard = follow(keyspace, cache=place.url, drain_timeout="1500ms", **settings)
        return guard, Reloading(guard, {
            "database": database.url, "sync": "replication", "max_lag": "2s", "cache": place.url,
            "drain_timeout": "1500ms", "keyspaces": [keyspace], **settings})

    return start


KINDS = ("one", "sentinel", "cluster")
WAYS = [(one, other) for one in KINDS for other in KINDS if one != other] + [
    ("cluster", "another cluster")]


@pytest.mark.parametrize("before, after", WAYS)
def test_under_load_nobody_notices_and_what_was_there_before_is_not_read(
        moving, place, database, before, after):
    left, new = place(before), place(after)
    for n in range(1, 101):
        new.put(f"item:{n}", "old")
    guard, file = moving(left)
    with Pipelines(guard) as clients:
        change = file.take(cache=new.url)["cache"]
        assert change["taken"], change
        file.wait_left()
        at_old = {name: left.calls(name) for name in ("set", "get", "echo")}
        clients.go_on()
        assert {name: left.calls(name) for name in ("set", "get", "echo")} == at_old
        assert all(new.calls(name) > 100 for name in ("set", "get", "echo"))
    assert not clients.problems
    assert b"old" not in new.values(f"item:{n}" for n in range(1, 101))
    database.execute("UPDATE items SET payload = 'changed' WHERE id = 7")
    wait_until(lambda: guard.redis().get("item:7") == b"changed", PATIENCE, guard.log)
    assert new.values(["item:7"]) <= {b"changed"}
    assert guard.stop() == 0


@pytest.mark.parametrize("before, after", [("one", "cluster"), ("cluster", "one"),
                                           ("cluster", "another cluster")])
class TestConnectionsWithState:
    def test_a_transaction_ends_where_it_began(self, moving, place, before, after):
        left, new = place(before), place(after)
        guard, file = moving(left)
        with guard.wire() as wire:
            wire.send(command("MULTI") + command("SET", "mine", "1"))
            assert wire.read_replies(2) == b"+OK\r\n+QUEUED\r\n"
            file.take(cache=new.url)
            wait_until(lambda: guard.redis().set("plain", "x") and new.calls("set"), PATIENCE,
                       guard.log)
            wire.send(command("EXEC"))
            assert wire.read_replies(1) == b"*1\r\n+OK\r\n"
            assert left.values(["mine"]) == {b"1"} and not new.values(["mine"])
            file.wait_left()
            assert wire.ask("SET", "mine", "2") == b"+OK\r\n"
            assert new.values(["mine"]) == {b"2"}

    def test_a_subscriber_is_served_by_the_one_before_until_it_is_cut(self, moving, place, before,
                                                                      after):
        left, new = place(before), place(after)
        guard, file = moving(left)
        with guard.wire() as wire:
            wire.send(b"HELLO 3\r\n")
            wire.read_replies(1)
            wire.send(command("SUBSCRIBE", "news"))
            assert wire.read_reply().startswith(b">3\r\n")
            file.take(cache=new.url)
            wait_until(lambda: guard.redis().set("plain", "x") and new.calls("set"), PATIENCE,
                       guard.log)
            for turn in range(2):
                for n in range(20):  # of any node
                    assert wire.ask("SET", f"its:{n}", turn) == b"+OK\r\n"
                assert wire.ask("BLPOP", "its:list", "0.01") == b"_\r\n"  # a connection of its own
            assert wire.read_until_closed() == b""
        file.wait_left()
        assert not new.values(f"its:{n}" for n in range(20))

    @pytest.mark.parametrize("word", ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"])
    def test_whoever_only_listens_is_cut_then(self, moving, place, before, after, word):
        if word == "SSUBSCRIBE" and before != "cluster":
            pytest.skip("that is one server's")
        guard, file = moving(place(before))
        with guard.wire() as wire:
            assert word.lower().encode() in wire.ask(word, "news")
            file.take(cache=place(after).url)
            assert wire.read_until_closed() == b""
            file.wait_left()

    def test_who_tracks_keys_hears_of_those_that_were_read_until_it_is_cut(self, moving, place,
                                                                           before, after):
        left, new = place(before), place(after)
        guard, file = moving(left)
        with guard.wire() as wire:
            wire.ask("HELLO", 3)
            assert wire.ask("CLIENT", "TRACKING", "ON") == b"+OK\r\n"
            assert wire.ask("GET", "its") == b"_\r\n"
            file.take(cache=new.url)
            wait_until(lambda: guard.redis().set("plain", "x") and new.calls("set"), PATIENCE,
                       guard.log)
            left.put("its", "1")
            its = b">2\r\n" + bulk("invalidate") + b"*1\r\n" + bulk("its")
            while wire.read_reply() != its:
                pass  # everything: keys may be elsewhere by now
            assert wire.ask("GET", "its") == bulk("1")
            assert wire.read_until_closed() == b""
        file.wait_left()
        assert guard.status()["own_connections"] == 0

    def test_who_tracks_keys_asks_all_nodes_over_connections_that_end_when_idle(
            self, moving, place, before, after):
        left, new = place(before), place(after)
        guard, file = moving(left, workers=1)
        with contextlib.ExitStack() as stack:
            wires = [stack.enter_context(guard.wire()) for _ in range(4)]
            for wire in wires:
                wire.ask("HELLO", 3)
                assert wire.ask("CLIENT", "TRACKING", "ON") == b"+OK\r\n"
            file.take(cache=new.url)
            wait_until(lambda: guard.redis().set("plain", "x") and new.calls("set"), PATIENCE,
                       guard.log)
            for _ in range(5):
                for wire in wires:
                    wire.send(command("DBSIZE"))
                    while not (answer := wire.read_reply()).startswith(b":"):
                        assert answer.startswith(b">")
                assert guard.redis().ping()
            for wire in wires:
                wire.read_until_closed()
        file.wait_left()

    def test_who_tracks_keys_and_changes_the_protocol_reads_nothing_unheard(self, moving, place,
                                                                            before, after):
        left, new = place(before), place(after)
        guard, file = moving(left)
        with guard.wire() as wire:
            wire.ask("HELLO", 3)
            assert wire.ask("CLIENT", "TRACKING", "ON") == b"+OK\r\n"
            file.take(cache=new.url)
            wait_until(lambda: guard.redis().set("plain", "x") and new.calls("set"), PATIENCE,
                       guard.log)
            for n in range(30):
                new.put(f"its:{n}", "new")
            wire.send(command("HELLO", 2) + command("HELLO", 3) +
                      b"".join(command("GET", f"its:{n}") for n in range(30)))
            assert b"new" not in wire.read_until_closed()
        file.wait_left()

    def test_a_transaction_without_a_key_is_run_where_keys_are_then(self, moving, place, before,
                                                                    after):
        left, new = place(before), place(after)
        guard, file = moving(left, workers=1)
        with guard.wire() as wire:
            wire.send(command("MULTI") + command("PING"))
            assert wire.read_replies(2) == b"+OK\r\n+QUEUED\r\n"
            file.take(cache=new.url)
            wait_until(lambda: guard.redis().set("plain", "x") and new.calls("set"), PATIENCE,
                       guard.log)
            assert wire.ask("SET", "mine", "1") == b"+QUEUED\r\n"
            assert wire.ask("EXEC") == b"*2\r\n+PONG\r\n+OK\r\n"
            assert (left if before == "one" else new).values(["mine"]) == {b"1"}
        file.wait_left()


class TestTheSameCluster:
    def test_by_other_nodes_nothing_is_deleted(self, moving, place, clusters):
        here = place("cluster")
        guard, file = moving(here)
        with Pipelines(guard) as clients:
            wait_until(lambda: here.values(f"item:{n}" for n in range(1, 101)), PATIENCE, guard.log)
            scans = here.calls("scan")
            assert file.take(cache=f"redis-cluster://{here.servers[1].address}")["cache"]["taken"]
            file.wait_left()
            assert here.calls("scan") == scans
            clients.go_on()
        assert not clients.problems

    def test_by_the_guard_itself_it_is_refused(self, moving, place):
        here = place("cluster")
        guard, file = moving(here)
        guard.configure({**file.settings, "cache": f"{here.url},localhost:{guard.port}"})
        answer = guard.control("POST", "/v1/reload")
        assert answer.status_code == 409 and "it is the guard's own address" in answer.text, answer.text

    def test_by_another_password(self, moving, place):
        here = place("cluster")
        for server in here.servers:
            server.client().acl_setuser("app", enabled=True, passwords=["+one", "+two"], keys=["*"],
                                        channels=["*"], commands=["+@all"])
        url = here.url.replace("redis-cluster://", "redis-cluster://app:{}@")
        guard, file = moving(Place(url.format("one"), here.servers))
        with Pipelines(guard) as clients:
            assert file.take(cache=url.format("two"))["cache"]["taken"]
            file.wait_left()
            for server in here.servers:
                server.client().acl_setuser("app", enabled=True, passwords=["-one"])
            clients.go_on()
        assert not clients.problems


class TestNotTaken:
    def test_a_cluster_of_which_a_node_cannot_be_used(self, moving, place, clusters):
        left, new = place("one"), place("cluster")
        guard, file = moving(left)
        new.servers[1].client().config_set("requirepass", "secret")
        try:
            change = file.take(cache=new.url, max_clients=500)
        finally:
            new.servers[1].client(password="secret").config_set("requirepass", "")
        assert not change["cache"]["taken"] and "NOAUTH" in change["cache"]["why"], change
        assert change["max_clients"]["taken"]
        assert guard.redis().set("plain", "x") and left.values(["plain"]) == {b"x"}

    def test_a_server_that_is_none_of_a_cluster(self, moving, place, cache):
        here = place("cluster")
        guard, file = moving(here)
        change = file.take(cache=f"redis-cluster://127.0.0.1:{cache.port}")["cache"]
        assert not change["taken"] and "cluster support disabled" in change["why"], change
        assert guard.redis().set("plain", "x") and here.values(["plain"]) == {b"x"}


@pytest.mark.parametrize("kind", ["one", "cluster"])
class TestOneThatRefusesToBeSwept:
    @pytest.fixture
    def refused(self, moving, place, clusters, kind):
        """A guard that was told of a cache that it may not sweep."""
        with contextlib.ExitStack() as stack:
            servers = clusters[1].primaries if kind == "cluster" else [
                stack.enter_context(redis_beside())]
            for server in servers:
                server.client().acl_setuser("app", enabled=True, reset=True, passwords=["+one"],
                                            keys=["*"], channels=["*"], commands=["+@all", "-scan"])
            new = Place((clusters[1].url if kind == "cluster" else servers[0].url).replace(
                "://", "://app:one@"), servers).empty()
            left = place("cluster")
            guard, file = moving(left)
            assert file.take(cache=new.url)["cache"]["taken"]
            wait_until(lambda: "refused SCAN" in guard.log(), PATIENCE, guard.log)
            yield guard, file, left, new
            guard.stop()

    def test_is_given_up_for_the_one_before(self, refused):
        guard, file, left, new = refused
        assert file.take(cache=left.url)["cache"]["taken"]
        wait_until(lambda: "is given up before it was used" in guard.log(), PATIENCE, guard.log)
        assert guard.redis().set("plain", "x") and left.values(["plain"]) == {b"x"}
        assert not new.values(["plain"])
        guard.redis().get("item:7")
        wait_until(lambda: left.values(["item:7"]), PATIENCE, guard.log)

    def test_is_given_up_for_another(self, refused, place, database):
        guard, file, _, refusing = refused
        new = place("one")
        new.put("item:7", "old")
        assert file.take(cache=new.url)["cache"]["taken"]
        file.wait_left()
        assert guard.redis().set("plain", "x") and new.values(["plain"]) == {b"x"}
        assert guard.redis().get("item:7") == b"payload 7" and not refusing.values(["plain"])
        database.execute("UPDATE items SET payload = 'changed' WHERE id = 7")
        wait_until(lambda: guard.redis().get("item:7") == b"changed", PATIENCE, guard.log)

    def test_stays_while_another_is_not_reached(self, refused):
        guard, file, left, new = refused
        change = file.take(cache=f"redis://127.0.0.1:{free_port()}")["cache"]
        assert not change["taken"] and "cannot connect" in change["why"]
        assert guard.redis().set("plain", "x") and left.values(["plain"]) == {b"x"}
        for server in new.servers:
            server.client().acl_setuser("app", enabled=True, commands=["+scan"])
        file.wait_left()
        assert guard.redis().set("plain", "y") and new.values(["plain"]) == {b"y"}

    def test_the_guard_ends_meanwhile(self, refused):
        assert refused[0].stop() == 0


def test_what_is_published_begins_in_one_server_when_the_cluster_is_left(moving, place, items,
                                                                       cache):
    guard, file = moving(place("cluster"))
    place("one")
    assert file.take(cache=cache.url, keyspaces=[published()])["cache"]["taken"]
    file.wait_left()
    guard.control("POST", "/v1/rebuild")
    wait_lease(cache, guard)


def test_what_is_published_ends_when_a_cluster_takes_over(moving, place, items, cache):
    left, new = place("one"), place("cluster")
    guard, file = moving(left, published())
    wait_lease(cache, guard)
    assert file.take(cache=new.url, keyspaces=[items()])["cache"]["taken"]
    file.wait_left()
    assert guard.redis().set("plain", "x") and new.values(["plain"]) == {b"x"}
    wait_until(lambda: not cache.client().keys("*:lease"), PATIENCE, guard.log)
