"""Keyspaces are added, changed and removed while the guard runs: nobody is cut off, what stays the
same guards on, and nothing is rejected by a rule that does not hold any more."""
import threading

import pytest

from following import fill, is_possible, publish, wait_followed
from gate import Gate
from ports import free_port
from servers import PATIENCE
from waiting import wait_until

ORDERS = {"name": "orders", "key": "order:{id}", "table": "orders", "value": "payload",
          "ttl": "10m"}


@pytest.fixture(params=["replication", "none"])
def sync(request):
    return request.param


@pytest.fixture
def orders(database, items):
    database.execute("""
        CREATE TABLE orders (id bigint PRIMARY KEY, payload text);
        INSERT INTO orders SELECT n, 'order ' || n FROM generate_series(1, 50) n""")
    return ORDERS


@pytest.fixture
def guard(start_guard, database, items, orders, sync):
    """Guards `items`; what it may publish is published for all."""
    publish(database, items(), orders)
    return start_guard(items(), sync=sync)


def reload(guard, database, cache, sync, *keyspaces, **settings):
    count = guard.log(lines=10**6).count("configuration read again")
    guard.configure({"cache": cache.url, "database": database.url, "sync": sync,
                     "keyspaces": list(keyspaces), **settings})
    guard.signal(1)
    wait_until(lambda: guard.log(lines=10**6).count("configuration read again") > count, PATIENCE,
               guard.log)


class Clients:
    """Looks keys up over connections that stay, and remembers each answer that must not be."""

    def __init__(self, guard, wanted, threads=3):
        self.guard, self.wanted = guard, wanted
        self.wrong, self.lookups, self.ending = [], 0, False
        self.threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def _run(self):
        client = self.guard.redis(retry=None)
        connection = client.connection_pool.get_connection("GET")
        try:
            while not self.ending:
                for key, value in self.wanted.items():
                    connection.send_command("GET", key)
                    found = connection.read_response()
                    if found != value:
                        self.wrong.append((key, found))
                    self.lookups += 1
        except Exception as problem:  # pylint: disable=broad-except
            self.wrong.append(("", problem))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending = True
        for thread in self.threads:
            thread.join()


def test_an_added_keyspace_guards_and_nobody_notices(guard, database, cache, items, orders, sync):
    wanted = {"item:1": b"payload 1", "item:100": b"payload 100", "item:5000": None}
    with Clients(guard, wanted) as clients:
        wait_until(lambda: clients.lookups > 100, PATIENCE, "lookups")
        loads = guard.counter("nestguard_loads_total", result="absent")
        generation = guard.generation()
        reload(guard, database, cache, sync, items(), orders)
        wait_until(lambda: guard.keyspace("orders")["state"] == "guarding", PATIENCE, guard.log)
        seen = clients.lookups
        wait_until(lambda: clients.lookups > seen + 100, PATIENCE, "lookups")
        # Not once did an absent item go to the database.
        assert guard.counter("nestguard_loads_total", result="absent") == loads
    assert not clients.wrong
    assert guard.generation() > generation
    assert "keyspace items: passing" not in guard.log(lines=10**6)
    client = guard.redis()
    assert client.mget("order:1", "order:50") == [b"order 1", b"order 50"]
    rejected = guard.counter("nestguard_rejected_total", keyspace="orders")
    assert client.get("order:51") is None
    assert guard.counter("nestguard_rejected_total", keyspace="orders") == rejected + 1


def test_until_it_has_a_filter_its_lookups_pass(guard, database, cache, items, orders, sync):
    with database.locked("orders"):
        reload(guard, database, cache, sync, items(), orders)
        assert guard.keyspace("orders")["state"] == "loading"
        assert guard.keyspace("items")["state"] == "guarding"
        assert guard.redis().get("item:5000") is None
        assert guard.counter("nestguard_loads_total", result="absent") == 0
    guard.wait_guarding()
    assert guard.redis().get("order:7") == b"order 7"


def test_a_removed_one_is_passed_through_and_its_values_go(start_guard, database, cache, items,
                                                           orders, sync):
    publish(database, items(), orders)
    guard = start_guard(items(), orders, sync=sync)
    fill(guard, cache, "order:1", "item:1")
    client = guard.redis()
    assert client.get("order:99") is None
    reload(guard, database, cache, sync, items())
    wait_until(lambda: not cache.client().exists("order:1"), PATIENCE, "the purge")
    assert client.get("order:1") is None  # Redis' answer: it is not loaded any more
    client.set("order:99", "own")
    assert client.get("order:99") == b"own"
    assert [entry["name"] for entry in guard.status()["keyspaces"]] == ["items"]
    assert client.get("item:1") == b"payload 1" and cache.client().exists("item:1")
    assert "orders" not in guard.control("GET", "/metrics").text


