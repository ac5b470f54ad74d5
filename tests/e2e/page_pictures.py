#!/usr/bin/python3
"""Makes the pictures of the page that the documents show: a guard at work, light and dark, on a
telephone, and while it passes.

    NESTGUARD=build/nestguard tests/e2e/page_pictures.py [FOLDER]     (deploy/pictures)

As root, or with what the end-to-end tests need.
"""
import contextlib
import pathlib
import random
import sys
import threading
import time

import redis

import browser
import servers
import small_png
from following import publish
from waiting import wait_until

SECONDS = 62  # a whole history
KEYSPACES = [
    {"name": "items", "key": "item:{id}", "table": "public.items", "value": "payload", "ttl": "10m"},
    {"name": "users", "key": "user:{email}", "table": "public.users", "value": "json", "ttl": "10m"},
    {"name": "carts", "key": "cart:{user_id}:{id}", "table": "public.carts", "value": "json",
     "ttl": "1m"},
]
TABLES = """
    CREATE TABLE items (id bigint PRIMARY KEY, payload text);
    INSERT INTO items SELECT n, 'payload ' || n FROM generate_series(1, 250000) n;
    CREATE TABLE users (email text PRIMARY KEY, name text);
    INSERT INTO users SELECT 'u' || n || '@example.com', 'user ' || n FROM generate_series(1, 40000) n;
    CREATE TABLE carts (user_id bigint, id bigint, total int, PRIMARY KEY (user_id, id));
    INSERT INTO carts SELECT n, 1, n FROM generate_series(1, 60000) n;
"""


def ask(guard, end):
    """As clients do, and somebody who asks for what is not there, in waves."""
    client = guard.redis()
    chance = random.Random(1)
    began = time.monotonic()
    while not end.is_set():
        wave = 1 + int(60 * max(0, ((time.monotonic() - began) % 24) / 12 - 1))
        pipe = client.pipeline(transaction=False)
        for _ in range(25):
            pipe.get(f"item:{min(int(chance.paretovariate(0.35)), 250000)}")
            pipe.get(f"cart:{chance.randrange(1, 400)}:1")
        pipe.get(f"user:u{chance.randrange(1, 40000)}@example.com")
        for _ in range(10 * wave):
            pipe.get(f"item:{chance.randrange(10**6, 10**12)}")
        pipe.get(f"user:{chance.randrange(10**9)}@example.org")
        with contextlib.suppress(redis.RedisError):
            pipe.execute(raise_on_error=False)
        end.wait(0.1)


@contextlib.contextmanager
def at_work():
    postgres, cache = servers.Postgres().start(), servers.Redis().start()
    database = servers.Database(postgres, "shop")
    database.execute(TABLES)
    publish(database, *KEYSPACES)
    guard = servers.Nestguard({"cache": cache.url, "database": database.url, "sync": "replication",
                               "keyspaces": KEYSPACES}).start()
    end = threading.Event()
    thread = threading.Thread(target=ask, args=(guard, end))
    thread.start()
    try:
        yield guard, postgres
    finally:
        end.set()
        thread.join()
        for server in (guard, cache, postgres):
            server.stop()
            server.remove()


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else servers.ROOT / "deploy/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    chromium = browser.Browser()

    def take(name, width, scheme, height=None):
        chromium.look(width, 860, scheme)
        time.sleep(1.5)  # charts follow the window
        chromium.picture(folder / f"{name}.png", height)
        small_png.shrink(folder / f"{name}.png")

    with at_work() as (guard, postgres):
        chromium.look()
        chromium.open(guard)
        time.sleep(SECONDS)
        chromium.find("#key").send_keys("item:987654321", browser.Keys.ENTER)
        wait_until(lambda: "rejected" in chromium.text("#explained"), 30, "the explanation")
        take("page", 1180, "light")
        take("page-dark", 1180, "dark")
        take("page-narrow", 390, "light", 1100)
        postgres.stop()
        wait_until(lambda: chromium.text("#state") == "passing", 30, "passing")
        time.sleep(5)
        take("page-passing", 1180, "light", 700)
        postgres.start()
        guard.wait_guarding()
    chromium.quit()


main()
