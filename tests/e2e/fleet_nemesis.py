"""What kills, pauses, promotes and moves the nodes of a cache that is a fleet.

Each fault is one of troubles.py from its beginning until all is as before: every slot has a primary,
its replicas follow it, the guard has found them and owes them nothing. What is no trouble (slots that
move, nodes that come and go, replicas that hang) must not be noticed by any client at all.
"""
import collections
import contextlib
import time

import redis

import nemesis
from clusters import Node, slot_of
from sentinels import NAME
from servers import PATIENCE
from waiting import wait_until

CALM = 1  # seconds without a refusal

FAULTS = ["kill", "kill", "pause", "pause", "reset", "reset", "late heir", "late heir",
          "pause replica", "cut off replica", "kill replica"]
CLUSTER_KINDS = [*FAULTS, "failover", "failover force", "failover takeover", "move", "move",
                 "move back and forth", "add and remove"]
# Only where it is asked for: nodes that don't know the heir yet refuse its own commands at times.
BY_NAME = ["move from late heir"]
SENTINEL_KINDS = [*FAULTS, "failover", "failover", "pause sentinel", "kill sentinel"]


class FleetNemesis(nemesis.Nemesis):
    """What a cluster and servers with sentinels have in common."""

    listened = 0

    def step(self):
        if self.run_.stop.wait(self.chance.uniform(0.1, 0.5)) or not self.kinds:
            return
        self.run_.turn_to_replicas()
        kind = self.chance.choice(self.kinds)
        self.run_.counts[kind] += 1
        try:
            getattr(self, kind.replace(" ", "_"))()
            self.await_heard()
        except (AssertionError, redis.RedisError) as error:
            self.run_.fail(f"{kind}: {error!r}\n{self.describe()}\n{self.run_.situation()}")

    def await_(self, condition, what):
        """Whoever has found something wrong has everybody end at once."""
        wait_until(lambda: self.run_.problems or condition(), 3 * PATIENCE,
                   lambda: f"{what}\n{self.describe()}")

    def await_heard(self):
        """Nobody who has subscribed is deaf without knowing. What was published before does not count."""
        self.listened += 1
        for listener in self.run_.listeners:
            ends, number = listener.ends, self.listened
            self.await_(lambda each=listener, ends=ends, number=number: each.hears(ends, number),
                        f"{listener.name} to hear or to be closed")

    @contextlib.contextmanager
    def trouble(self, kind, slots):
        """While it lasts the fleet may come to be as it was when it began."""
        run = self.run_
        moment = run.histories.now()
        self.await_replicas()
        run.histories.begin_lapse(moment)
        trouble = run.troubles.begin(kind, slots)
        yield trouble
        trouble.led = trouble.led or self.await_led(slots)
        self.await_(self.is_whole, "the fleet to be whole")
        self.await_(lambda: self.is_known() and self.owes_nothing(), "the guard to know all nodes")
        self.await_(lambda: run.troubles.are_quiet(trouble, CALM), "an end of refusals")
        self.await_(lambda: self.is_known() and self.owes_nothing(), "the guard to know all nodes")
        run.histories.end_lapse()
        run.troubles.end(trouble)

    def await_led(self, slots):
        self.await_(lambda: self.are_led(slots), "a primary")
        return time.monotonic()

    def await_replicas(self):
        """Each has what its primary had when this was called."""
        wanted = {node.port: self.info(node)["master_repl_offset"] for node in self.primaries()}
        for node in self.nodes():
            info = self.info(node)
            if info["role"] == "slave":
                self.await_(lambda node=node, end=wanted.get(info["master_port"], 0):
                            self.info(node)["slave_repl_offset"] >= end, "a replica")

    @staticmethod
    def info(node):
        return node.client(socket_timeout=PATIENCE).info("replication")

    def replicas_of(self, primary):
        return [node for node in self.nodes() if self.info(node).get("master_port") == primary.port]

    def status(self):
        status = self.run_.status()
        return status and status["backends"]["cache"]["nodes"]

    def owes_nothing(self):
        status = self.run_.status()
        return status and status["stream"] and status["stream"]["purges_owed"] == 0

    # what happens

    def kill(self):
        """It comes back at once, empty, or when another has its keys."""
        primary, slots = self.pick()
        waits = self.chance.random() < 0.7
        with self.trouble("kill", slots) as trouble:
            primary.kill()
            if waits:
                trouble.led = self.await_led(slots)
            self.rest(0, 0.3, 1)
            primary.start()
            self.await_follower(primary)

    def pause(self):
        """For a moment, or until another has its keys."""
        primary, slots = self.pick()
        rest = self.chance.choice([0.1, 0.5, 1, None])
        with self.trouble("pause, for long" if rest is None else "pause", slots) as trouble:
            primary.pause()
            if rest is None:
                trouble.led = self.await_led(slots)
                self.rest(0, 0, 0.3, 1)
            else:
                time.sleep(rest)
            primary.resume()

    def late_heir(self):
        """A replica takes over that has not heard of the last deletions."""
        primary, slots = self.pick()
        self.take_over_late("late heir", primary, slots)
        self.await_(self.is_whole, "the fleet to be whole")

    @contextlib.contextmanager
    def taken_over_late(self, kind, primary, slots):
        heirs = self.replicas_of(primary)
        with self.trouble(kind, slots) as trouble:
            primary.deafen(*heirs)
            self.rest(0.2, 0.5)
            primary.kill()
            for heir in heirs:
                heir.resume()
            trouble.led = self.await_led(slots)
            yield
            primary.start()
            self.await_follower(primary)

    def await_follower(self, node):
        """It was a primary, and has come back."""

    def take_over_late(self, kind, primary, slots):
        with self.taken_over_late(kind, primary, slots):
            pass

    def reset(self):
        node, slots = self.pick()
        with self.trouble("reset", slots) as trouble:
            node.client().execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            trouble.led = trouble.begun

    def pick_replica(self):
        primary, _ = self.pick()
        return primary, self.chance.choice(self.replicas_of(primary))

    def pause_replica(self):
        _, replica = self.pick_replica()
        replica.pause()
        self.rest(0.1, 0.5, 3)
        replica.resume()
        self.await_(self.is_whole, "the fleet to be whole")

    def kill_replica(self):
        _, replica = self.pick_replica()
        replica.kill()
        self.rest(0, 0.3, 3)
        replica.start()
        self.await_(self.is_whole, "the fleet to be whole")