def test_another_condition_holds_at_once(guard, database, cache, items, sync):
    """A row that the old condition left out is not absent by it for anybody."""
    if sync == "replication":
        pytest.skip("the publication's condition is another, too: see below")
    database.execute("UPDATE items SET deleted_at = now() WHERE id <= 10")
    reload(guard, database, cache, sync, items(where="deleted_at IS NULL"))
    guard.wait_guarding()
    client = guard.redis()
    assert client.get("item:5") is None
    assert not is_possible(guard, "item:5")
    with database.locked("items"):  # no generation can be built
        reload(guard, database, cache, sync, items(where="deleted_at IS NOT NULL"))
        assert guard.keyspace("items")["state"] == "loading"
        assert is_possible(guard, "item:5")
    guard.wait_guarding()
    assert client.get("item:5") == b"payload 5"
    assert client.get("item:50") is None


def test_with_another_value_the_filter_stays_and_old_values_go(guard, database, cache, items,
                                                              sync):
    fill(guard, cache, "item:1", "item:2")
    with database.locked("items"):  # no generation can be built
        reload(guard, database, cache, sync, items(value="id"))
        assert guard.keyspace("items")["state"] == "guarding"
        assert guard.redis().get("item:5000") is None
        wait_until(lambda: not cache.client().exists("item:1", "item:2"), PATIENCE, "the purge")
    assert guard.redis().mget("item:1", "item:2") == [b"1", b"2"]


def test_counters_go_on_under_the_name(guard, database, cache, items, sync):
    for number in range(5):
        assert guard.redis().get(f"item:{5000 + number}") is None
    assert guard.counter("nestguard_rejected_total") == 5
    reload(guard, database, cache, sync, items(key="thing:{id}"))
    guard.wait_guarding()
    assert guard.counter("nestguard_rejected_total") == 5
    assert guard.redis().get("thing:5000") is None
    assert guard.redis().get("thing:1") == b"payload 1"
    assert guard.counter("nestguard_rejected_total") == 6
    assert guard.redis().get("item:1") is None  # no key of it any more


def refuse(guard, url, cache, sync, *keyspaces):
    """What is said of a file that is not taken: of each problem its place, its text and its remedy."""
    guard.configure({"cache": cache.url, "database": url, "sync": sync, "keyspaces": list(keyspaces)})
    answer = guard.control("POST", "/v1/reload")
    assert answer.status_code == 409, answer.text
    assert answer.json()["error"] == "the database has not what the file wants of it: nothing was changed"
    problems = [problem for problem in answer.json()["problems"] if problem["level"] == "error"]
    place, text = problems[0]["place"], problems[0]["text"]
    assert f"reload: {place}: {text}" in guard.log(lines=10**6)
    assert guard.status()["reload_refused"] == f"{place}: {text}"
    return problems


@pytest.mark.parametrize("keyspace, said, remedy", [
    ({"table": "order"}, "table order does not exist", "table: public.orders"),
    ({"where": "nosuch = 1"}, "nosuch", None),
    ({"key": "order:{nr}"}, "nr", None),
    ({"value": "paylod"}, "paylod", "value: payload"),
])
def test_what_the_database_does_not_have_is_not_taken(guard, database, cache, items, orders, sync, keyspace, said,
                                                      remedy):
    before = guard.control("GET", "/v1/config").text
    problems = refuse(guard, database.url, cache, sync, items(ttl="1h"), {**orders, **keyspace})
    assert said in problems[0]["text"], problems
    assert "keyspace orders (" in problems[0]["place"]
    assert remedy is None or problems[0]["remedy"] == remedy
    assert guard.control("GET", "/v1/config").text == before
    assert guard.keyspace("items")["state"] == "guarding"
    assert guard.redis().mget("item:1", "item:5000") == [b"payload 1", None]
    reload(guard, database, cache, sync, items(), orders)
    assert guard.status()["reload_refused"] is None
    guard.wait_guarding()
    assert guard.redis().get("order:3") == b"order 3"


def test_a_misspelt_column_of_one_that_guards_is_not_taken(guard, database, cache, items, sync):
    refuse(guard, database.url, cache, sync, items(value="paylod"))
    assert guard.redis().get("item:7") == b"payload 7"


def test_a_database_that_cannot_be_reached_is_not_taken(guard, database, cache, items, sync):
    url = f"postgresql://guard:secret@127.0.0.1:{free_port()}/shop"
    problems = refuse(guard, url, cache, sync, items())
    assert "no connection" in problems[0]["text"] and problems[0]["place"].endswith("/shop")
    assert "secret" not in guard.log(lines=10**6)
    refuse(guard, database.url + "_not", cache, sync, items())
    cache.client().flushall()
    assert guard.redis().get("item:1") == b"payload 1"
    assert guard.keyspace("items")["state"] == "guarding"


