"""Loads: shared by those who wait for the same key, bounded in number and time, remembered when
they find nothing."""
import contextlib
import socket
import struct
import threading
import time

import pytest
import redis

from following import paused
from servers import PATIENCE
from waiting import wait_until
from wire import bulk, command

FIRST_ABSENT = 10_001


def get(guard, key):
    client = guard.redis()
    try:
        return client.get(key)
    except redis.ResponseError as error:
        return error
    finally:
        client.close()


def backend(guard):
    return guard.status()["backends"]["database"]


def wait_for_misses(guard, count):
    wait_until(lambda: guard.counter("nestguard_cache_misses_total") >= count, PATIENCE,
               f"{count} lookups under way")


def test_one_query_serves_all_who_wait_for_a_key(start_guard, database, items, threads):
    guard = start_guard(items(), load_timeout="60s")
    with database.locked():
        waiting = [threads.submit(get, guard, "item:5") for _ in range(50)]
        wait_for_misses(guard, 50)
    assert [future.result(PATIENCE) for future in waiting] == [b"payload 5"] * 50
    assert database.count_loads() == 1


def test_an_mget_that_repeats_a_key_loads_it_once(start_guard, database, items):
    guard = start_guard(items())
    assert guard.redis().mget(["item:5"] * 30) == [b"payload 5"] * 30
    assert database.count_loads() == 1


def test_past_the_budget_a_load_waits_for_its_turn(start_guard, database, items, threads):
    guard = start_guard(items(), load_budget=3, load_timeout="60s")
    with database.locked():
        waiting = [threads.submit(get, guard, f"item:{n}") for n in (1, 2, 3)]
        wait_until(lambda: backend(guard)["loads_in_flight"] == 3, PATIENCE, "the first three")
        waiting.append(threads.submit(get, guard, "item:4"))
        wait_until(lambda: backend(guard)["loads_queued"] == 1, PATIENCE, "the fourth in line")
        assert backend(guard)["loads_in_flight"] == 3
        assert guard.total("nestguard_loads_queued") == 1
        assert guard.redis().get("item:9999") is None, "a reject needs no turn"
        joined = threads.submit(get, guard, "item:2")
        wait_for_misses(guard, 5)
        assert backend(guard)["loads_queued"] == 1, "who shares a load takes no turn"
    assert [future.result(PATIENCE) for future in [*waiting, joined]] == [
        b"payload 1", b"payload 2", b"payload 3", b"payload 4", b"payload 2"]
    assert backend(guard)["loads_queued"] == 0
    assert guard.total("nestguard_load_wait_seconds_count") == 4
    assert guard.total("nestguard_load_wait_seconds_sum") > 0


def seconds(guard, answer):
    return guard.metric("nestguard_database_seconds_count", outcome=answer)


def test_the_time_of_each_query_is_counted_by_what_it_brought(start_guard, database, items):
    guard = start_guard(items(), sync="none", load_timeout="500ms")
    guard.redis().get("item:1")
    guard.redis().set("item:999", "written by nobody else")
    guard.redis().delete("item:999")
    guard.redis().get("item:999")
    assert [seconds(guard, answer) for answer in ("row", "absent", "error")] == [1, 1, 0]
    with database.locked(), pytest.raises(redis.RedisError, match="timeout"):
        guard.redis().get("item:2")
    assert seconds(guard, "error") == 1
    assert guard.metric("nestguard_database_seconds_bucket", outcome="error", le="0.25") == 0
    assert guard.metric("nestguard_database_seconds_bucket", outcome="error", le="+Inf") == 1


def test_who_gets_no_turn_in_time_is_told(start_guard, database, items, threads):
    """And so is everything that the same client has asked behind it, at once."""
    guard = start_guard(items(), load_budget=2, load_timeout="500ms")
    with database.locked():
        held = [threads.submit(get, guard, f"item:{n}") for n in (1, 2)]
        wait_until(lambda: backend(guard)["loads_in_flight"] == 2, PATIENCE, "both")
        replies = guard.raw(b"".join(command("GET", f"item:{n}") for n in range(3, 101)), 98)
        assert [str(future.result(PATIENCE)) for future in held] == [
            "NESTGUARD timeout: the database took longer than load_timeout"] * 2
    lines = replies.split(b"\r\n")[:-1]
    assert len(lines) == 98 and all(b"load_timeout" in line for line in lines), set(lines)
    assert any(line.startswith(b"-NESTGUARD busy") for line in lines), set(lines)