class ClusterNemesis(FleetNemesis):
    def __init__(self, run, kinds):
        super().__init__(run, kinds)
        self.cluster = run.cache

    def nodes(self):
        return [node for node in self.cluster.nodes if node.is_running()]

    def primaries(self):
        return [node for node in self.nodes() if self.info(node)["role"] == "master"]

    def shards(self):
        shards = {}
        for slot, node in self.cluster.owners().items():
            shards.setdefault(node, set()).add(slot)
        return shards

    def pick(self):
        shards = self.shards()
        node = self.chance.choice(sorted(shards, key=lambda node: node.port))
        return node, shards[node]

    def view(self, node):
        """Which slots are whose, by a node's own word; None: it has none."""
        try:
            client = node.client(socket_timeout=0.3)
            return {slot: each[2][1] for each in client.execute_command("CLUSTER", "SLOTS")
                    for slot in range(each[0], each[1] + 1)}
        except redis.RedisError:
            return None

    def are_led(self, slots):
        led = set()
        for node in self.nodes():
            view = self.view(node)
            with contextlib.suppress(redis.RedisError):
                if view and self.is_ok(node):
                    led.update(slot for slot, port in view.items() if port == node.port)
        return slots <= led

    @staticmethod
    def is_ok(node):
        info = node.client(socket_timeout=0.3).execute_command("CLUSTER", "INFO")
        return b"cluster_state:ok" in info if isinstance(info, bytes) else (
            info["cluster_state"] == "ok")

    def is_whole(self):
        views = [self.view(node) for node in self.nodes()]
        if any(view is None or view != views[0] or len(view) != 16384 for view in views):
            return False
        owners = set(views[0].values())
        roles = {node.port: self.info(node) for node in self.nodes()}
        return self.cluster.is_whole() and all(
            (info["role"] == "master") == (port in owners) and (
                info["role"] == "slave" or info["connected_slaves"] or len(owners) > 3)
            for port, info in roles.items())

    def are_all_without(self, node):
        views = [self.view(each) for each in self.nodes()]
        return all(view == views[0] for view in views) and node.port not in (
            views[0] or {node.port: node.port}).values()

    def is_known(self):
        nodes = self.status() or []
        return {(each["address"], each["up"], each["role"]) for each in nodes
                if "primary" not in each} == {  # a replica's is its primary
            (node.address, True, "primary") for node in self.shards()}

    def describe(self):
        lines = [str(self.status())]
        for node in self.nodes():
            view = self.view(node)
            with contextlib.suppress(redis.RedisError):
                lines.append(f"{node.port}: slots {view and collections.Counter(view.values())},"
                             f" {self.info(node)}")
        return "\n".join(lines)

    # what happens to clusters alone

    def promote(self, kind, *words):
        primary, slots = self.pick()
        heir = self.chance.choice(self.replicas_of(primary))
        with self.trouble(kind, slots) as trouble:
            heir.ask("CLUSTER", "FAILOVER", *words)
            self.await_(lambda: self.info(heir)["role"] == "master", "the heir")
            trouble.led = self.await_led(slots)

    def failover(self):
        self.promote("failover")

    def failover_force(self):
        self.promote("failover force", "FORCE")

    def failover_takeover(self):
        self.promote("failover takeover", "TAKEOVER")

    def cut_off_replica(self):
        """It follows another primary for a while."""
        primary, replica = self.pick_replica()
        other = self.chance.choice([node for node in self.shards() if node is not primary])
        for to in (other, primary):
            replica.ask("CLUSTER", "REPLICATE", to.id())
            self.await_(lambda to=to: self.is_following(replica, to), "the replica")
        self.await_(self.is_whole, "the fleet to be whole")

    def is_following(self, replica, primary):
        info = self.info(replica)
        return info["role"] == "slave" and info["master_port"] == primary.port and (
            info["master_link_status"] == "up")

    def await_follower(self, node):
        """Of whose slots some have gone elsewhere since, that stays a primary without any."""
        self.await_(lambda: self.knows_owners(node), "the node to know whose the slots are")
        shards = self.shards()
        if self.info(node)["role"] != "slave" and node not in shards:
            [heir] = [each for each in shards if not self.replicas_of(each)]
            node.ask("CLUSTER", "REPLICATE", heir.id())

    def knows_owners(self, node):
        """It, and whoever is asked for the shards: twice the same, since both are told by and by."""
        shards, seen = self.shards(), self.view(node)
        return seen and self.shards().keys() == shards.keys() and (
            self.info(node)["role"] == "slave" or
            (node in shards) == (node.port in seen.values()))

    # slots

    def any_slots(self, most):
        """Of keys that clients ask for."""
        run = self.run_
        names = [key for key in run.histories.versions if not run.is_probe(key)] + [
            owned.name for client in run.clients for owned in client.free + client.tied]
        slots = sorted({slot_of(name) for name in names} - run.probe_slots)
        return self.chance.sample(slots, self.chance.randint(1, most))

    def carry(self, slot, to):
        """As redis-cli does."""
        if self.run_.stop.is_set() or self.cluster.owners()[slot] is to:
            return
        self.run_.troubles.begin_move(slot)
        giver = self.cluster.begin_move(slot, to)
        self.rest(0, 0, 0.02, 0.2)
        self.cluster.move_keys(slot, giver, to)
        self.rest(0, 0, 0.02, 0.2)
        self.cluster.end_move(slot, giver, to)
        self.run_.troubles.end_move(slot)
        self.run_.counts["slots moved"] += 1

    def move(self):
        for slot in self.any_slots(20):
            self.carry(slot, self.chance.choice(sorted(self.shards(), key=lambda node: node.port)))
        self.await_(self.is_whole, "the fleet to be whole")

    def move_back_and_forth(self):
        [slot] = self.any_slots(1)
        for _ in range(self.chance.randint(2, 8)):
            owner = self.cluster.owners()[slot]
            self.carry(slot, self.chance.choice([node for node in self.shards()
                                                 if node is not owner]))
        self.await_(self.is_whole, "the fleet to be whole")

    def move_from_late_heir(self):
        """What it has kept goes with the slots, before the guard has looked through it, maybe."""
        primary, slots = self.pick()
        with self.taken_over_late("late heir", primary, slots):
            owners = self.cluster.owners
            self.await_(lambda: self.are_all_without(primary), "the heir to be known to all")
            mine = [slot for slot in self.any_slots(300) if slot in slots][:5]
            others = [node for node in set(owners().values()) if node is not primary]
            for slot in mine:
                self.carry(slot, self.chance.choice(
                    [node for node in others if node is not owners()[slot]]))
        self.await_(self.is_whole, "the fleet to be whole")

    def add_and_remove(self):
        cluster, chance = self.cluster, self.chance
        node = Node(*cluster.nodes[0].settings).start()
        cluster.nodes.append(node)
        cluster.introduce(node)
        cluster.wait_known()
        self.await_(lambda: self.is_ok(node), "the new node to know the slots")
        moved = self.any_slots(15)
        for slot in moved:
            self.carry(slot, node)
        self.await_(self.is_whole, "the fleet to be whole")
        self.rest(0, 1)
        for slot in moved:
            self.carry(slot, chance.choice([each for each in self.shards() if each is not node]))
        cluster.nodes.remove(node)
        name = node.id()
        for each in cluster.nodes:
            each.ask("CLUSTER", "FORGET", name)
        self.rest(0, 0.5)
        node.remove()
        self.await_(self.is_whole, "the fleet to be whole")
        self.await_(self.is_known, "the guard to know all nodes")


