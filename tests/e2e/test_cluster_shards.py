"""Shard channels of a cluster through the guard: nobody who has subscribed is deaf without knowing."""
import pytest

from clusters import slot_of
from following import follow  # a fixture
from heirs import cluster, guard  # fixtures
from servers import PATIENCE
from waiting import wait_until
from wire import bulk

CHANNEL = "news"


def head_of(version):
    return b">3\r\n" if version == 3 else b"*3\r\n"


def subscribe(guard, version):
    """The connection, and the reply."""
    wire = guard.wire()
    if version == 3:
        wire.ask("HELLO", 3)
    return wire, wire.ask("SSUBSCRIBE", CHANNEL)


def subscribed(guard, version):
    wire, reply = subscribe(guard, version)
    assert reply == head_of(version) + bulk("ssubscribe") + bulk(CHANNEL) + b":1\r\n"
    return wire, head_of(version) + bulk("smessage") + bulk(CHANNEL)


def publish(guard, text):
    with guard.wire() as wire:
        return wire.ask("SPUBLISH", CHANNEL, text)


def hear_again(guard, version):
    """What a library does behind a lost connection. At first it may get errors: each worker learns only
    now where the slot is."""
    held = []

    def is_led():
        wire, reply = subscribe(guard, version)
        if reply.startswith(b"-"):
            wire.close()
            return False
        held.append(wire)
        return True
    wait_until(is_led, PATIENCE, "the slot's new node")
    with held[0] as wire:
        wait_until(lambda: publish(guard, "again") == b":1\r\n", PATIENCE, "a subscriber")
        assert wire.read_reply() == head_of(version) + bulk("smessage") + bulk(CHANNEL) + bulk("again")


@pytest.mark.parametrize("version", [2, 3])
def test_whose_slot_moves_is_closed_and_hears_again(guard, cluster, version):
    wire, head = subscribed(guard, version)
    with wire:
        assert publish(guard, "before") == b":1\r\n"
        assert wire.read_reply() == head + bulk("before")
        giver = cluster.node_of(CHANNEL)
        to = next(node for node in cluster.primaries if node is not giver)
        cluster.move(slot_of(CHANNEL), to)
        assert wire.read_until_closed() == b""
    hear_again(guard, version)


@pytest.mark.parametrize("version", [2, 3])
def test_whose_primary_hands_over_is_closed_and_hears_again(guard, cluster, version):
    wire, _ = subscribed(guard, version)
    with wire:
        follower = cluster.follower_of(cluster.node_of(CHANNEL))
        follower.ask("CLUSTER", "FAILOVER")
        assert wire.read_until_closed() == b""
    hear_again(guard, version)
