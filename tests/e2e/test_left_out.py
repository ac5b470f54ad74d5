"""Trouble with the table of one keyspace leaves the others guarding, also when a filter is built: what
cannot be had passes, with its reason, and guards as soon as it can be had."""
import pytest

from following import fill, publish, query_alone, wait_followed
from servers import PATIENCE, run_nestguard
from test_reload import ORDERS, orders, reload
from waiting import wait_until


@pytest.fixture(params=["replication", "poll", "none"])
def sync(request):
    return request.param


def is_left_out(guard, word, name="orders"):
    keyspace = guard.keyspace(name)
    return keyspace["state"] == "passing" and word in keyspace["reason"]


def wait_left_out(guard, word, name="orders"):
    wait_until(lambda: is_left_out(guard, word, name), PATIENCE,
               lambda: f"{guard.status()['keyspaces']}\n{guard.log()}")
    assert guard.keyspace("items")["state"] == "guarding"
    assert f'nestguard_keyspace_state{{keyspace="{name}",state="passing"}} 1' in guard.control(
        "GET", "/metrics").text
    wait_until(lambda: word in (guard.status()["last_build_error"] or ""), PATIENCE, guard.log)


def must_guard_items_only(guard):
    """Orders pass: what is not there is asked of cache and database."""
    rejected = guard.counter("nestguard_rejected_total")
    client = guard.redis()
    assert client.mget("item:1", "item:5000") == [b"payload 1", None]
    assert guard.counter("nestguard_rejected_total") == rejected + 1
    assert guard.explain("order:5000")["verdict"] != "absent"


BREAK = "REVOKE ALL ON orders FROM guard"
MEND = "GRANT SELECT ON orders TO guard"


def test_a_start_goes_without_it(start_guard, database, items, orders, sync):
    publish(database, items(), orders)
    database.execute(BREAK)
    guard = start_guard(items(), orders, sync=sync, poll_interval="1s", ready=False)
    wait_left_out(guard, "permission denied")
    assert "keyspace orders cannot be guarded" in guard.log()
    must_guard_items_only(guard)
    database.execute(MEND)
    guard.wait_guarding()
    assert guard.redis().mget("order:1", "order:5000") == [b"order 1", None]


def test_one_that_is_not_published_is_left_out(start_guard, database, items, orders):
    publish(database, items())
    guard = start_guard(items(), orders, sync="replication", ready=False)
    wait_left_out(guard, "ALTER PUBLICATION nestguard ADD TABLE public.orders;")
    must_guard_items_only(guard)
    database.execute("INSERT INTO items VALUES (777, 'new')")
    wait_followed(database)
    assert guard.redis().get("item:777") == b"new"
    database.execute("ALTER PUBLICATION nestguard ADD TABLE orders")
    guard.wait_guarding()
    assert guard.redis().get("order:5000") is None


def test_one_whose_keys_are_printed_with_names_denies_none(start_guard, database, items, sync):
    """A rename gives a row another key, of which nothing tells."""
    database.execute("CREATE TABLE before (); CREATE TABLE orders (id regclass[] PRIMARY KEY, v text);"
                     "INSERT INTO orders VALUES ('{before}', 'of it')")
    orders = {"name": "orders", "key": "order:{id}", "table": "orders", "value": "v"}
    publish(database, items(), orders)
    guard = start_guard(items(), orders, sync=sync, ready=False)
    wait_left_out(guard, "whose text is not the row's alone")
    must_guard_items_only(guard)
    assert guard.redis().get("order:{before}") == b"of it"
    database.execute("ALTER TABLE before RENAME TO after")
    assert guard.redis().get("order:{after}") == b"of it"


def test_what_is_added_and_cannot_be_had_passes_with_its_reason(start_guard, database, cache, items,
                                                                orders, sync):
    publish(database, items(), orders)
    guard = start_guard(items(), sync=sync, poll_interval="1s")
    with database.locked("orders"):  # it breaks behind the question whether it can be had
        reload(guard, database, cache, sync, items(), orders, poll_interval="1s")
        database.execute(BREAK)
    wait_left_out(guard, "permission denied")
    must_guard_items_only(guard)
    # It is not for that one that the others are built again and again.
    if sync != "poll":
        generation = guard.status()["generation"]["number"]
        failures = guard.metric("nestguard_build_failures_total")
        wait_until(lambda: guard.metric("nestguard_build_failures_total") >= failures + 2, PATIENCE,
                   guard.log)
        assert guard.status()["generation"]["number"] == generation
    database.execute(MEND)
    guard.wait_guarding()


