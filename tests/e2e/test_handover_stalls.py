"""A guard that stood still while another took over from it, and wakes with clients that are still connected to it:
what only the other was told of by then is not denied."""
import contextlib

import pytest

from following import follow, paused, publish, synchronous  # follow is a fixture
from servers import PATIENCE
from waiting import wait_until
from wire import command

CLIENTS = 20
ALWAYS = {"poll": {"sync": "poll", "poll_interval": "1h"}, "none": {"sync": "none"},
          "replication": {"sync": "replication", "max_lag": "1m"}}


@contextlib.contextmanager
def succession(guard):
    """Clients of a guard that has given way, and that guard's process."""
    wires = [guard.wire() for _ in range(CLIENTS)]
    try:
        for wire in wires:
            assert wire.ask("PING") == b"+PONG\r\n"
        before, guard.process = guard.process, None
        guard.launch()
        wait_until(lambda: "serves from here on" in guard.log(lines=2000), PATIENCE, "the successor")
        guard.http.close()  # calls go to the successor from here on
        yield before, wires
    finally:
        for wire in wires:
            wire.close()
    assert before.wait(PATIENCE) == 0


def wait_given_up(guard):
    wait_until(lambda: "is not waited for" in guard.log(lines=2000), PATIENCE, "its being given up")


def assert_none_is_denied(wires, denied):
    """One that leaves its clients without an answer denies nothing."""
    answers = []
    for wire in wires:
        with contextlib.suppress(OSError, AssertionError):
            answers.append(wire.read_reply())
    assert denied not in answers, (answers.count(denied), answers)


@pytest.mark.parametrize("sync", list(ALWAYS))
def test_one_that_wakes_denies_no_row_that_the_successor_was_told_of(start_guard, database, items, sync):
    keyspace = items()
    publish(database, keyspace)
    guard = start_guard(keyspace, drain_timeout="1m", **ALWAYS[sync])
    with contextlib.ExitStack() as stack:
        if sync == "replication":
            stack.enter_context(synchronous(database.server, "ANY 1 (nestguard)"))
        before, wires = stack.enter_context(succession(guard))
        with paused(before.pid):
            if sync != "replication":
                assert guard.control("PUT", guard.key_path("item:5000")).status_code in (200, 201)
            database.execute("INSERT INTO items VALUES (5000, 'late')")
            assert guard.redis().get("item:5000") == b"late"
            guard.redis().delete("item:5000")
            for wire in wires:
                wire.send(command("GET", "item:5000"))
        assert_none_is_denied(wires, b"$-1\r\n")


def test_one_that_wakes_denies_no_key_of_a_newer_file(start_guard, tmp_path):
    file = tmp_path / "keys.txt"
    file.write_text("".join(f"item:{n}\n" for n in range(1000)))
    guard = start_guard({"name": "items", "key": "item:{id}", "source": f"file:{file}", "on_miss": "pass"},
                        database=None, drain_timeout="1m")
    with succession(guard) as (before, wires):
        with paused(before.pid):
            wait_given_up(guard)
            file.write_text("".join(f"item:{n}\n" for n in range(2000)))
            wait_until(lambda: guard.keyspace()["rows"] == 2000, PATIENCE, "the newer file")
            for wire in wires:
                wire.send(command("BF.EXISTS", "items", "1500"))
        assert_none_is_denied(wires, b":0\r\n")


def test_no_key_is_denied_that_was_told_to_the_predecessor_of_a_list(start_guard, tmp_path):
    """Its filter alone has it, once its hint is over: the successor has the file's keys, and cannot say which others
    there were."""
    file = tmp_path / "keys.txt"
    file.write_text("".join(f"item:{n}\n" for n in range(1000)))
    guard = start_guard({"name": "items", "key": "item:{id}", "source": f"file:{file}", "on_miss": "pass"},
                        database=None, hint_ttl="100ms")
    assert guard.redis().set("item:1500", "v") and guard.redis().set("item:1", "v")
    wait_until(lambda: guard.status()["entries"] == 0, PATIENCE, "the hint's end")
    with succession(guard):
        with guard.wire() as wire:
            assert wire.ask("GET", "item:1500") == b"$1\r\nv\r\n"
        assert guard.keyspace()["state"] == "passing"
        assert "before this process took over" in guard.keyspace()["reason"]
        file.write_text("".join(f"item:{n}\n" for n in range(2000)))
        wait_until(lambda: guard.keyspace()["state"] == "guarding", PATIENCE, "the newer file")


