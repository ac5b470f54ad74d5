"""A cache that is a Redis Cluster: the guard finds each key's node, and clients see one Redis."""
import socket

import pytest
import redis

from built import SANITIZED
from checking import GOOD, check, keyspace  # check is a fixture
from clusters import slot_of
from following import follow, wait_generation  # follow is a fixture
from ports import free_port
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command


@pytest.fixture
def cluster(cluster):
    """Empty, and whole."""
    for node in cluster.primaries:
        node.ensure_running()
    cluster.settle()
    for node in cluster.primaries:
        node.client().flushall()
        node.client().config_resetstat()
    yield cluster


@pytest.fixture
def guard(follow, items, cluster):
    return follow(items(), cache=cluster.url)


def on_each(cluster, count=8, prefix="plain:"):
    """Names of keys, some of each node."""
    names = [f"{prefix}{n}" for n in range(count * 8)]
    owners = cluster.owners()
    chosen = {}
    for name in names:
        chosen.setdefault(owners[slot_of(name)].port, []).append(name)
    assert len(chosen) == len(cluster.primaries)
    return [name for each in chosen.values() for name in each[:count]]


def number_of(wire):
    return int(wire.ask("CLIENT", "ID")[1:])


def one_on_each_worker(guard, workers):
    wires = {}
    def are_there():
        wire = guard.wire()
        wires[number_of(wire) >> 40] = wire
        return len(wires) == workers
    wait_until(are_there, PATIENCE, "a client on each worker")
    return wires.values()


def blocked_on(cluster):
    return sum(node.client().info("clients")["blocked_clients"] for node in cluster.primaries)


class TestGuardedKeys:
    def test_they_are_loaded_filled_and_hit_on_whatever_node(self, guard, cluster):
        client = guard.redis()
        for n in range(1, 31):
            assert client.get(f"item:{n}") == b"payload %d" % n
            cluster.wait_for_key(f"item:{n}")
        assert all(node.client().dbsize() for node in cluster.primaries)
        hits = guard.counter("nestguard_cache_hits_total")
        assert client.mget([f"item:{n}" for n in range(1, 31)]) == \
            [b"payload %d" % n for n in range(1, 31)]
        assert guard.counter("nestguard_cache_hits_total") == hits + 30

    def test_those_without_a_row_are_rejected(self, guard, cluster):
        client = guard.redis()
        assert client.mget("item:1", "item:1000", "plain", "item:2") == \
            [b"payload 1", None, None, b"payload 2"]
        assert client.get("item:1000") is None
        assert client.exists("item:1000", "item:1", "item:2", "item:2000") == 2
        assert guard.counter("nestguard_rejected_total") >= 3

    def test_a_row_that_changes_is_purged_from_its_node(self, guard, cluster, database):
        client = guard.redis()
        for n in range(1, 31):
            client.get(f"item:{n}")
            cluster.wait_for_key(f"item:{n}")
        database.execute("UPDATE items SET payload = 'new ' || id")
        for n in range(1, 31):
            wait_until(lambda n=n: client.get(f"item:{n}") == b"new %d" % n, PATIENCE,
                       f"the new value of item:{n}")

    def test_a_keyspace_is_swept_from_all_nodes(self, guard, cluster, database):
        client = guard.redis()
        for n in range(1, 31):
            client.get(f"item:{n}")
            cluster.wait_for_key(f"item:{n}")
        client.set("plain", "stays")
        database.execute("ALTER TABLE items ALTER payload TYPE varchar(100)")
        for n in range(1, 31):
            cluster.wait_gone(f"item:{n}")
        assert client.get("plain") == b"stays"

    def test_the_admin_explains_and_deletes_a_key(self, guard, cluster, database):
        client = guard.redis()
        for n in range(1, 10):
            client.get(f"item:{n}")
            cluster.wait_for_key(f"item:{n}")
            assert guard.explain(f"item:{n}")["cached"] is True
        database.execute("DELETE FROM items WHERE id = 5")
        wait_until(lambda: client.get("item:5") is None, PATIENCE, "the deletion")

    def test_writes_are_hints(self, guard, cluster):
        client = guard.redis()
        assert client.mset({f"item:{n}": f"written {n}" for n in range(1001, 1030)})
        for n in range(1001, 1030):
            assert client.get(f"item:{n}") == b"written %d" % n
        assert client.delete(*[f"item:{n}" for n in range(1001, 1030)]) == 29


    def test_a_template_may_have_a_hash_tag(self, follow, items, cluster):
        guard = follow(items(key="item:{{{id}}}:x"), cache=cluster.url)
        client = guard.redis()
        assert client.mget("item:{7}:x", "item:{1000}:x", "other:{7}") == [b"payload 7", None, None]
        wait_until(lambda: cluster.node_of("{7}").client().exists("item:{7}:x"), PATIENCE,
                   "the value on the tag's node")


    def test_rows_are_cached_as_hashes_on_their_nodes(self, follow, items, cluster):
        guard = follow(items(fill="hash", value="json"), cache=cluster.url)
        client = guard.redis()
        for n in range(1, 31):
            assert client.hget(f"item:{n}", "payload") == b"payload %d" % n
            cluster.wait_for_key(f"item:{n}")
        for n in range(1, 31):
            assert client.hget(f"item:{n}", "payload") == b"payload %d" % n
            assert client.hmget(f"item:{n}", "no_such_column", "id") == [None, b"%d" % n]
            assert client.hget(f"item:{n}", "no_such_column") is None
        assert client.hget("item:1000", "payload") is None