def test_a_renewal_without_a_log_goes_without_it(start_guard, database, items, orders):
    guard = start_guard(items(), orders, sync="poll", poll_interval="1s")
    database.execute(BREAK)
    wait_left_out(guard, "permission denied")
    # The others are renewed by the timer as ever.
    database.execute("INSERT INTO items VALUES (777, 'new')")
    wait_until(lambda: guard.redis().get("item:777") == b"new", PATIENCE, guard.log)
    must_guard_items_only(guard)
    database.execute(MEND)
    guard.wait_guarding()


def test_one_that_the_log_still_tells_of_guards_on(start_guard, database, items, orders):
    publish(database, items(), orders)
    guard = start_guard(items(), orders, sync="replication")
    database.execute(BREAK)
    number = guard.status()["generation"]["number"]
    assert guard.control("POST", "/v1/rebuild").status_code == 202
    wait_until(lambda: "permission denied" in (guard.status()["last_build_error"] or ""), PATIENCE,
               guard.log)
    assert guard.is_ready() and guard.status()["generation"]["number"] == number
    # Once it has to be built anew, it passes; the other one guards on.
    database.execute("ALTER TABLE orders ALTER COLUMN id TYPE numeric")
    wait_left_out(guard, "permission denied")
    must_guard_items_only(guard)
    database.execute(MEND)
    guard.wait_guarding()


def test_what_was_cached_meanwhile_is_purged_when_it_guards_again(start_guard, database, cache, items,
                                                                 orders):
    """No log told of its rows."""
    publish(database, items())
    guard = start_guard(items(), orders, sync="replication", ready=False)
    wait_left_out(guard, "ALTER PUBLICATION")
    fill(guard, cache, "order:1", "item:1")
    database.execute("UPDATE orders SET payload = 'newer' WHERE id = 1")
    database.execute("ALTER PUBLICATION nestguard ADD TABLE orders")
    guard.wait_guarding()
    wait_until(lambda: guard.redis().get("order:1") == b"newer", PATIENCE, guard.log)
    assert cache.client().exists("item:1")


def test_a_server_that_goes_is_nobodys_fault(start_guard, database, items, orders, sync):
    """All of it is tried again, and none is left out."""
    publish(database, items(), orders)
    guard = start_guard(items(), orders, sync=sync)
    with database.locked("orders"):
        guard.control("POST", "/v1/rebuild")
        wait_until(lambda: (guard.status()["building"] or {}).get("waits"), PATIENCE, guard.log)
        query_alone(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename ="
                              " 'guard' AND datname = current_database()")
    guard.wait_guarding()
    assert "starting over without" not in guard.log(lines=10**6)


def test_a_start_with_none_that_can_be_had_is_refused(start_guard, database, items, orders, sync):
    publish(database, items(), orders)
    guard = start_guard(items(), orders, sync=sync)
    guard.stop()
    database.execute(f"{BREAK}; REVOKE ALL ON items FROM guard")
    status, said = run_nestguard("serve", "-c", guard.file)
    assert status == 1 and "not started: 2 errors" in said


def test_a_deletion_after_a_keyspace_was_remade_ends_nothing(start_guard, database, cache, items, orders):
    """The number of the one that it was has no filter."""
    publish(database, items(), orders)
    guard = start_guard(items(), orders, sync="replication")
    reload(guard, database, cache, "replication", items(key="thing:{id}"), orders)
    guard.wait_guarding()
    database.execute("DELETE FROM orders WHERE id <= 10")
    wait_followed(database)
    wait_until(lambda: guard.explain("order:5")["verdict"] == "absent", PATIENCE, guard.log)
    assert guard.redis().mget("order:5", "thing:1") == [None, b"payload 1"]
