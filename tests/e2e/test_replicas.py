"""Lookups of guarded keys at replicas (cache_reads: replica): which are read from, how old what they
say may be, and what a client sees of its own writes."""
import contextlib
import time

import pytest
import redis

from checking import GOOD, check, keyspace  # check is a fixture
from clusters import Cluster
from following import follow, paused  # follow is a fixture
from gate import Gate
from sentinels import Fleet
from servers import PATIENCE
from waiting import wait_until
from wire import Wire, bulk, command

LAG = 1.0  # cache_max_lag


def nodes(guard):
    return guard.status()["backends"]["cache"]["nodes"]


# Of strings and of hashes; the name of a command, and what it says of item:7.
STRINGS = {"GET": b"payload 7", "MGET": [b"payload 7"], "EXISTS": 1}
HASHES = {"HGET": b"payload 7", "HMGET": [b"payload 7", b"7"], "EXISTS": 1,
          "HGETALL": {b"id": b"7", b"payload": b"payload 7"}}
FIELDS = {"HGET": ["payload"], "HMGET": ["payload", "id"]}


def lookups(servers, command="get"):
    return sum(server.calls(command) for server in servers)


def ask(client, command, key):
    return client.execute_command(command, key, *FIELDS.get(command, []))


def wait_read_from(guard, servers, key="item:7"):
    """Until a lookup has come to one of them."""
    client = guard.redis()
    before = lookups(servers)
    wait_until(lambda: client.get(key) and lookups(servers) > before, PATIENCE,
               lambda: f"lookups at replicas: {nodes(guard)}\n{guard.log()}")


def followers(cluster):
    """Those who are replicas now."""
    return [node for node in cluster.nodes
            if node.client().info("replication")["role"] == "slave"]


def primaries(cluster):
    return [node for node in cluster.nodes if node not in followers(cluster)]