class TestOrdinaryKeys:
    def test_each_goes_to_its_node(self, guard, cluster):
        client = guard.redis()
        for name in on_each(cluster):
            assert client.set(name, name + "!")
            assert cluster.get(name) == name.encode() + b"!"
            assert client.get(name) == name.encode() + b"!"
            assert client.append(name, "?") and client.strlen(name) == len(name) + 2

    def test_several_at_once_are_split_and_put_together(self, guard, cluster):
        client = guard.redis()
        names = on_each(cluster)
        assert client.mset({name: name for name in names})
        assert client.mget(names) == [name.encode() for name in names]
        assert client.exists(*names, "nobody") == len(names)
        assert client.touch(*names) == len(names)
        assert client.unlink(*names[:5]) == 5
        assert client.delete(*names) == len(names) - 5
        assert client.mget(names) == [None] * len(names)

    def test_more_than_are_under_way_at_a_time_go_in_pieces(self, guard, cluster):
        """What stands behind is served when all of it has been done."""
        names = [f"plain:{n}" for n in range(5000)]
        both = [word for name in names for word in (name, "v")]
        with guard.wire() as wire:
            assert wire.ask("MSET", *both[:2]) == b"+OK\r\n"
            wire.send(command("MSET", *both) + command("GET", names[-1])
                      + command("TOUCH", *names, "nobody") + command("SET", "plain:0", "w")
                      + command("CLIENT", "REPLY", "SKIP") + command("UNLINK", *names[1::2])
                      + command("DEL", *names) + command("SET", names[-1], "x")
                      + command("GET", names[-1]))
            assert wire.read_replies(7) == (b"+OK\r\n" + bulk("v") + b":5000\r\n" + b"+OK\r\n"
                                            + b":2500\r\n" + b"+OK\r\n" + bulk("x"))
        assert guard.redis().dbsize() == 1

    def test_the_first_error_of_pieces_stands_and_the_others_are_done(self, guard, cluster):
        names = on_each(cluster, count=900)
        home = cluster.owners()[slot_of(names[0])]
        home.client().config_set("maxmemory", 1)
        try:
            with guard.wire() as wire:
                told = wire.ask("MSET", *[word for name in names for word in (name, "v")])
                assert told.startswith(b"-OOM "), told
        finally:
            home.client().config_set("maxmemory", 0)
        assert guard.redis().dbsize() == 1800

    def test_whoever_leaves_in_the_middle_of_pieces_holds_nobody_up(self, guard, cluster):
        """Parts that a node has not answered end them, too."""
        names = on_each(cluster, count=2000)
        home = cluster.owners()[slot_of(names[0])]
        home.pause()
        try:
            with guard.wire() as wire:
                wire.send(command("DEL", *names))
                wait_until(lambda: guard.status()["clients"] == 1, PATIENCE, guard.status)
        finally:
            home.resume()
        assert guard.redis().delete(*names) == 0

    def test_a_deletion_of_a_million_keys_takes_little(self, guard, cluster):
        before = guard.resident_bytes()
        with guard.wire() as wire:
            count = 100_000 if SANITIZED else 1_000_000
            wire.send(command("DEL", *[f"plain:{n}" for n in range(count)]))
            assert wire.read_replies(1) == b":0\r\n"
        peak = guard.peak_bytes() - before
        assert SANITIZED or peak < 200_000_000, f"{peak / 1e6:.0f} MB"

    def test_those_in_one_slot_are_one_command(self, guard, cluster):
        client = guard.redis()
        assert client.mset({"{tag}a": "1", "{tag}b": "2"})
        assert client.mget("{tag}a", "{tag}b", "{tag}c") == [b"1", b"2", None]
        node = cluster.node_of("{tag}a")
        assert node.calls("mset") == 1 and node.calls("mget") == 1

    def test_what_a_cluster_refuses_is_refused_in_its_words(self, guard, cluster):
        client = guard.redis()
        names = on_each(cluster, 1)
        with pytest.raises(redis.ResponseError, match="CROSSSLOT|same slot"):
            client.sunion(*names)
        with pytest.raises(redis.ResponseError, match="CROSSSLOT|same slot"):
            client.rename(names[0], names[1])
        with pytest.raises(redis.ResponseError, match="SELECT is not allowed in cluster mode"):
            client.execute_command("SELECT", "1")
        assert client.execute_command("SELECT", "0")

    def test_what_is_not_supported_is_refused_by_name(self, guard, cluster):
        client = guard.redis()
        for words in (["MONITOR"], ["SLOWLOG", "GET"], ["SCRIPT", "DEBUG", "YES"],
                      ["LATENCY", "RESET"]):
            with pytest.raises(redis.ResponseError, match=f"unsupported: '{words[0]}'"):
                client.execute_command(*words)

    def test_of_users_it_is_said_that_the_caches_own_are_not_supported(self, guard, cluster):
        for words in (["AUTH", "somebody", "x"], ["HELLO", "2", "AUTH", "somebody", "x"]):
            with pytest.raises(redis.ResponseError, match=(
                    f"unsupported: '{words[0]}' as a user of the cache's own ACL is not")):
                guard.redis().execute_command(*words)

    def test_replies_come_in_the_order_of_commands(self, guard, cluster):
        names = on_each(cluster) * 20
        pipe = guard.redis().pipeline(transaction=False)
        for number, name in enumerate(names):
            pipe.set(name, number)
            pipe.get(name)
        assert pipe.execute() == [each for number in range(len(names))
                                  for each in (True, b"%d" % number)]

    def test_what_asks_for_a_whole_server_is_asked_of_all_nodes(self, guard, cluster):
        client = guard.redis()
        names = on_each(cluster)
        client.mset({name: "x" for name in names})
        assert client.dbsize() == len(names)
        assert sorted(client.keys("plain:*")) == sorted(name.encode() for name in names)
        assert sorted(client.scan_iter(count=3)) == sorted(name.encode() for name in names)
        assert client.randomkey() in [name.encode() for name in names]
        sha = client.script_load("return ARGV[1]")
        assert [client.evalsha(sha, 1, name, "a") for name in names] == [b"a"] * len(names)
        assert client.script_exists(sha, "0" * 40) == [True, False]
        client.flushall()
        assert [node.client().dbsize() for node in cluster.primaries] == [0, 0, 0]

    def test_large_replies_of_several_nodes_become_one(self, guard, cluster):
        client = guard.redis()
        pipe = client.pipeline(transaction=False)
        for n in range(30000):
            pipe.set(f"a-rather-long-name-of-a-key-{n}", "")
        pipe.execute()
        assert len(client.keys("*")) == 30000

    def test_clients_see_one_plain_redis(self, guard, cluster):
        client = guard.redis()
        assert client.info("server")["redis_mode"] == "standalone"
        assert client.info("cluster")["cluster_enabled"] == 0
        assert b"standalone" in guard.wire().ask("HELLO", "2")
        for words in (["CLUSTER", "SLOTS"], ["READONLY"], ["READWRITE"], ["ASKING"]):
            with pytest.raises(redis.ResponseError, match="cluster support disabled"):
                client.execute_command(*words)