def test_nor_is_one_when_the_successor_reads_the_file_later(start_guard, tmp_path):
    """It takes over without any list, since its predecessor is told to end."""
    file, away = tmp_path / "keys.txt", tmp_path / "away.txt"
    file.write_text("".join(f"item:{n}\n" for n in range(1000)))
    guard = start_guard({"name": "items", "key": "item:{id}", "source": f"file:{file}", "on_miss": "pass"},
                        database=None, hint_ttl="100ms")
    assert guard.redis().set("item:1500", "v")
    wait_until(lambda: guard.status()["entries"] == 0, PATIENCE, "the hint's end")
    file.rename(away)
    before, guard.process = guard.process, None
    guard.launch()
    wait_until(lambda: "was given the sockets" in guard.log(lines=2000), PATIENCE, "the successor")
    before.terminate()
    assert before.wait(PATIENCE) == 0
    guard.http.close()
    wait_until(lambda: "serves from here on" in guard.log(lines=2000), PATIENCE, "its taking over")
    away.rename(file)
    wait_until(lambda: guard.log(lines=2000).count(" keys taken from") == 2, PATIENCE, "the list")
    assert guard.redis().get("item:1500") == b"v"
    assert "before this process took over" in guard.keyspace()["reason"]


def push(guard, count):
    body = "".join(f"item:{n}\n" for n in range(count)).encode()
    assert guard.control("PUT", "/v1/keyspaces/items/keys", data=body).status_code in (200, 201)


@pytest.mark.parametrize("stands_still", [False, True])
def test_no_key_is_denied_that_was_pushed_to_the_successor(start_guard, stands_still):
    """Nobody pushes to the one that has given way."""
    guard = start_guard({"name": "items", "key": "item:{id}", "source": "push", "on_miss": "pass"},
                        database=None, ready=False, drain_timeout="1m")
    push(guard, 1000)
    with guard.wire() as wire:
        assert wire.ask("BF.EXISTS", "items", "1500") == b":0\r\n"
    with succession(guard) as (before, wires):
        with paused(before.pid) if stands_still else contextlib.nullcontext():
            push(guard, 2000)
            for wire in wires:
                wire.send(command("BF.EXISTS", "items", "1500"))
        assert_none_is_denied(wires, b":0\r\n")


def test_one_that_hangs_before_it_guards_costs_no_memory_without_bound(start_guard, database):
    """It has the sockets, and is told of each hint: what it does not read is kept for it, up to a bound."""
    database.execute("CREATE TABLE items (id text PRIMARY KEY, payload text)")
    guard = start_guard({"name": "items", "key": "item:{id}", "table": "items", "value": "payload"},
                        max_hints=10_000_000)
    before, guard.process = guard.process, None
    with guard.wire() as wire, database.connect() as holder:
        holder.cursor().execute("LOCK TABLE items")
        guard.launch()
        wait_until(lambda: "was given the sockets" in guard.log(lines=2000), PATIENCE, "one that waits")
        with paused(guard.process.pid):
            holder.rollback()
            for n in range(250):
                for m in range(10):
                    wire.send(command("SET", f"item:{n * 10 + m}:" + "k" * 30000, "v"))
                for _ in range(10):
                    assert wire.read_reply() == b"+OK\r\n"
            wait_until(lambda: "does not read" in guard.log(lines=2000), PATIENCE, "its being given up")
        assert guard.process.wait(PATIENCE) == 0  # it takes nothing over, and ends
        assert wire.ask("GET", "item:0:" + "k" * 30000) == b"$1\r\nv\r\n"
    assert "serves from here on" not in guard.log(lines=2000)
    guard.process = None
    guard.launch()
    wait_until(lambda: "serves from here on" in guard.log(lines=2000), PATIENCE, "one that follows")
    assert before.wait(PATIENCE) == 0


def test_what_is_absent_is_rejected_while_the_successor_answers(start_guard, items):
    """Also longer than it may be without an answer."""
    guard = start_guard(items(), drain_timeout="1m")
    with succession(guard) as (_, wires):
        rejects = []

        def asked():
            assert wires[0].ask("GET", "item:7000000") == b"$-1\r\n"
            rejects.append(wires[0].ask("BF.EXISTS", "items", "7000000"))
            return len(rejects) >= 500

        wait_until(asked, PATIENCE, "many lookups")
        assert rejects.count(b":0\r\n") > 450, rejects.count(b":0\r\n")
        assert "was guarding: the successor" not in guard.log(lines=2000)


def test_a_guard_alone_that_wakes_denies_no_row_that_it_was_not_told_of(follow, database, items):
    """Its workers may run before its keeper has seen that time has passed."""
    guard = follow(items(), max_lag="500ms")
    wires = [guard.wire() for _ in range(CLIENTS)]
    for wire in wires:
        assert wire.ask("GET", "item:7000000") == b"$-1\r\n"
    with paused(guard.process.pid):
        database.execute("INSERT INTO items VALUES (5000, 'late')")
        behind = database.value("SELECT now() + interval '600ms'")
        wait_until(lambda: database.value("SELECT now() > %s", (behind,)), PATIENCE, "the end of its lease")
        for wire in wires:
            wire.send(command("GET", "item:5000"))
    answers = [wire.read_reply() for wire in wires]
    assert answers == [b"$4\r\nlate\r\n"] * CLIENTS
    for wire in wires:
        wire.close()
