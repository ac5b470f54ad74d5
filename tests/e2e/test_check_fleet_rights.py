"""Each server of a fleet has users of its own: `check` tries what they may do where the guard would."""
import contextlib

import pytest

from checking import GOOD, assert_in_order, check, keyspace  # check is a fixture
from clusters import Cluster
from played import Node, ranges
from sentinels import Fleet
from servers import PATIENCE
from test_check_rights import documented_rights
from wire import Wire

IN_A_CLUSTER = ["+cluster|slots", "+cluster|info", "+cluster|myid", "+asking", "+readonly"]
FOR_SENTINELS = ["+sentinel|get-master-addr-by-name", "+subscribe", "+unsubscribe", "&+switch-master"]


def let_in(server, *rules):
    server.client().execute_command("ACL", "SETUSER", "nestguard", "reset", "on", ">secret", *rules)


def rights(*, without=(), extra=()):
    return [rule for rule in [*documented_rights(), *extra] if rule not in without]


def with_user(url):
    return url.replace("://", "://nestguard:secret@")


@contextlib.contextmanager
def lacking(server, *rules):
    """Its user lacks these, as ACL SETUSER takes them away."""
    for rule in rules:
        server.client().execute_command("ACL", "SETUSER", "nestguard", rule.replace("+", "-"))
    yield
    for rule in rules:
        server.client().execute_command("ACL", "SETUSER", "nestguard", rule)


class TestCluster:
    @pytest.fixture(scope="class")
    def shared(self):
        started = Cluster(primaries=2, replicas=1).start()
        for node in started.nodes:
            let_in(node, *rights(extra=IN_A_CLUSTER))
        yield started
        started.remove()

    @pytest.fixture
    def look(self, check, database, shared):
        database.execute(GOOD)
        return lambda **settings: check(keyspace(), cache=with_user(shared.url), **settings)

    def test_the_documented_rights_are_enough(self, look):
        assert_in_order(look(cache_reads="replica"))

    def test_one_primary_whose_user_may_less_is_told(self, look, shared):
        node = shared.primaries[1]
        with lacking(node, "+del"):
            report = look()
        text, remedy = report.one("error")
        assert report.findings[0][0] == f"cache {node.address}" and "may not DEL" in text
        assert remedy == "ACL SETUSER nestguard +del"

    @pytest.mark.parametrize("right", ["readonly", "get", "mget", "exists", "info"])
    def test_a_replica_that_may_not_be_read_is_told_where_it_is_to_be(self, look, shared, right):
        node = shared.followers[0]
        with lacking(node, "+" + right):
            assert_in_order(look())
            report = look(cache_reads="replica")
        text, remedy = report.one("warning")
        assert report.findings[0][0] == f"replica {node.address}" and right.upper() in text
        assert "goes to its primary" in text and remedy == f"ACL SETUSER nestguard +{right}"

    def test_what_is_never_sent_to_a_replica_it_need_not_allow(self, look, shared):
        with lacking(shared.followers[0], "+del", "+set", "+scan", "+asking"), \
                lacking(shared.primaries[0], "+readonly"):
            assert_in_order(look(cache_reads="replica"))


class TestVersions:
    @pytest.fixture
    def nodes(self, cache):
        made = [Node(cache) for _ in range(2)]
        for node, (first, last) in zip(made, ((0, 8000), (8001, 16383))):
            node.range = (first, last, node.port)
        for node in made:
            node.slots = ranges(*(each.range for each in made))
        yield made
        for node in made:
            node.close()

    @pytest.mark.parametrize("others", [True, False])
    def test_nodes_of_different_versions_are_told(self, check, database, cache, nodes, others):
        version = cache.client().info("server")["redis_version"].encode()

        def info(words):
            if words[0].upper() != b"INFO":
                return None
            with Wire(cache.port, PATIENCE) as wire:
                said = wire.ask(*words).replace(b"cluster_enabled:0", b"cluster_enabled:1")
            return said.replace(b"_version:" + version, b"_version:" + version[:-1] + b"x")

        if others:
            nodes[1].answer = info
        database.execute(GOOD)
        report = check(keyspace(), cache=nodes[0].url)
        told = [text for place, level, text, _ in report.findings if "different versions" in text]
        assert len(told) == others, report.text
        for node in nodes if others else []:
            assert f"127.0.0.1:{node.port}" in told[0]


class TestSentinel:
    @pytest.fixture(scope="class")
    def shared(self):
        started = Fleet(sentinels=2, replicas=1).start()
        for server in started.servers:
            let_in(server, *rights())
        for sentinel in started.sentinels:
            let_in(sentinel, *FOR_SENTINELS)
        yield started
        started.remove()

    @pytest.fixture
    def look(self, check, database, shared):
        database.execute(GOOD)
        return lambda **settings: check(keyspace(), cache=with_user(shared.url),
                                        sentinel_user="nestguard", sentinel_password="secret",
                                        **settings)

    def test_the_documented_rights_are_enough(self, look):
        assert_in_order(look(cache_reads="replica"))

    def test_the_primary_and_the_replica_are_tried_each_by_itself(self, look, shared):
        primary, replica = shared.servers
        with lacking(primary, "+scan"), lacking(replica, "+get"):
            report = look(cache_reads="replica")
        assert sorted(finding[:2] for finding in report.findings) == [
            (f"cache 127.0.0.1:{primary.port}", "error"),
            (f"replica 127.0.0.1:{replica.port}", "warning")]

    def test_a_sentinel_that_may_not_be_asked_is_a_warning(self, look, shared):
        sentinel = shared.sentinels[1]
        with lacking(sentinel, "+sentinel|get-master-addr-by-name"):
            report = look()
        text, _ = report.one("warning")
        assert report.findings[0][0] == f"sentinel {sentinel.address}"
        assert "permissions" in text

    def test_a_sentinel_that_may_not_be_heard_is_a_note(self, look, shared):
        with lacking(shared.sentinels[1], "+subscribe"):
            report = look()
        assert report.findings == []
        (note,) = [note for note in report.notes if "SUBSCRIBE" in note]
        assert "a second later" in note