class TestState:
    def test_a_transaction_runs_on_the_node_of_its_keys(self, guard, cluster):
        for name in on_each(cluster, 2):
            pipe = guard.redis().pipeline()
            pipe.set(name, "1").incr(name).get(name)
            assert pipe.execute() == [True, 2, b"2"]
            assert cluster.get(name) == b"2"

    def test_its_first_key_may_come_late(self, guard, cluster):
        for name in on_each(cluster, 2):
            wire = guard.wire()
            assert wire.ask("MULTI") == b"+OK\r\n"
            assert wire.ask("PING") == b"+QUEUED\r\n"
            assert wire.ask("ECHO", "x") == b"+QUEUED\r\n"
            assert wire.ask("SET", name, "5") == b"+QUEUED\r\n"
            assert wire.ask("EXEC") == b"*3\r\n+PONG\r\n$1\r\nx\r\n+OK\r\n"
            assert cluster.get(name) == b"5"

    def test_unwatch_before_its_first_key_binds_it_to_no_node(self, guard, cluster):
        """What it is bound to for other reasons is the same one for all that a client begins."""
        for name in on_each(cluster, 2):
            with guard.wire() as wire:
                sent = (("MULTI",), ("UNWATCH",), ("SET", name, "6"), ("EXEC",))
                wire.send(b"".join(command(*words) for words in sent))
                assert wire.read_replies(4) == b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+OK\r\n"

    def test_a_command_that_cannot_be_right_is_refused_before_its_first_key(self, guard):
        for words in (["ECHO"], ["TIME", "x"], ["PUBLISH", "x"], ["UNWATCH", "x"]):
            with guard.wire() as wire:
                assert wire.ask("MULTI") == b"+OK\r\n"
                assert wire.ask(*words).startswith(b"-ERR wrong number of arguments"), words
                assert wire.ask("EXEC").startswith(b"-EXECABORT")

    def test_wait_in_it_counts_replicas_of_its_node(self, guard, cluster):
        for name in on_each(cluster, 1):
            wire = guard.wire()
            sent = (("MULTI",), ("SET", name, "7"), ("WAIT", "0", "0"), ("EXEC",), ("GET", name))
            wire.send(b"".join(command(*words) for words in sent))
            assert [wire.read_reply() for _ in sent][3:] == [b"*2\r\n+OK\r\n:0\r\n", bulk("7")]

    def test_what_all_nodes_are_asked_for_is_refused_in_it(self, guard):
        for words in (["DBSIZE"], ["SCRIPT", "LOAD", "return 1"], ["SCRIPT", "KILL"],
                      ["INFO"], ["CLUSTER", "INFO"]):
            with guard.wire() as wire:
                assert wire.ask("MULTI") == b"+OK\r\n"
                assert b"inside MULTI" in wire.ask(*words)
                assert wire.ask("EXEC").startswith(b"-EXECABORT")

    def test_with_much_before_its_first_key_it_runs_somewhere(self, guard, cluster):
        """Its commands wait there, and not in the guard's memory."""
        text = b"x" * 100_000
        with guard.wire() as wire:
            assert wire.ask("MULTI") == b"+OK\r\n"
            assert wire.ask("ECHO", text) == b"+QUEUED\r\n"
            assert guard.status()["own_connections"] == 0
            for _ in range(19):
                assert wire.ask("ECHO", text) == b"+QUEUED\r\n"
            assert guard.status()["own_connections"] == 1
            assert wire.ask("EXEC") == b"*20\r\n" + bulk(text) * 20

    def test_without_keys_it_runs_somewhere(self, guard, cluster):
        wire = guard.wire()
        assert wire.ask("MULTI") == b"+OK\r\n"
        assert wire.ask("EXEC") == b"*0\r\n"
        assert wire.ask("MULTI") == b"+OK\r\n"
        assert wire.ask("PING") == b"+QUEUED\r\n"
        assert wire.ask("DISCARD") == b"+OK\r\n"
        assert wire.ask("PING") == b"+PONG\r\n"

    def test_keys_of_two_nodes_are_refused_in_it(self, guard, cluster):
        one, other, *_ = on_each(cluster, 1)
        wire = guard.wire()
        assert wire.ask("MULTI") == b"+OK\r\n"
        assert wire.ask("SET", one, "1") == b"+QUEUED\r\n"
        assert wire.ask("SET", other, "1").startswith(b"-CROSSSLOT")
        assert wire.ask("EXEC").startswith(b"-EXECABORT")
        assert wire.ask("SET", other, "2") == b"+OK\r\n"

    def test_one_client_goes_from_node_to_node(self, guard, cluster):
        client = guard.redis()
        for name in on_each(cluster, 3):
            pipe = client.pipeline()
            pipe.watch(name)
            pipe.multi()
            pipe.set(name, "w")
            assert pipe.execute() == [True]
            client.rpush("list:" + name, "a")
            assert client.blpop("list:" + name, timeout=5) == ((b"list:" + name.encode()), b"a")

    @pytest.mark.parametrize("between", [["ECHO", "x"], ["PING"], ["WATCH", None, "UNWATCH"]])
    def test_a_transaction_behind_one_elsewhere_is_where_its_key_is(self, guard, cluster, between):
        """All in one pipeline: what comes between needs no key."""
        names = on_each(cluster, 2)
        wire = guard.wire()
        sent = []
        for name in names + names[::-1]:
            sent += [("MULTI",), ("SET", name, "1"), ("EXEC",)]
            sent += [("WATCH", name), ("UNWATCH",)] if "WATCH" in between else [between]
        wire.send(b"".join(command(*words) for words in sent))
        replies = [wire.read_reply() for _ in sent]
        assert not [reply for reply in replies if reply.startswith(b"-")], replies

    def test_nothing_overtakes_anything_behind_a_transaction(self, guard, cluster):
        """It takes a while to write the value, and none to ask for its length."""
        value = "x" * 900_000
        wire = guard.wire()
        for name in on_each(cluster, 3):
            wire.send(b"".join(command(*words) for words in [
                ("MULTI",), ("SET", name, "1"), ("EXEC",), ("SET", name, value), ("ECHO", "x"),
                ("STRLEN", name)]))
            replies = [wire.read_reply() for _ in range(6)]
            assert replies[-1] == b":900000\r\n", replies

    def test_blocking_waits_on_the_keys_node(self, guard, cluster):
        for name in on_each(cluster, 1):
            wire = guard.wire()
            wire.send(command("BLPOP", name, "20"))
            node = cluster.node_of(name)
            wait_until(lambda: int(node.client().info("clients")["blocked_clients"]), PATIENCE,
                       "the client to wait")
            guard.redis().rpush(name, "x")
            assert wire.read_reply().endswith(b"$1\r\nx\r\n")

    @pytest.mark.parametrize("word, reply", [("TIMEOUT", b"*-1\r\n"), ("ERROR", b"-UNBLOCKED ")])
    def test_who_is_blocked_is_unblocked_by_its_id_on_its_node_alone(self, follow, items, cluster,
                                                                     word, reply):
        guard = follow(items(), cache=cluster.url, workers=2)
        for admin in one_on_each_worker(guard, 2):
            waiting = []
            for name in on_each(cluster, 2):
                wire = guard.wire()
                waiting.append((number_of(wire), wire))
                assert admin.ask("CLIENT", "UNBLOCK", waiting[-1][0], word) == b":0\r\n"
                wire.send(command("BLPOP", name, 0))
            wait_until(lambda: blocked_on(cluster) == len(waiting), PATIENCE, "all to wait")
            while waiting:
                number, wire = waiting.pop()
                assert admin.ask("CLIENT", "UNBLOCK", number, word) == b":1\r\n"
                assert wire.read_reply().startswith(reply)
                assert blocked_on(cluster) == len(waiting)
                assert wire.ask("SET", "plain", "x") == b"+OK\r\n"

    def test_a_watched_key_that_changes_makes_exec_fail(self, guard, cluster):
        for name in on_each(cluster, 1):
            wire = guard.wire()
            assert wire.ask("WATCH", name) == b"+OK\r\n"
            guard.redis().set(name, "other")
            assert wire.ask("MULTI") == b"+OK\r\n"
            assert wire.ask("SET", name, "mine") == b"+QUEUED\r\n"
            assert wire.ask("EXEC") == b"*-1\r\n"

    def test_messages_reach_subscribers(self, guard, cluster):
        listeners = [guard.redis().pubsub() for _ in range(4)]
        for listener in listeners:
            listener.subscribe("news")
            assert listener.get_message(timeout=5)["type"] == "subscribe"
        guard.redis().publish("news", "now")
        for listener in listeners:
            assert listener.get_message(timeout=5)["data"] == b"now"