class TestCluster:
    @pytest.fixture(scope="class")
    def shared(self):
        started = Cluster(primaries=2, replicas=1).start()
        yield started
        started.remove()

    @pytest.fixture
    def cluster(self, shared):
        for node in shared.nodes:
            node.ensure_running()
        shared.settle()
        for node in shared.nodes:
            if node.client().info("replication")["role"] == "master":
                node.client().flushall()
            node.client().config_resetstat()
        return shared

    @pytest.fixture
    def guard(self, follow, items, cluster):
        return follow(items(), cache=cluster.url, cache_reads="replica", cache_timeout="5s")

    def test_what_replicas_have_is_not_asked_of_primaries(self, guard, cluster):
        client = guard.redis()
        keys = [f"item:{n}" for n in range(1, 31)]
        values = [b"payload %d" % n for n in range(1, 31)]
        for key, value in zip(keys, values):
            assert client.get(key) == value
            cluster.wait_for_key(key)
            wait_until(lambda: cluster.follower_of(cluster.node_of(key)).ask("DBSIZE"), PATIENCE, key)
        for primary in primaries(cluster):
            wait_read_from(guard, [cluster.follower_of(primary)],
                           next(key for key in keys if cluster.node_of(key) is primary))

        def all_from_replicas():
            before = lookups(primaries(cluster)), lookups(followers(cluster))
            assert [client.get(key) for key in keys] == values
            after = lookups(primaries(cluster)), lookups(followers(cluster))
            return after[0] == before[0] and after[1] == before[1] + len(keys)

        wait_until(all_from_replicas, PATIENCE, "all lookups at replicas")

    @pytest.mark.parametrize("command, fill", [
        *((command, "string") for command in STRINGS), *((command, "hash") for command in HASHES)])
    def test_commands_that_read_through_read_there(self, follow, items, cluster, command, fill):
        value = {"value": ["id", "payload"], "fill": "hash"} if fill == "hash" else {}
        client = follow(items(**value), cache=cluster.url, cache_reads="replica").redis()
        said = (HASHES if fill == "hash" else STRINGS)[command]
        assert ask(client, command, "item:7") == said
        cluster.wait_for_key("item:7")
        followers_now = followers(cluster)

        def at_replica():
            before = [lookups(servers, command.lower()) for servers in (followers_now, primaries_now)]
            assert [ask(client, command, "item:7") for _ in range(20)] == [said] * 20
            after = [lookups(servers, command.lower()) for servers in (followers_now, primaries_now)]
            return after == [before[0] + 20, before[1]]

        primaries_now = primaries(cluster)
        wait_until(at_replica, PATIENCE, "all lookups at replicas")

    def test_each_key_of_several_slots_is_read_at_a_replica_of_its_own(self, guard, cluster):
        client, keys = guard.redis(), [f"item:{n}" for n in range(1, 31)]
        values = [b"payload %d" % n for n in range(1, 31)]
        assert client.mget(keys) == values
        for key in keys:
            cluster.wait_for_key(key)
        client.set("plain", "1")  # it is not guarded: its primary is asked

        def at_replicas():
            before = lookups(primaries(cluster), "mget"), lookups(primaries(cluster), "exists")
            assert client.mget(["plain", *keys]) == [b"1", *values]
            assert client.exists("plain", *keys) == 31
            return (lookups(primaries(cluster), "mget"), lookups(primaries(cluster), "exists")) == (
                before[0] + 1, before[1] + 1)

        wait_until(at_replicas, PATIENCE, "all lookups of guarded keys at replicas")

    def test_what_is_not_guarded_is_asked_of_primaries(self, guard, cluster):
        client = guard.redis()
        client.get("item:7")
        cluster.wait_for_key("item:7")
        wait_read_from(guard, followers(cluster))
        client.set("plain", "1")
        before = lookups(followers(cluster))
        assert [client.get("plain") for _ in range(50)] == [b"1"] * 50
        assert lookups(followers(cluster)) == before

    def test_what_a_client_sends_behind_a_lookup_is_not_seen_by_it(self, guard, cluster):
        client = guard.redis()
        client.get("item:7")
        cluster.wait_for_key("item:7")
        wait_read_from(guard, followers(cluster))
        follower = cluster.follower_of(cluster.node_of("item:7"))
        with Wire(guard.port, PATIENCE) as wire:
            for n in range(20):
                expected = wire.ask("GET", "item:7")
                before = lookups([follower])
                wait_until(lambda: wire.ask("GET", "item:7") == expected and
                           lookups([follower]) > before, PATIENCE, "a lookup at the replica")
                wire.send(command("GET", "item:7") + command("SET", "item:7", n) +
                          command("GET", "item:7") + command("DEL", "item:7"))
                assert wire.read_replies(4) == expected + b"+OK\r\n" + bulk(n) + b":1\r\n"
                assert wire.ask("GET", "item:7") == bulk("payload 7")

    def test_a_replica_that_hangs_is_asked_no_more(self, guard, cluster):
        client = guard.redis()
        client.get("item:7")
        cluster.wait_for_key("item:7")
        wait_read_from(guard, followers(cluster))
        follower = cluster.follower_of(cluster.node_of("item:7"))
        with paused(follower.process.pid):
            slowest = 0
            deadline = time.monotonic() + 3 * LAG
            while time.monotonic() < deadline:
                began = time.monotonic()
                assert client.get("item:7") == b"payload 7"
                slowest = max(slowest, time.monotonic() - began)
            assert slowest < 4, "it was waited for until cache_timeout"
            began = time.monotonic()
            assert [client.get("item:7") for _ in range(100)] == [b"payload 7"] * 100
            assert time.monotonic() - began < 4
        wait_read_from(guard, [follower])

    def test_a_replica_that_is_promoted_or_lost_costs_no_lookup(self, guard, cluster):
        client = guard.redis(socket_timeout=PATIENCE)
        client.get("item:7")
        cluster.wait_for_key("item:7")
        wait_read_from(guard, followers(cluster))
        primary = cluster.node_of("item:7")
        heir = cluster.follower_of(primary)
        cluster.hand_over(heir)
        wait_until(lambda: client.get("item:7") == b"payload 7" and
                   cluster.node_of("item:7") is heir and cluster.is_whole(), 3 * PATIENCE,
                   "the replica to be made a primary")
        wait_read_from(guard, [primary])  # which is the replica now
        primary.kill()
        assert [client.get("item:7") for _ in range(200)] == [b"payload 7"] * 200

    def test_where_lookups_go_changes_with_a_reload(self, guard, cluster):
        client = guard.redis()
        client.get("item:7")
        cluster.wait_for_key("item:7")
        wait_read_from(guard, followers(cluster))
        text = guard.file.read_text()
        guard.file.write_text(text.replace('"cache_reads": "replica"', '"cache_reads": "primary"'))
        assert guard.control("POST", "/v1/reload").status_code == 200
        before = lookups(followers(cluster))

        def at_primaries():
            nonlocal before
            now = lookups(followers(cluster))
            client.get("item:7")
            before, same = now, now == before
            return same and lookups(followers(cluster)) == now

        wait_until(at_primaries, PATIENCE, "no lookup at replicas")
        before = lookups(followers(cluster))
        assert [client.get("item:7") for _ in range(50)] == [b"payload 7"] * 50
        assert lookups(followers(cluster)) == before
        guard.file.write_text(text)
        assert guard.control("POST", "/v1/reload").status_code == 200
        wait_read_from(guard, followers(cluster))

    def test_only_those_in_the_zone_are_read_from(self, follow, items, cluster):
        guard = follow(items(), cache=cluster.url, cache_reads="replica",
                       cache_zone="10.1.*,*.a.example")
        client = guard.redis()
        client.get("item:7")
        cluster.wait_for_key("item:7")
        deadline = time.monotonic() + 2 * LAG
        while time.monotonic() < deadline:
            assert client.get("item:7") == b"payload 7"
        assert lookups(followers(cluster)) == 0
        text = guard.file.read_text()
        guard.file.write_text(text.replace("10.1.*", "127.0.*"))
        assert guard.control("POST", "/v1/reload").status_code == 200
        wait_read_from(guard, followers(cluster))


    def test_status_and_metrics_tell_which_are_read_from(self, guard, cluster):
        guard.redis().get("item:7")

        def told(node):
            return next((each for each in nodes(guard) if each["role"] == "replica" and
                         each["address"] == node.address), {"up": False, "why": "not told of"})

        followers_now = followers(cluster)
        for key in ("item:7", *(f"item:{n}" for n in range(1, 30))):
            guard.redis().get(key)  # a worker follows the replicas of whom it is connected to
        for node in followers_now:
            wait_until(lambda: told(node)["up"], PATIENCE, lambda: f"{nodes(guard)}")
            assert told(node)["lag_ms"] < 1000 * LAG and told(node)["why"] is None
        assert {told(node)["primary"] for node in followers_now} == \
            {node.address for node in primaries(cluster)}
        first = followers_now[0]
        with paused(first.process.pid):
            wait_until(lambda: not told(first)["up"] and told(first)["why"], PATIENCE,
                       lambda: f"{nodes(guard)}")
            assert guard.metric("nestguard_cache_node_up", role="replica",
                                address=first.address) == 0
        wait_until(lambda: guard.metric("nestguard_cache_node_up", role="replica",
                                        address=first.address) == 1, PATIENCE,
                   lambda: f"{nodes(guard)}")
        assert guard.status()["backends"]["cache"]["up"]

    def test_connections_that_read_from_replicas_are_none_that_these_evict(self, guard, cluster):
        wait_read_from(guard, followers(cluster))
        readers = [client["flags"] for node in followers(cluster)
                   for client in node.client().client_list() if "r" in client["flags"]]
        assert readers and all("e" in flags for flags in readers)

    def test_check_asks_replicas_too(self, check, database, cluster):
        database.execute(GOOD)
        assert check(keyspace(), cache=cluster.url, cache_reads="replica").findings == []
        report = check(keyspace(), cache=cluster.url, cache_reads="replica", cache_zone="10.1.*")
        assert report.levels() == ["warning", "warning"] and report.status == 0
        assert "no replica in cache_zone" in report.text
        with paused(followers(cluster)[0].process.pid):
            text, _ = check(keyspace(), cache=cluster.url, cache_reads="replica").one("warning")
        assert "cannot be read from" in text