def slow_keyspace(database):
    """Each load takes as long as the table `pace` says, of no processor."""
    database.execute("""
        CREATE TABLE pace (seconds float8);
        INSERT INTO pace VALUES (0);
        CREATE FUNCTION slowly() RETURNS boolean VOLATILE LANGUAGE sql
            AS 'SELECT pg_sleep(seconds) IS NOT NULL FROM pace';
        CREATE TABLE slow (id int PRIMARY KEY, v text NOT NULL);
        INSERT INTO slow SELECT n, 'slow ' || n FROM generate_series(1, 2000) n""")
    return {"name": "slow", "key": "slow:{id}", "table": "slow", "value": "v", "where": "slowly()"}


def median_time(guard, keys):
    times = []
    for key in keys:
        began = time.monotonic()
        assert guard.redis().get(key) == key.replace(":", " ").encode()
        times.append(time.monotonic() - began)
    return sorted(times)[len(times) // 2]


def test_a_clients_many_loads_hold_up_nobody_elses_one(start_guard, database, items, threads):
    guard = start_guard(items(), slow_keyspace(database), load_timeout="60s")
    database.execute("UPDATE pace SET seconds = 0.02")
    alone = median_time(guard, [f"slow:{n}" for n in range(1, 12)])
    with guard.wire() as wire:
        wire.send(b"".join(command("GET", f"slow:{n}") for n in range(1000, 2000)))
        wait_until(lambda: backend(guard)["loads_queued"] > 0, PATIENCE, "the line")
        beside = median_time(guard, [f"slow:{n}" for n in range(20, 31)])
        assert backend(guard)["loads_queued"] > 0, "it was over too early to say anything"
    assert beside < 3 * alone, f"{beside * 1000:.0f} ms instead of {alone * 1000:.0f}"


def test_a_pipeline_of_cold_keys_is_answered_without_an_error(start_guard, database, items):
    count = 100_000
    database.execute("INSERT INTO items SELECT n, 'payload ' || n"
                     " FROM generate_series(200000, 299999) n")
    guard = start_guard(items())
    with guard.wire() as wire:
        sender = threading.Thread(target=wire.send, args=(
            b"".join(command("GET", f"item:{n}") for n in range(200_000, 200_000 + count)),))
        sender.start()
        for n in range(200_000, 200_000 + count):
            assert wire.read_reply() == bulk(f"payload {n}")
        sender.join()
    assert guard.counter("nestguard_loads_total", result="busy") == 0
    assert guard.counter("nestguard_loads_total", result="cut") == 0


def test_a_crowd_of_connections_has_no_more_turns_than_one_from_elsewhere(start_guard, database):
    """Each of them asks for one row only, so none of them has much in line."""
    keyspace = slow_keyspace(database)
    guard = start_guard(keyspace, load_budget=1, load_timeout="60s")
    database.execute("UPDATE pace SET seconds = 0.05")
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(guard.wire("127.0.0.2")) for _ in range(80)]
        for n, wire in enumerate(crowd):
            wire.send(command("GET", f"slow:{n + 1}"))
        wait_until(lambda: backend(guard)["loads_queued"] > 60, PATIENCE, "a crowd in line")
        with guard.wire() as wire:
            assert wire.ask("GET", "slow:2000") == bulk("slow 2000")
        assert backend(guard)["loads_queued"] > 30, "it has not waited for them"
        database.execute("UPDATE pace SET seconds = 0")
        for n, wire in enumerate(crowd):
            assert wire.read_reply() == bulk(f"slow {n + 1}")
    assert guard.counter("nestguard_loads_total", "slow", result="busy") == 0


@pytest.mark.parametrize("budget", [1, 10, 200])
def test_one_command_may_ask_for_more_rows_than_the_budget(start_guard, database, budget, items):
    database.execute("INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(101, 900) n")
    guard = start_guard(items(), load_budget=budget, workers=1)
    keys = [f"item:{n}" for n in range(1, 451)]
    assert guard.redis().mget(keys) == [b"payload %d" % n for n in range(1, 451)]
    assert guard.redis().exists(*[f"item:{n}" for n in range(451, 951)]) == 450
    # One in ten thousand of the keys without a row is asked for, too.
    assert 900 <= database.count_loads() <= 902
    assert guard.counter("nestguard_loads_total", result="busy") == 0


def test_a_client_that_is_cut_off_takes_its_other_loads_along(start_guard, database, items):
    guard = start_guard(items(), load_budget=5, load_timeout="60s")
    with database.locked():
        with guard.wire() as wire:
            wire.send(command("MGET", *[f"item:{n}" for n in range(1, 101)]))
            wait_for_misses(guard, 100)
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wait_until(lambda: guard.status()["clients"] == 0, PATIENCE, "its end")
    wait_until(lambda: guard.status()["backends"]["database"]["loads_in_flight"] == 0, PATIENCE,
               "the loads that were on their way")
    assert guard.redis().get("item:100") == b"payload 100"
    assert database.count_loads() <= 6