def test_what_would_be_published_in_another_cache_is_not_in_the_cluster_that_stays(
        guard, items, database, cluster):
    guard.configure({"cache": f"redis://127.0.0.1:{free_port()}", "database": database.url,
                     "sync": "replication", "max_lag": "2s",
                     "keyspaces": [items(publish={"key": "rows"})]})
    said = {change["what"]: change for change in
            guard.control("POST", "/v1/reload").json()["changes"]}
    for what in ("cache", "publish of keyspace items"):
        assert not said[what]["taken"] and "cannot connect" in said[what]["why"], said
    guard.control("POST", "/v1/rebuild")
    wait_generation(guard, 2)
    assert guard.redis().get("item:7") == b"payload 7"
    cluster.wait_for_key("item:7")
    assert not any(node.client().keys("rows*") for node in cluster.primaries)


class TestCheck:
    def test_it_looks_at_every_node(self, check, database, cluster):
        database.execute(GOOD)
        report = check(keyspace(), cache=cluster.url)
        assert report.findings == [] and report.status == 0, report.text
        assert sum("cluster-require-full-coverage" in note for note in report.notes) == 3

    def test_a_node_that_refuses_the_password_is_an_error(self, check, database, cluster):
        database.execute(GOOD)
        first, *others = cluster.primaries
        first.ask("CONFIG", "SET", "requirepass", "secret")
        try:
            report = check(keyspace(), cache=cluster.url)
        finally:
            first.client(password="secret").config_set("requirepass", "")
        assert report.levels().count("error") == 1, report.text
        assert first.address in report.text and "NOAUTH" in report.text

    def test_a_slot_without_a_node_is_told_of(self, check, database, cluster):
        database.execute(GOOD)
        owner = cluster.owners()[5000]
        for node in cluster.primaries:
            node.ask("CLUSTER", "DELSLOTS", 5000)
        try:
            report = check(keyspace(), cache=cluster.url)
        finally:
            owner.ask("CLUSTER", "ADDSLOTS", 5000)
            cluster.settle()
        assert any("1 of the cluster's slots" in each for each in report.text.splitlines()), \
            report.text

    def test_a_cluster_is_not_one_server_nor_the_other_way_round(self, check, database, cluster,
                                                                  cache):
        database.execute(GOOD)
        one = f"redis://{cluster.primaries[0].address}"
        assert "redis-cluster://" in check(keyspace(), cache=one).one("error")[0]
        assert check(keyspace(), cache=f"redis-cluster://127.0.0.1:{cache.port}").status != 0

    def test_what_is_published_must_have_one_slot(self, check, database, cluster):
        def said(key):
            return check(keyspace(publish={"key": key}), cache=cluster.url, sync="replication").text

        database.execute(GOOD)
        for key in ("rows", "{}rows", "rows}{"):
            assert "publish.key needs a hash tag" in said(key)
        assert "publish of" not in said("{rows}") and "hash tag" not in said("{rows}")
        cluster.node_of("{rows}").client().set("{rows}", "text")
        assert '"{rows}" is there already (a string)' in said("{rows}")