def test_check_refuses_replicas_of_one_server(check, database):
    database.execute(GOOD)
    text, _ = check(keyspace(), cache_reads="replica").one("error")
    assert "redis-sentinel://" in text and "redis-cluster://" in text


class TestBehind:
    """A replica that is up, and gets what its primary does through a gate."""

    @pytest.fixture
    def fleet(self):
        started = Fleet(sentinels=1, replicas=1).start()
        yield started
        started.remove()

    @pytest.fixture
    def replica(self, fleet):
        return fleet.servers[1]

    @pytest.fixture
    def guard(self, follow, items, fleet):
        guard = follow(items(), cache=fleet.url, cache_reads="replica")
        wait_until(lambda: nodes(guard)[0]["up"], PATIENCE, guard.log)
        return guard

    @pytest.fixture
    def gate(self, guard, fleet, replica):
        """The sentinel, which would lead the replica back to where it belongs, sleeps."""
        gate = Gate(fleet.first.port)
        with contextlib.ExitStack() as stack:
            stack.callback(gate.close)
            stack.callback(replica.remove)
            stack.enter_context(paused(fleet.sentinels[0].process.pid))
            replica.client().replicaof("127.0.0.1", gate.port)
            wait_until(lambda: replica.client().info("replication")["master_link_status"] == "up"
                       and replica.client().info("replication")["master_port"] == gate.port,
                       PATIENCE, "the replica's link through the gate")
            yield gate

    @pytest.fixture
    def read(self, guard, fleet, replica, gate):
        """item:7 is cached everywhere, and read from the replica."""
        guard.redis().get("item:7")
        fleet.first.wait_for_key("item:7")
        replica.wait_for_key("item:7")
        wait_read_from(guard, [replica])
        return guard.redis()

    @pytest.mark.parametrize("way", ["GET", "MGET"])
    def test_a_deleted_value_is_seen_no_longer_than_cache_max_lag(
            self, guard, fleet, replica, gate, read, database, way):
        old, new = {"GET": (b"payload 7", b"new"), "MGET": ([b"payload 7"], [b"new"])}[way]
        gate.hold_answers()
        database.execute("UPDATE items SET payload = 'new' WHERE id = 7")
        wait_until(lambda: fleet.first.client().get("item:7") != b"payload 7", PATIENCE,
                   "the deletion at the primary")
        purged = time.monotonic()
        late, seen = [], 0
        while time.monotonic() < purged + 3 * LAG:
            asked = time.monotonic()
            value = ask(read, way, "item:7")
            assert value in (old, new)
            if value == old:
                seen += 1
                late += [asked - purged] * (asked > purged + LAG)
        assert seen, "the replica was not behind: nothing was shown"
        assert not late
        assert replica.client().get("item:7") == b"payload 7", "the gate let something through"
        assert fleet.first.client().get("item:7") == b"new"
        gate.release()
        wait_read_from(guard, [replica])
        assert read.get("item:7") == b"new"

    def test_a_client_reads_what_it_wrote(self, guard, fleet, replica, gate, read):
        wait_read_from(guard, [replica])
        gate.hold_answers()
        read.set("item:7", "mine")
        assert [read.get("item:7") for _ in range(20)] == [b"mine"] * 20
        assert replica.client().get("item:7") == b"payload 7"
        gate.release()

    @pytest.mark.parametrize("option", ["PXAT", "EXAT"])
    def test_a_client_reads_no_more_what_it_read_for_the_last_time(
            self, guard, fleet, replica, gate, read, database, option):
        wait_read_from(guard, [replica])
        gate.hold_answers()
        before = lookups([replica])
        assert read.execute_command("GETEX", "item:7", option, 1) in (b"payload 7", None)
        assert [read.get("item:7") for _ in range(20)] == [b"payload 7"] * 20
        assert lookups([replica]) == before
        gate.release()

    def test_what_it_has_not_yet_is_asked_of_the_primary(self, guard, fleet, replica, gate, read):
        wait_read_from(guard, [replica])
        gate.hold_answers()
        fleet.first.client().set("item:8", "of the primary")
        client, loads = guard.redis(), guard.counter("nestguard_loads_total", result="row")
        before = lookups([replica])
        assert client.get("item:8") == b"of the primary"
        assert lookups([replica]) == before + 1, "it was not asked"
        assert guard.counter("nestguard_loads_total", result="row") == loads
        assert guard.metric("nestguard_replica_misses_total") >= 1
        assert client.mget("item:7", "item:8") == [b"payload 7", b"of the primary"]
        assert client.exists("item:7", "item:8") == 2
        gate.release()

    def test_one_whose_link_is_down_is_read_from_no_more(self, guard, fleet, replica, gate, read):
        gate.hold_answers()  # or it would be linked again at once
        replica.client().client_kill_filter(_type="master")

        def at_primary():
            before = lookups([replica])
            assert read.get("item:7") == b"payload 7"
            return lookups([replica]) == before

        wait_until(at_primary, PATIENCE, "lookups at the primary")
        wait_until(lambda: "link" in (nodes(guard)[-1]["why"] or ""), PATIENCE,
                   lambda: f"{nodes(guard)}")
        gate.release()
        with contextlib.suppress(redis.RedisError):
            wait_read_from(guard, [replica])
