"""How long things take, as histograms, and which commands come: each counted once, under what it
was."""
import pytest
import redis

from servers import PATIENCE
from waiting import wait_until


def times(guard, family="nestguard_lookup_seconds"):
    """{(verdict, outcome): count} of what was measured at all."""
    found = {}
    for line, value in guard.metrics().items():
        name, _, labels = line.rstrip("}").partition("{")
        if name == family + "_count" and value:
            found[tuple(label.split('"')[1] for label in labels.split(",") if label)] = value
    return found


def calls(guard):
    return {line.split('"')[1]: value for line, value in guard.metrics().items()
            if line.startswith("nestguard_command_calls_total{")}


def wait_times(guard, wanted, family="nestguard_lookup_seconds"):
    wait_until(lambda: times(guard, family) == wanted, PATIENCE,
               lambda: f"{wanted}: {times(guard, family)}")


def test_each_lookup_is_timed_under_its_outcome(start_guard, database, items, cache):
    guard = start_guard(items(), load_timeout="500ms")
    client = guard.redis()
    assert client.get("item:1") == b"payload 1"
    wait_until(lambda: cache.client().exists("item:1"), PATIENCE, "the fill")
    assert client.get("item:1") == b"payload 1"
    client.set("item:777", "written")
    client.delete("item:777")
    assert client.get("item:777") is None, "a hint lets it pass"
    with database.locked(), pytest.raises(redis.RedisError, match="timeout"):
        client.get("item:2")
    measured = {("possible", "hit"): 1, ("possible", "loaded"): 1, ("possible", "no_row"): 1,
                ("possible", "error"): 1}
    wait_times(guard, measured)
    wait_times(guard, {("hit",): 1, ("miss",): 3}, "nestguard_cache_seconds")
    slow = {"verdict": "possible", "outcome": "error"}
    assert guard.metric("nestguard_lookup_seconds_bucket", le="0.25", **slow) == 0
    assert guard.metric("nestguard_lookup_seconds_bucket", le="+Inf", **slow) == 1
    assert 0.4 < guard.metric("nestguard_lookup_seconds_sum", **slow) < PATIENCE
    assert client.mget("item:1", "item:3", "item:4", "plain") == [
        b"payload 1", b"payload 3", b"payload 4", None]
    wait_until(lambda: cache.client().exists("item:3"), PATIENCE, "the fill")
    assert client.exists("item:3") == 1
    wait_times(guard, {**measured, ("possible", "hit"): 3, ("possible", "loaded"): 3})


def test_rejects_are_all_in_the_histogram_though_turns_are_sampled(start_guard, items):
    guard = start_guard(items())
    pipe = guard.redis().pipeline(transaction=False)
    for n in range(2000):
        pipe.get(f"item:{1000 + n}")
    assert set(pipe.execute()) == {None}
    guard.redis().mget("item:1000", "item:1001")
    rejected = guard.total("nestguard_rejected_total")
    assert rejected > 1900
    wait_until(lambda: times(guard).get(("absent", "rejected")) == rejected, PATIENCE, "all of them")
    turns = times(guard, "nestguard_loop_turn_seconds")[()]
    assert 1 <= turns < 2000
    longest = guard.metric("nestguard_lookup_seconds_sum", verdict="absent", outcome="rejected")
    assert 0 < longest < rejected * PATIENCE


def test_what_shadow_mode_lets_pass_is_absent_all_the_same(start_guard, items):
    guard = start_guard(items(enforce=False))
    assert guard.redis().get("item:1000") is None
    assert guard.redis().ttl("item:1001") == -2
    assert guard.redis().mget("item:1002", "item:1") == [None, b"payload 1"]
    wait_times(guard, {("absent", "no_row"): 2, ("possible", "loaded"): 1})


def test_an_application_that_loads_by_itself_has_misses(start_guard, items):
    guard = start_guard(items(on_miss="pass"))
    assert guard.redis().get("item:1") is None
    wait_times(guard, {("possible", "miss"): 1})


def test_a_cache_that_fails_is_timed_too(start_guard, items, cache):
    guard = start_guard(items())
    cache.stop()
    assert guard.redis().get("item:1") == b"payload 1"
    wait_times(guard, {("possible", "loaded"): 1})
    wait_times(guard, {("error",): 1}, "nestguard_cache_seconds")


def test_commands_are_counted_by_name(start_guard, items, cache):
    guard = start_guard(items())
    with guard.wire() as wire:
        for words in (("PING",), ("get", "item:1"), ("Get", "item:1000"), ("GET", "plain"),
                      ("TTL", "item:1000"), ("TTL", "item:1"), ("TTL", "plain"), ("MGET", "item:1"),
                      ("NO.SUCH", "x"), ("NO.SUCH", "y"), ("SET", "plain", "x"), ("MULTI",),
                      ("GET", "item:1000"), ("TTL", "item:1"), ("EXEC",)):
            wire.ask(*words)
    wanted = {"PING": 1, "GET": 4, "TTL": 4, "MGET": 1, "other": 2, "SET": 1, "MULTI": 1, "EXEC": 1}
    wait_until(lambda: calls(guard) == wanted, PATIENCE, lambda: f"{wanted}: {calls(guard)}")
    assert guard.total("nestguard_commands_total") == sum(wanted.values())
