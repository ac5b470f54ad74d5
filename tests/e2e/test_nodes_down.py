"""Which of the cache's servers is down, since when and why: the table of `nestguard ctl status`, and the log."""
import re
import subprocess

import servers
from following import follow, paused  # follow is a fixture
from servers import PATIENCE
from waiting import wait_until


def table(guard):
    return subprocess.run([servers.NESTGUARD, "ctl", "--control", f"127.0.0.1:{guard.control_port}",
                           "status", "--table"], check=True, capture_output=True, text=True).stdout


def wait_table(guard, pattern):
    wait_until(lambda: re.search(pattern, table(guard)), 2 * PATIENCE, lambda: f"{pattern}\n{table(guard)}")


def wait_log(guard, pattern):
    wait_until(lambda: re.search(pattern, guard.log(lines=1000)), 2 * PATIENCE,
               lambda: f"{pattern}\n{guard.log(lines=1000)}")


def node(guard, address):
    return next(each for each in guard.status()["backends"]["cache"]["nodes"] if each["address"] == address)


def test_a_node_of_a_cluster_is_named(follow, items, cluster):
    guard = follow(items(), cache=cluster.url)
    wait_table(guard, "cache       up, ")
    wait_log(guard, "connection for fills and purges is up: all 3 nodes")
    for number in range(30):
        guard.redis().set(f"plain:{number}", "x")  # workers connect to nodes that they need
    lost = cluster.primaries[-1]
    lost.kill()
    wait_table(guard, rf"cache       down, .*\n +{lost.address} \(primary\) is down, for \d+ m?s: \S")
    assert node(guard, lost.address)["down_seconds"] >= 0
    assert guard.metric("nestguard_cache_up") == 0
    wait_log(guard, rf"fills and purges: 1 of 3 nodes down: {lost.address} \(primary\): \S")
    wait_log(guard, r"worker \d+: cache connection: \S")
    before = guard.log(lines=1000).count("is up: all 3 nodes")
    lost.ensure_running()
    wait_until(lambda: guard.log(lines=1000).count("is up: all 3 nodes") > before, 2 * PATIENCE, guard.log)
    wait_table(guard, "cache       up, ")
    assert node(guard, lost.address)["down_seconds"] is None


def test_slots_that_nobody_has_are_counted(follow, items, cluster):
    """All nodes are up, and some keys have no place."""
    guard = follow(items(), cache=cluster.url)
    wait_table(guard, "cache       up, ")
    assert guard.metric("nestguard_cache_slots_uncovered") == 0
    for node_ in cluster.primaries:
        node_.ask("CLUSTER", "DELSLOTS", *range(5000, 5007))
    try:
        wait_table(guard, r"cache       down, .*\n +7 slots that no node has")
        assert guard.metric("nestguard_cache_slots_uncovered") == 7 and guard.metric("nestguard_cache_up") == 0
        assert guard.status()["backends"]["cache"]["slots_uncovered"] == 7
    finally:
        cluster.primaries[0].ask("CLUSTER", "ADDSLOTS", *range(5000, 5007))
    wait_table(guard, "cache       up, ")


def test_a_sentinel_that_is_away_is_named(follow, items, fleet):
    guard = follow(items(), cache=fleet.url)
    wait_log(guard, f"fills and purges is up: 127.0.0.1:{fleet.first.port}")
    lost = fleet.sentinels[1]
    lost.stop()
    wait_table(guard, rf"cache       up, .*\n +127.0.0.1:{lost.port} \(sentinel\) names no primary, for \d+ m?s: \S")
    wait_log(guard, rf"sentinels that do not name a primary: 127.0.0.1:{lost.port}: \S")


def test_a_replica_that_is_not_read_from_is_named(follow, items, fleet):
    guard = follow(items(), cache=fleet.url, cache_reads="replica")
    lost = fleet.servers[1]
    replica = f"127.0.0.1:{lost.port}"
    wait_until(lambda: guard.redis().get("item:7") and replica in table(guard) and node(guard, replica)["up"],
               2 * PATIENCE, lambda: table(guard))
    assert node(guard, replica)["down_seconds"] is None
    with paused(lost.process.pid):
        wait_table(guard, rf"cache       up, .*\n +{replica} \(replica\) is not read from, for \d+ m?s: \S")
        wait_log(guard, rf"replicas that are not read from: {replica}: \S")
    wait_log(guard, "all replicas that are known are read from")