def test_a_command_of_many_rows_waits_for_a_slow_database_but_once(start_guard, database, items):
    guard = start_guard(items(), load_budget=5, load_timeout="500ms")
    with database.locked():
        begin = time.monotonic()
        reply = guard.raw(command("MGET", *[f"item:{n}" for n in range(1, 101)]), replies=1)
        assert time.monotonic() - begin < 8, "twenty times load_timeout would be 10 s"
    assert reply.count(b"-NESTGUARD ") == reply.count(b"load_timeout") == 100


def test_a_load_that_takes_too_long_ends_with_an_error(start_guard, database, items):
    guard = start_guard(items(), load_timeout="300ms")
    with database.locked():
        begin = time.monotonic()
        with pytest.raises(redis.ResponseError, match="^NESTGUARD timeout"):
            guard.redis().get("item:5")
        assert time.monotonic() - begin < 10
    wait_until(lambda: get(guard, "item:5") == b"payload 5", PATIENCE, "the table's unlocking")


def test_nobody_is_told_of_a_timeout_because_another_has_waited_for_longer(
        start_guard, database, items):
    """The first asks for two slow rows, one of which waits for the other. By then the others have
    hardly waited."""
    guard = start_guard(items(
        value="CASE WHEN id <= 2 THEN pg_sleep(2.8)::text ELSE '' END || payload"),
        load_connections=1, load_budget=1, load_timeout="4s")
    others = range(40, 100)
    with guard.wire() as first, guard.wire() as second, guard.wire() as third:
        first.send(command("GET", "item:1") + command("GET", "item:2"))
        assert first.read_reply() == bulk("payload 1")
        second.send(b"".join(command("GET", f"item:{n}") for n in (2, *others)))
        assert first.read_reply().startswith(b"-NESTGUARD timeout")
        assert third.ask("GET", "item:2") == bulk("payload 2")
        assert second.read_reply() == bulk("payload 2")
        for n in others:
            assert second.read_reply() == bulk(f"payload {n}")
    assert guard.counter("nestguard_loads_total", result="row") == 2 + len(others)
    assert guard.counter("nestguard_loads_total", result="timeout") == 1


def test_who_came_last_to_a_connection_that_hangs_is_answered_over_another(
        start_guard, database, items, threads):
    """It is given up when the first of its queries is overdue, and takes all the others with it."""
    guard = start_guard(items(), sync="none", load_connections=2, load_timeout="2s")
    assert get(guard, "item:1") == b"payload 1"
    pid = database.value("SELECT pid FROM pg_stat_activity WHERE application_name = 'nestguard'"
                         " AND datname = current_database() AND query LIKE '%pg_column_size%'")
    with paused(pid):
        assert str(get(guard, "item:2")).startswith("NESTGUARD timeout")
        with database.locked():  # for as long as the other connection is to have as many as this
            last = [threads.submit(get, guard, f"item:{n}") for n in range(3, 9)]
            wait_for_misses(guard, 8)
        assert [future.result(PATIENCE) for future in last] == [
            b"payload %d" % n for n in range(3, 9)]
    assert guard.counter("nestguard_loads_total", result="timeout") == 1


def test_a_slow_load_holds_up_no_other_client(start_guard, database, items, threads):
    database.execute("CREATE TABLE quick (id int PRIMARY KEY, v text)")
    database.execute("INSERT INTO quick VALUES (1, 'at once')")
    guard = start_guard(items(), {"name": "quick", "key": "quick:{id}", "table": "quick",
                                  "value": "v"}, load_timeout="60s", load_connections=2)
    with database.locked():
        slow = threads.submit(get, guard, "item:5")
        wait_for_misses(guard, 1)
        assert guard.redis().get("quick:1") == b"at once"
        assert guard.redis().get("quick:2") is None
    assert slow.result(PATIENCE) == b"payload 5"


def test_a_false_positive_reaches_the_database_once(start_guard, database, items):
    guard = start_guard(items(false_positive_rate=0.03))
    keys = [f"item:{n}" for n in range(FIRST_ABSENT, FIRST_ABSENT + 5000)]
    client = guard.redis()
    assert client.mget(keys) == [None] * 5000
    loads = database.count_loads()
    assert 0 < loads <= 3 * 0.03 * 5000, "a rate of 0.03 gives some, and not more than it may"
    assert client.mget(keys) == [None] * 5000
    assert [client.get(key) for key in keys[:200]] == [None] * 200
    assert database.count_loads() == loads


def false_positives(guard, keys, count):
    found = []
    for key in keys:
        if guard.explain(key)["verdict"] == "possible":
            found.append(key)
        if len(found) == count:
            break
    return found


