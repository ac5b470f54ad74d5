"""What is published changes with the file while the guard runs: whoever reads meanwhile never misses a row,
and no lease stands for what is not kept true any more."""
import contextlib
import threading

import pytest

from conftest import items_keyspace
from following import follow, publish  # pylint: disable=unused-import
from published import Published
from servers import PATIENCE
from test_published import NAME, absent, info, lease, published, wait_lease, wait_possible
from test_reload import reload
from waiting import wait_until


@pytest.fixture
def change(database, cache):
    def to(guard, *keyspaces, **settings):
        reload(guard, database, cache, "replication", *keyspaces, max_lag="2s", **settings)
    return to


@contextlib.contextmanager
def reading(cache, *names):
    """Readers that know the names ask for rows all the time; what they are told must be right."""
    wrong, ending = [], threading.Event()

    def read(name):
        client = cache.client()
        reader = Published(client, name)
        while not ending.is_set():
            if any(reader.absent(*map(str, range(1, 101)))):
                wrong.append((name, reader.info, client.get(f"{name}:lease")))

    threads = [threading.Thread(target=read, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:3]


def keys_of(cache, name):
    return sorted(key.decode() for key in cache.client().keys(f"{name}*"))


def test_what_is_wanted_anew_is_published_without_a_restart(follow, items, cache, database, change):
    guard = follow(items())
    assert guard.keyspace("items")["published"] is None
    change(guard, published())
    wait_lease(cache, guard)
    assert absent(cache, 1, 100, 5000) == [False, False, True]
    database.execute("INSERT INTO items VALUES (1000, 'new')")
    wait_possible(cache, 1000)


def test_what_is_not_wanted_any_more_goes_and_its_lease_first(follow, items, cache, change):
    guard = follow(published(grow=True))
    with reading(cache, NAME):
        wait_lease(cache, guard)
        change(guard, items())
        wait_until(lambda: not keys_of(cache, NAME), PATIENCE, lambda: keys_of(cache, NAME))
    assert guard.keyspace("items")["published"] is None
    assert "nestguard_published_keys" not in str(guard.metrics())


def test_with_its_keyspace_it_goes(follow, items, cache, database, change):
    guard = follow(published())
    wait_lease(cache, guard)
    database.execute("CREATE TABLE others (id bigint PRIMARY KEY, payload text)")
    publish(database, items_keyspace(table="others"))
    change(guard, items_keyspace(table="others"))
    wait_until(lambda: not keys_of(cache, NAME), PATIENCE, lambda: keys_of(cache, NAME))


def test_another_rate_or_format_takes_its_place(follow, items, cache, change):
    guard = follow(published(false_positive_rate=0.01))
    wait_lease(cache, guard)
    with reading(cache, NAME):
        for settings in ({"false_positive_rate": 0.0001}, {"format": "bkdr-sdbm-js"}, {}):
            before = lease(cache)
            change(guard, published(**settings))
            wait_until(lambda before=before: lease(cache) not in (None, before), PATIENCE,
                       guard.log)
            assert info(cache)["format"] == settings.get("format", "guava-murmur3-128-64")
    assert Published(cache.client(), NAME).absent("5000") == [True]


@pytest.mark.parametrize("before, after", [
    ({}, {"key": "elsewhere"}), ({}, {"items": "key"}), ({"items": "key"}, {}),
    ({}, {"grow": True}), ({"grow": True}, {})])
def test_what_is_read_otherwise_ends_when_the_other_begins(follow, items, cache, database, change,
                                                           before, after):
    guard = follow(published(**before))
    wait_lease(cache, guard)
    name = after.get("key", NAME)
    whole = (lambda n: f"item:{n}") if "items" in after else str
    change(guard, published(**after))
    wanted = {f"{name}:info", f"{name}:lease",
              *([f"{name}-0", f"{name}-cursor"] if "grow" in after else [name])}
    wait_until(lambda: {*keys_of(cache, NAME), *keys_of(cache, name)} == wanted and
               info(cache, name).get("items") == after.get("items", "columns"), PATIENCE,
               lambda: f"{keys_of(cache, NAME)} {keys_of(cache, name)}\n{guard.log()}")
    database.execute("INSERT INTO items VALUES (1000, 'new')")
    reader = Published(cache.client(), name)
    wait_until(lambda: cache.client().get(f"{name}:lease") and
               reader.absent(whole(1000), whole(1), whole(5000)) == [False, False, True],
               PATIENCE, guard.log)


def test_two_keyspaces_exchange_their_names(follow, items, cache, database, change):
    database.execute("CREATE TABLE others (id bigint PRIMARY KEY, payload text);"
                     " INSERT INTO others SELECT n, 'x' FROM generate_series(501, 600) n")
    others = {"name": "others", "key": "others/{id}", "table": "others", "value": "payload"}
    rate = {"false_positive_rate": 0.0001}

    def both(one, other):
        return items(publish={"key": one, **rate}), {**others, "publish": {"key": other, **rate}}

    guard = follow(*both("one", "other"))
    readers = [Published(cache.client(), name) for name in ("one", "other")]

    def found():
        return [cache.client().get(f"{reader.name}:lease") and reader.absent("1", "501")
                for reader in readers]

    wait_until(lambda: found() == [[False, True], [True, False]], PATIENCE, guard.log)
    change(guard, *both("other", "one"))
    wait_until(lambda: found() == [[True, False], [False, True]], PATIENCE, guard.log)


def test_what_the_cache_was_away_for_is_deleted_when_it_is_back(follow, items, cache, change):
    guard = follow(published())
    wait_lease(cache, guard)
    cache.pause()
    change(guard, items())
    cache.resume()
    wait_until(lambda: not keys_of(cache, NAME), PATIENCE, lambda: keys_of(cache, NAME))


def test_what_is_published_has_the_memory_that_filters_leave(follow, items, cache, change):
    """All filters together, and the bitmap, against one bound."""
    guard = follow(published(false_positive_rate=0.0000001), max_filter_memory="1mb")
    wait_lease(cache, guard)
    change(guard, published(false_positive_rate=0.0000001), max_filter_memory="8kb")
    guard.rebuild()
    wait_until(lambda: "max_filter_memory" in (
        guard.keyspace("items")["published"]["last_error"] or ""), PATIENCE, guard.status)
    assert guard.redis().get("item:5000") is None and not lease(cache)
    assert guard.keyspace("items")["state"] == "guarding"
