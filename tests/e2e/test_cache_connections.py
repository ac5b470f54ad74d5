"""Another number of connections to the cache is taken by a reload, while clients go on: nobody gets
an error, and no command overtakes another of its client."""
import contextlib
import itertools

import pytest

from beside import redis_beside
from clusters import Cluster, slot_of
from gate import Gate
from servers import PATIENCE
from test_cache_moves import Pipelines, moving  # moving is a fixture
from waiting import wait_until
from wire import bulk

WORKERS = 2


class Counting(Pipelines):
    """Clients that always have something under way: each round is sent before the last one is
    answered. Their own counters tell whether anything came before its turn."""

    def run(self, n):
        with self.guard.wire() as wire:
            try:
                if self.resp3:
                    wire.send(b"HELLO 3\r\n")
                    wire.read_replies(1)
                wanted = self.send_round(wire, n, 0)
                for number in itertools.count(1):
                    before, wanted = wanted, self.send_round(wire, n, number)
                    found = wire.read_replies(20)
                    if found != before:
                        raise AssertionError(f"{found!r} and not {before!r}")
                    self.rounds[n] += 1
                    if self.ended.is_set():
                        return
            except Exception as problem:  # pylint: disable=broad-except
                self.problems.append(repr(problem))

    def send_round(self, wire, n, number):
        sent = wanted = b""
        for row in range(1, 6):
            value = b"%d-%d" % (number, row)
            sent += b"INCR count:%d\r\nGET item:%d\r\nSET plain:%d %s\r\nGET plain:%d\r\n" % (
                n, row, n, value, n)
            wanted += b":%d\r\n" % (5 * number + row) + bulk(b"payload %d" % row) + b"+OK\r\n" + bulk(value)
        wire.send(sent)
        return wanted


def count(cache):
    """All connections but those of this test."""
    return len([client for client in cache.client().client_list()
                if client.get("lib-name") != "redis-py" and client["cmd"] != "client|list"])


@pytest.mark.parametrize("resp3", [False, True])
def test_under_load_there_are_more_and_fewer_of_them_and_nobody_notices(moving, cache, resp3):
    guard, file = moving(cache_connections=2, workers=WORKERS)
    wait_until(lambda: guard.status()["shared_connections"] == 2 * WORKERS, PATIENCE, guard.log)
    others = count(cache) - 2 * WORKERS  # the keeper's

    def has(wanted):
        shared = guard.status()["shared_connections"]
        most = wanted * WORKERS * (1 + resp3)  # of RESP3 only what clients have come to
        return shared == count(cache) - others and wanted * WORKERS <= shared <= most

    with Counting(guard, clients=8, resp3=resp3) as clients:
        before = 2
        for wanted in (5, 1, 64, 3, 2):
            change = file.take(cache_connections=wanted)["cache_connections"]
            assert change["taken"] and (change["before"], change["after"]) == (str(before), str(wanted))
            assert f"reload: cache_connections: {wanted}, was {before}" in guard.log()
            wait_until(lambda wanted=wanted: has(wanted), PATIENCE, lambda: f"{count(cache)} {guard.log()}")
            clients.go_on()
            before = wanted
        for wanted in [1, 4] * 20:  # the change before is still being carried out
            file.take(cache_connections=wanted)
        clients.go_on()
        wait_until(lambda: has(4), PATIENCE, guard.log)
    assert not clients.problems
    assert guard.total("nestguard_upstream_failures_total") == 0


def test_a_reload_may_have_another_cache_too(moving, cache):
    with redis_beside() as other:
        guard, file = moving(cache_connections=3, workers=WORKERS)
        with Pipelines(guard, clients=8) as clients:
            for turn, (server, wanted) in enumerate([(other, 6), (cache, 2), (other, 1)], 1):
                file.take(cache=server.url, cache_connections=wanted)
                file.take(cache_connections=wanted + 1)
                file.wait_left(turn)
                wait_until(lambda wanted=wanted: guard.status()["shared_connections"] ==
                           (wanted + 1) * WORKERS, PATIENCE, guard.log)
                clients.go_on()


def test_in_a_cluster_there_are_more_and_fewer_while_slots_move(moving):
    cluster = Cluster(replicas=0).start()
    try:
        guard, file = moving(cache=cluster.url, cache_connections=2, workers=WORKERS)
        slot = slot_of("count:3")
        with Counting(guard, clients=8) as clients:
            for wanted in (6, 1, 3, 8, 2):
                owner = cluster.primaries.index(cluster.node_of("count:3"))
                file.take(cache_connections=wanted)
                cluster.move(slot, cluster.primaries[(owner + 1) % 3])
                clients.go_on()
            most = 2 * len(cluster.primaries) * WORKERS
            wait_until(lambda: guard.status()["shared_connections"] <= most, PATIENCE, guard.log)
            clients.go_on()
        guard.stop()
    finally:
        cluster.remove()