def test_what_is_wrong_already_refuses_nothing_else(guard, database, cache, items, orders, sync):
    reload(guard, database, cache, sync, items(), orders)
    guard.wait_guarding()
    database.execute("ALTER TABLE orders RENAME TO away")
    reload(guard, database, cache, sync, items(ttl="1h"), {**orders, "ttl": "1h"})
    assert "keyspace orders" in guard.log(lines=10**6) and "table orders does not exist" in guard.log(lines=10**6)
    assert guard.status()["reload_refused"] is None
    refuse(guard, database.url, cache, sync, items(), orders, {**orders, "name": "more", "key": "more:{id}"})


def test_a_failover_is_followed_though_something_is_wrong_already(start_guard, database, cache, items,
                                                                  orders):
    """The database before, which could say so, does not answer any more."""
    gate = Gate(database.server.port)
    there = database.url.replace(str(database.server.port), str(gate.port))
    guard = start_guard(items(), orders, sync="none", database=there)
    database.execute("ALTER TABLE orders RENAME TO away")
    gate.close()
    reload(guard, database, cache, "none", items(), orders)
    assert guard.status()["reload_refused"] is None
    assert "table orders does not exist" in guard.log(lines=10**6)
    wait_until(lambda: guard.status()["backends"]["database"]["connections"] == 4, PATIENCE, guard.log)
    assert guard.redis().get("item:1") == b"payload 1"


def test_a_database_that_is_down_keeps_no_file_from_being_taken(guard, database, cache, items, sync, postgres_server):
    postgres_server.stop()
    try:
        reload(guard, database, cache, sync, items(value="id"))
    finally:
        postgres_server.start()
    assert "it could not be asked whether it has what the file wants" in guard.log(lines=10**6)
    guard.wait_guarding()
    wait_until(lambda: guard.status()["backends"]["database"]["connections"] == 4, PATIENCE, guard.log)
    assert guard.redis().get("item:1") == b"1"


def test_lookups_go_on_while_the_database_is_asked(guard, database, cache, items, orders, sync):
    assert guard.redis().get("item:1") == b"payload 1"
    with database.locked("orders"):
        guard.configure({"cache": cache.url, "database": database.url, "sync": sync, "keyspaces": [items(), orders]})
        count = guard.log(lines=10**6).count("configuration read again")
        guard.signal(1)
        wait_until(lambda: database.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                          " AND application_name = 'nestguard'"), PATIENCE, guard.log)
        assert guard.log(lines=10**6).count("configuration read again") == count
        assert guard.redis().mget("item:1", "item:5000") == [b"payload 1", None]
        assert guard.control("POST", "/v1/reload").status_code == 503
    wait_until(lambda: guard.log(lines=10**6).count("configuration read again") > count, PATIENCE, guard.log)


def test_who_ends_meanwhile_ends(guard, database, cache, items, orders, sync):
    with database.locked("orders"):
        guard.configure({"cache": cache.url, "database": database.url, "sync": sync, "keyspaces": [items(), orders]})
        guard.signal(1)
        wait_until(lambda: database.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                                          " AND application_name = 'nestguard'"), PATIENCE, guard.log)
        assert guard.stop() == 0
    assert "configuration read again" not in guard.log(lines=10**6)


@pytest.mark.parametrize("breaks, mends, said", [
    ("ALTER TABLE orders RENAME TO away", "ALTER TABLE away RENAME TO orders", "orders"),
    ("ALTER TABLE orders RENAME id TO nr", "ALTER TABLE orders RENAME nr TO id", "id"),
])
def test_one_that_cannot_be_built_is_named_and_the_others_guard(guard, database, cache, items, orders, sync, breaks,
                                                               mends, said):
    reload(guard, database, cache, sync, items(), orders)
    guard.wait_guarding()
    database.execute(breaks)
    guard.control("POST", "/v1/rebuild")
    wait_until(lambda: said in (guard.status()["last_build_error"] or ""), PATIENCE, guard.log)
    wait_until(lambda: guard.keyspace("items")["state"] == "guarding", PATIENCE, guard.log)
    rejected = guard.counter("nestguard_rejected_total")
    assert guard.redis().mget("item:1", "item:5000") == [b"payload 1", None]
    assert guard.counter("nestguard_rejected_total") == rejected + 1
    database.execute(mends)
    reload(guard, database, cache, sync, items(), {**orders, "ttl": "1h"})
    guard.wait_guarding()
    assert guard.redis().get("order:3") == b"order 3"


def test_what_is_added_is_followed_from_then_on(guard, database, cache, items, orders, sync):
    if sync != "replication":
        pytest.skip("no log is followed")
    reload(guard, database, cache, sync, items(), orders)
    guard.wait_guarding()
    assert guard.redis().get("order:60") is None
    database.execute("INSERT INTO orders VALUES (60, 'new')")
    database.execute("INSERT INTO items VALUES (160, 'new')")
    wait_followed(database)
    assert guard.redis().mget("order:60", "item:160") == [b"new", b"new"]
    fill(guard, cache, "order:60")
    database.execute("DELETE FROM orders WHERE id = 60")
    wait_followed(database)
    wait_until(lambda: not cache.client().exists("order:60"), PATIENCE, "the purge")
    assert guard.redis().get("order:60") is None