class TestSlotsThatMove:
    def test_a_moved_slot_is_followed(self, guard, cluster):
        client = guard.redis()
        names = [f"{{moving}}{n}" for n in range(20)]
        for name in names:
            client.set(name, name)
        slot = slot_of("{moving}")
        to = next(node for node in cluster.primaries if node is not cluster.owners()[slot])
        giver = cluster.move(slot, to)
        try:
            assert client.mget(names) == [name.encode() for name in names]
            for name in names:
                assert client.get(name) == name.encode()
            assert client.mset({name: "new" for name in names})
            assert to.client().get(names[0]) == b"new"
        finally:
            cluster.move(slot, giver)

    def test_one_on_its_way_is_asked_for(self, guard, cluster):
        client = guard.redis()
        slot = slot_of("{moving}")
        client.set("{moving}here", "1")
        to = next(node for node in cluster.primaries if node is not cluster.owners()[slot])
        giver = cluster.begin_move(slot, to)
        try:
            assert client.get("{moving}here") == b"1"
            assert client.set("{moving}there", "2")
            assert client.get("{moving}there") == b"2"
            cluster.move_keys(slot, giver, to)
            assert client.get("{moving}here") == b"1"
            pipe = client.pipeline(transaction=False)
            for n in range(200):
                pipe.set("{moving}n", n)
                pipe.get("{moving}n")
            assert pipe.execute()[1::2] == [b"%d" % n for n in range(200)]
        finally:
            cluster.end_move(slot, giver, to)
            cluster.move(slot, giver)

    def test_purges_follow_it(self, guard, cluster, database):
        client = guard.redis()
        assert client.get("item:7") == b"payload 7"
        cluster.wait_for_key("item:7")
        slot = slot_of("item:7")
        to = next(node for node in cluster.primaries if node is not cluster.owners()[slot])
        giver = cluster.begin_move(slot, to)
        try:
            cluster.move_keys(slot, giver, to)
            database.execute("UPDATE items SET payload = 'new' WHERE id = 7")
            wait_until(lambda: client.get("item:7") == b"new", PATIENCE, "the new value")
        finally:
            cluster.end_move(slot, giver, to)
            cluster.move(slot, giver)
        assert client.get("item:7") == b"new"