class SentinelNemesis(FleetNemesis):
    def __init__(self, run, kinds):
        super().__init__(run, kinds)
        self.fleet = run.cache

    def nodes(self):
        return [server for server in self.fleet.servers if server.is_running()]

    def primaries(self):
        return [server for server in self.nodes() if self.fleet.role(server) == "master"]

    def pick(self):
        return self.fleet.wait_primary(), None

    def are_led(self, _):
        return self.fleet.primary() is not None

    def is_whole(self):
        try:
            return len(self.primaries()) == 1 and self.fleet.is_whole() and (
                self.primaries() == [self.fleet.primary()])
        except redis.RedisError:
            return False

    def is_known(self):
        first, primary = (self.status() or [None])[0], self.fleet.primary()
        return first and primary and first["up"] and first["role"] == "primary" and (
            first["address"] == f"127.0.0.1:{primary.port}")

    def describe(self):
        named = [(sentinel.primary(), sentinel.client().sentinel_masters()[NAME]["flags"])
                 for sentinel in self.fleet.sentinels if sentinel.is_running()]
        return f"{self.status()}, sentinels: {named}"

    def await_follower(self, node):
        """Sentinels take their time to make it follow the new primary: mostly its own file does."""
        primary = self.fleet.primary()
        if primary not in (node, None) and self.chance.random() < 0.8:
            node.client().replicaof("127.0.0.1", primary.port)

    # what happens to sentinels alone

    def failover(self):
        primary, _ = self.pick()
        sentinel = self.chance.choice(self.fleet.sentinels)
        with self.trouble("failover", None) as trouble:
            self.await_(lambda: self.is_led_by_another(primary, sentinel), "another primary")
            trouble.led = time.monotonic()

    def is_led_by_another(self, primary, sentinel):
        """A sentinel whose heir does not become one in time gives it up, and is asked again."""
        flags = sentinel.client().sentinel_masters()[NAME]["flags"]
        if sentinel.primary() == primary.port and "failover" not in flags:
            with contextlib.suppress(redis.ResponseError):  # it has just begun, or has no heir now
                sentinel.client().execute_command("SENTINEL", "FAILOVER", NAME)
        return self.fleet.primary() not in (primary, None)

    def cut_off_replica(self):
        """It goes by itself, until the sentinels have it follow again."""
        _, replica = self.pick_replica()
        replica.client().replicaof("NO", "ONE")
        self.await_(self.is_whole, "the fleet to be whole")

    def pause_sentinel(self):
        sentinel = self.chance.choice(self.fleet.sentinels)
        sentinel.pause()
        self.rest(0.1, 1, 3)
        sentinel.resume()
        self.await_(self.is_whole, "the fleet to be whole")

    def kill_sentinel(self):
        sentinel = self.chance.choice(self.fleet.sentinels)
        sentinel.kill()
        self.rest(0, 1)
        sentinel.start()
        self.await_(self.is_whole, "the fleet to be whole")