def test_a_remembered_false_positive_is_forgotten_when_a_row_comes(start_guard, database, items):
    """By the control port's word, and by a new generation."""
    guard = start_guard(items(false_positive_rate=0.03))
    keys = [f"item:{n}" for n in range(FIRST_ABSENT, FIRST_ABSENT + 3000)]
    client = guard.redis()
    admitted, rebuilt = false_positives(guard, keys, 2)
    assert client.mget(admitted, rebuilt) == [None, None]
    for key in (admitted, rebuilt):
        database.execute("INSERT INTO items VALUES (%s, 'late')", (key.removeprefix("item:"),))
    assert guard.control("PUT", guard.key_path(admitted)).status_code in (201, 204)
    assert client.get(admitted) == b"late"
    guard.rebuild()
    assert client.mget(admitted, rebuilt) == [b"late", b"late"]


def test_a_table_that_cannot_be_read_gives_an_error_not_a_nil(start_guard, database, items):
    guard = start_guard(items())
    database.execute("REVOKE SELECT ON items FROM guard")
    with pytest.raises(redis.ResponseError, match="^NESTGUARD "):
        guard.redis().get("item:5")
    assert guard.redis().get("item:9999") is None
    database.execute("GRANT SELECT ON items TO guard")
    assert guard.redis().get("item:5") == b"payload 5"


def test_before_a_generation_is_there_lookups_pass_within_the_budget(
        start_guard, database, cache, items):
    """The builder waits for the table, which the lookups of another table must not notice."""
    database.execute("CREATE TABLE quick (id int PRIMARY KEY, v text)")
    database.execute("INSERT INTO quick VALUES (1, 'at once')")
    quick = {"name": "quick", "key": "quick:{id}", "table": "quick", "value": "v"}
    with database.locked():
        guard = start_guard(items(), quick, ready=False)
        assert guard.control("GET", "/guardz").status_code == 503
        assert guard.keyspace("quick")["state"] == "loading"
        assert guard.redis().get("quick:1") == b"at once"
        assert guard.redis().get("quick:2") is None
        assert database.count_loads("quick") == 2
        assert guard.counter("nestguard_rejected_total", "quick") == 0
    guard.wait_guarding()
    assert guard.redis().get("quick:3") is None
    assert guard.counter("nestguard_rejected_total", "quick") == 1


def test_polling_renews_the_filter_and_lookups_do_not_notice(start_guard, database, items):
    guard = start_guard(items(), sync="poll", poll_interval="500ms")
    client = guard.redis()
    assert client.get("item:300") is None
    database.execute("INSERT INTO items VALUES (300, 'polled')")
    wait_until(lambda: client.get("item:300") == b"polled", PATIENCE, "the new row")
    first = guard.generation()
    while guard.generation() < first + 3:
        assert client.mget("item:1", "item:300", "item:301") == [b"payload 1", b"polled", None]


def grown(guard, before):
    return guard.resident_bytes() - before


def test_a_value_above_max_value_is_refused_and_never_gathered(
        start_guard, database, cache, items, threads):
    guard = start_guard(items(), max_value="4mb", load_timeout="60s")
    database.execute("UPDATE items SET payload = repeat('x', 200000000) WHERE id = 1")
    database.execute("UPDATE items SET payload = repeat('y', 4194304) WHERE id = 2")
    database.execute("UPDATE items SET payload = repeat('z', 4194305) WHERE id = 3")
    assert get(guard, "item:2") == b"y" * 4194304
    cache.wait_for_key("item:2")
    before = guard.resident_bytes()
    for reply in [threads.submit(get, guard, "item:1") for _ in range(10)]:
        assert str(reply.result(PATIENCE)).startswith("NESTGUARD too large: ")
        assert "max_value" in str(reply.result(PATIENCE))
    assert str(get(guard, "item:3")).startswith("NESTGUARD too large: ")
    assert grown(guard, before) < 50_000_000
    assert guard.redis().exists("item:1", "item:3", "item:4", "item:300") == 3
    assert get(guard, "item:4") == b"payload 4", "the connections can still be used"
    assert guard.counter("nestguard_loads_total", result="too_large") >= 4
    assert not cache.client().exists("item:1", "item:3")
    assert guard.control("DELETE", guard.key_path("item:1")).status_code == 409, "there is a row"


def test_large_values_at_once_come_one_after_the_other(start_guard, database, items, threads):
    guard = start_guard(items(), max_value="8mb", load_timeout="60s")
    database.execute("UPDATE items SET payload = repeat('x', 6000000) WHERE id <= 20")
    replies = [threads.submit(get, guard, f"item:{n}") for n in range(1, 21)]
    assert {reply.result(PATIENCE) for reply in replies} == {b"x" * 6_000_000}