def test_one_that_is_given_up_answers_first_and_nothing_is_sent_elsewhere_before(moving, cache):
    with contextlib.closing(Gate(cache.port)) as gate, contextlib.ExitStack() as stack:
        guard, file = moving(cache=cache.url.replace(str(cache.port), str(gate.port)), workers=1,
                             cache_connections=4, cache_timeout="30s")

        def wait_shared(*counts):
            wait_until(lambda: guard.status()["shared_connections"] in counts, PATIENCE, guard.log)
            return guard.status()["shared_connections"]

        def are_used():
            assert all(wire.ask("ECHO", "on") == bulk("on") for wire in wires)
            return [client["cmd"] for client in cache.client().client_list()].count("echo") == 4

        wait_shared(4)
        wires = [stack.enter_context(guard.wire()) for _ in range(4)]  # by turns, one each
        left = 0
        for number, wire in enumerate(wires):
            wait_until(are_used, PATIENCE, guard.log)
            gate.hold_requests(having=b"keep")
            wire.send(b"SET k%d keep\r\n" % number)
            gate.wait_held()
            assert file.take(cache_connections=1)["cache_connections"]["taken"]
            shared = wait_shared(1, 2)  # 1: what stays was the one
            wire.send(b"GET k%d\r\nAPPEND k%d !\r\n" % (number, number))
            for _ in range(20):  # the worker goes on, and looks
                assert shared == guard.status()["shared_connections"]
                assert shared == 1 or wires[number - 1].ask("ECHO", "on") == bulk("on")
            gate.release()
            assert wire.read_replies(3) == b"+OK\r\n" + bulk("keep") + b":5\r\n"
            wait_shared(1)
            file.take(cache_connections=4)
            left += shared - 1
        assert left == 3
        guard.stop()


def test_a_cache_that_evicts_who_takes_memory_leaves_those_that_are_shared(moving, cache):
    """And the guard's own. Others go, for all of them are too many."""
    guard, _ = moving(cache_connections=3, workers=WORKERS)
    wait_until(lambda: guard.status()["shared_connections"] == 3 * WORKERS, PATIENCE, guard.log)
    with contextlib.closing(cache.client(single_connection_client=True)) as admin:
        there = lambda: {client["id"] for client in admin.client_list()}
        admin.client_no_evict("ON")
        with contextlib.closing(cache.client(single_connection_client=True)) as other:
            evicted, before = str(other.client_id()), there()
            other.execute_command("MULTI")
            other.execute_command("SET", "queued", "x" * 256 * 1024)  # below 128 kB in all nobody has to go
            admin.config_set("maxmemory-clients", 1)
            try:
                wait_until(lambda: evicted not in there(), PATIENCE, guard.log)
                with Counting(guard, clients=8) as clients:
                    clients.go_on()
                assert guard.redis().get("item:9") == b"payload 9"
                wait_until(lambda: admin.exists("item:9"), PATIENCE, guard.log)
            finally:
                admin.config_set("maxmemory-clients", 0)
        stayed = [client for client in admin.client_list() if "e" in client["flags"]]
        assert len(stayed) == 3 * WORKERS + 2 and {client["id"] for client in stayed} <= before


def test_limits_that_the_cache_makes_lower_are_told(moving, cache):
    admin = cache.client()
    guard, file = moving(workers=WORKERS)
    wait_until(lambda: guard.status()["limits"]["own_connections_per_worker"] == 1000, PATIENCE, guard.log)
    assert guard.status()["limits"]["max_bulk"] == 512 * 1024 * 1024
    bulk_before = admin.config_get("proto-max-bulk-len")["proto-max-bulk-len"]
    admin.config_set("maxclients", 100)
    admin.config_set("proto-max-bulk-len", 1024 * 1024)
    try:
        file.take(cache_connections=3)  # those that are new hear of it
        own = (100 - 10 - 4 - 2 * 3 * WORKERS) // WORKERS
        wait_until(lambda: guard.status()["limits"]["own_connections_per_worker"] == own, PATIENCE, guard.log)
        assert guard.status()["limits"]["max_bulk"] == 1024 * 1024
        assert guard.total("nestguard_own_connections_limit") == WORKERS * own
        assert guard.total("nestguard_bulk_limit_bytes") == 1024 * 1024
    finally:
        admin.config_set("maxclients", 10000)
        admin.config_set("proto-max-bulk-len", bulk_before)


def test_more_are_used_only_when_the_cache_has_let_them_in(moving, cache):
    guard, file = moving(cache_connections=2, workers=WORKERS)
    wait_until(lambda: guard.status()["shared_connections"] == 2 * WORKERS, PATIENCE, guard.log)
    admin = cache.client()
    with Counting(guard, clients=8) as clients:
        clients.go_on()
        admin.config_set("maxclients", count(cache) + 1)
        try:
            file.take(cache_connections=10)
            wait_until(lambda: "max number of clients" in guard.log(), PATIENCE, guard.log)
            clients.go_on()
        finally:
            admin.config_set("maxclients", 10000)
        wait_until(lambda: guard.status()["shared_connections"] == 10 * WORKERS, PATIENCE, guard.log)
        clients.go_on()