def test_what_a_script_says_of_another_node_leads_nobody_there(guard, cluster):
    """A client may have any error returned; the map is the nodes' own, and the password for them alone."""
    names = on_each(cluster, 1)
    with socket.create_server(("127.0.0.1", 0)) as stranger, guard.wire() as wire:
        port = stranger.getsockname()[1]
        stranger.setblocking(False)
        for name in names:
            for kind in "MOVED", "ASK":
                script = f"return redis.error_reply('{kind} {slot_of(name)} 127.0.0.1:{port}')"
                assert wire.ask("EVAL", script, "1", "foo").startswith(b"-TRYAGAIN")
        for name in names * 20:
            assert wire.ask("SET", name, "v") == b"+OK\r\n"
            assert wire.ask("GET", name) == b"$1\r\nv\r\n"
        with pytest.raises(BlockingIOError):
            stranger.accept()


def test_a_script_goes_on_to_the_node_that_has_its_key(guard, cluster):
    """Its node says so, before the map knows of it."""
    name = on_each(cluster, 1)[0]
    with guard.wire() as wire:
        assert wire.ask("SET", name, "v") == b"+OK\r\n"
        giver = cluster.node_of(name)
        cluster.move(slot_of(name), next(node for node in cluster.primaries if node is not giver))
        assert wire.ask("EVAL", "return redis.call('GET', KEYS[1])", "1", name) == b"$1\r\nv\r\n"


def test_the_last_value_wins_in_a_large_write_while_its_slot_moves(guard, cluster):
    name = on_each(cluster, 1)[0]
    words = [word for n in range(3000) for word in (name if n % 400 == 350 else f"plain:{n}", str(n))]
    slot = slot_of(name)
    for _ in range(20):
        wait_until(lambda: cluster.agrees_on(slot), PATIENCE, "one owner of the slot")
        giver = cluster.node_of(name)
        with guard.wire() as wire:
            wire.send(command("MSET", *words))
            cluster.move(slot, next(node for node in cluster.primaries if node is not giver))
            assert wire.read_reply() == b"+OK\r\n"
            assert wire.ask("GET", name) == b"$4\r\n2750\r\n"
