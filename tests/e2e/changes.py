"""Rows of the table `items` and their keys: how tests change them, and look them up everywhere."""
import time

from servers import PATIENCE
from waiting import wait_until

CLIENTS = 8  # enough to meet every worker, most of the time


def call(guard, method, key, query=""):
    return guard.control(method, guard.key_path(key) + query).status_code


def insert(database, number, payload="new"):
    database.execute("INSERT INTO items VALUES (%s, %s)", (number, payload))


def delete(database, number):
    database.execute("DELETE FROM items WHERE id = %s", (number,))


def update(database, number, payload):
    database.execute("UPDATE items SET payload = %s WHERE id = %s", (payload, number))


def outlive(seconds):
    """Nothing tells that a time is over but the clock."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, PATIENCE, "the clock")


def assert_found(guard, cache, key, value):
    """On every worker, whether the cache has it or not."""
    for _ in range(CLIENTS):
        cache.client().delete(key)
        client = guard.redis()
        assert client.exists(key) == 1, guard.explain(key)
        assert client.get(key) == value, guard.explain(key)
        assert client.mget(key, "item:1") == [value, b"payload 1"]
