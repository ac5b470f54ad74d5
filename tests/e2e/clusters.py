"""A cache that is a Redis Cluster: real redis-servers in cluster mode, each on free ports of its
own."""
import contextlib
import time

import redis

from ports import free_port
from servers import PATIENCE, Redis
from waiting import wait_until

SLOTS = 16384
# As short as a loaded machine lets it be: a node that does not get its turn must not be taken for
# dead by all others.
NODE_TIMEOUT_MS = 1500
GIVEN_UP = 6  # seconds: a failover that has not come about by then


def slot_of(key):
    """CRC16/XMODEM, a bit at a time: not the guard's way."""
    key = key.encode() if isinstance(key, str) else key
    start = key.find(b"{")
    end = key.find(b"}", start + 1)
    if start >= 0 and end > start + 1:
        key = key[start + 1:end]
    crc = 0
    for byte in key:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xffff
    return crc % SLOTS


class Node(Redis):
    name = "node"

    def __init__(self, *settings):
        super().__init__()
        self.bus = free_port()
        self.settings = settings

    def command(self):
        return super().command() + [
            "--cluster-enabled", "yes", "--cluster-port", str(self.bus), "--cluster-node-timeout",
            str(NODE_TIMEOUT_MS), "--cluster-replica-validity-factor", "0", *self.settings]

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def ask(self, *words):
        return self.client(socket_timeout=10).execute_command(*words)

    def id(self):
        return self.ask("CLUSTER", "MYID").decode()

    def info(self):
        answer = self.ask("CLUSTER", "INFO")  # some versions of redis-py take it apart
        return answer if isinstance(answer, dict) else dict(
            line.split(":") for line in answer.decode().split())


class Cluster:
    def __init__(self, primaries=3, replicas=1, settings=(), kind=Node):
        self.nodes = [kind(*settings) for _ in range(primaries * (1 + replicas))]
        self.primaries = self.nodes[:primaries]
        self.followers = self.nodes[primaries:]

    def start(self):
        for node in self.nodes:
            node.start()
        share = SLOTS // len(self.primaries)
        for number, node in enumerate(self.primaries):
            first = number * share
            last = SLOTS - 1 if node is self.primaries[-1] else first + share - 1
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            node.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
        for node in self.nodes[1:]:
            self.introduce(node)
        self.wait_known()
        for number, node in enumerate(self.followers):
            node.ask("CLUSTER", "REPLICATE", self.primaries[number % len(self.primaries)].id())
        self.settle()
        return self

    def introduce(self, node):
        node.ask("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port, self.nodes[0].bus)

    def wait_known(self):
        wait_until(lambda: all(int(node.info()["cluster_known_nodes"]) == len(self.nodes)
                               for node in self.nodes), PATIENCE, "nodes that know each other")

    def is_whole(self):
        for node in self.nodes:
            if not node.is_running():
                continue
            try:
                if node.info()["cluster_state"] != "ok":
                    return False
                role = node.client().info("replication")
            except redis.RedisError:
                return False
            if role["role"] == "slave" and role["master_link_status"] != "up":
                return False
        return True

    def settle(self):
        wait_until(self.is_whole, 2 * PATIENCE, "the cluster to be whole")

    @property
    def url(self):
        return f"redis-cluster://{','.join(node.address for node in self.nodes)}"

    def owners(self):
        """By the word of whoever answers first: {slot: node}."""
        for node in self.nodes:
            with contextlib.suppress(redis.RedisError):
                return self.owners_by(node)
        return {}

    def owners_by(self, node):
        by_port = {each.port: each for each in self.nodes}
        return {slot: by_port[each[2][1]] for each in node.ask("CLUSTER", "SLOTS")
                for slot in range(each[0], each[1] + 1)}

    def agrees_on(self, slot):
        """A node that held keys when it was told who has the slot now hears of it from the others."""
        return len({self.owners_by(node).get(slot) for node in self.nodes}) == 1

    def node_of(self, key):
        return self.owners()[slot_of(key)]

    def get(self, key):
        return self.node_of(key).client().get(key)

    def exists(self, key):
        return self.node_of(key).client().exists(key)

    def wait_for_key(self, key):
        wait_until(lambda: self.exists(key), PATIENCE, f"{key} in the cache")

    def wait_gone(self, key):
        wait_until(lambda: not self.exists(key), PATIENCE, f"{key} gone from the cache")

    def begin_move(self, slot, to):
        """The slot's keys are still where they were."""
        giver = self.owners()[slot]
        to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", giver.id())
        giver.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id())
        return giver

    def move_keys(self, slot, giver, to):
        while keys := giver.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
            giver.ask("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys)

    def end_move(self, slot, giver, to):
        for node in [to, giver] + [each for each in self.nodes if each not in (to, giver)]:
            with contextlib.suppress(redis.RedisError):
                node.ask("CLUSTER", "SETSLOT", slot, "NODE", to.id())

    def move(self, slot, to):
        giver = self.begin_move(slot, to)
        self.move_keys(slot, giver, to)
        self.end_move(slot, giver, to)
        return giver

    def follower_of(self, node):
        return next(each for each in self.nodes if each.is_running() and
                    each.client().info("replication").get("master_port") == node.port)

    def hand_over(self, heir):
        """A planned failover. Redis gives one up that has not come about in five seconds, without a
        word: it is asked for again then."""
        asked = -GIVEN_UP

        def is_primary():
            nonlocal asked
            if heir.client().info("replication")["role"] == "master":
                return True
            if time.monotonic() - asked > GIVEN_UP:
                asked = time.monotonic()
                heir.ask("CLUSTER", "FAILOVER")
            return False

        wait_until(is_primary, 3 * PATIENCE, "the heir to be the primary")

    def remove(self):
        for node in self.nodes:
            node.remove()
