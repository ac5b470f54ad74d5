"""A new user's walk: an own table in a PostgreSQL and a Redis as they come from the box, README's
first example, `check` and what it prints, `serve`, a first value.

    pytest -s tests/e2e/test_new_user.py      prints what it took
"""
import json
import re
import time

import pytest

import servers
from checking import run_check
from waiting import wait_until

# As a person measured them with version 0.1.
BEFORE = {"seconds to the first value": 48, "rounds of check": 4, "statements to run": 5}


@pytest.fixture
def shop():
    """An application's table, of its own role; and a role for the guard that may do nothing."""
    server = servers.Postgres(wal_level=None, max_prepared_transactions=None,
                              shared_preload_libraries=None)
    server.GUARD_ROLE = "CREATE ROLE shop LOGIN; CREATE ROLE app LOGIN"
    server.start()
    server.execute("CREATE DATABASE shop OWNER shop")
    server.execute("""
        CREATE TABLE articles (id bigserial PRIMARY KEY, title text NOT NULL, body text NOT NULL);
        INSERT INTO articles (title, body)
            SELECT 'title ' || n, repeat('words ', 100) FROM generate_series(1, 20000) n;
        ALTER TABLE articles OWNER TO shop""", "shop")
    yield server
    server.remove()


def example(database, cache, ports):
    """README's, with the reader's own table in it."""
    text = (servers.ROOT / "README.md").read_text()
    text = re.search(r"## Use it\n+```yaml\n(.*?)```", text, re.S).group(1)
    for old, new in (("127.0.0.1:6380", f"127.0.0.1:{ports[0]}"),
                     ("127.0.0.1:6390", f"127.0.0.1:{ports[1]}"),
                     ("redis://127.0.0.1:6379/0", cache.url),
                     ("127.0.0.1:5432/shop", f"127.0.0.1:{database.port}/shop"),
                     ("name: items", "name: articles"), ("item:{id}", "article:{id}"),
                     ("public.items", "public.articles"), ("value: payload", "value: title")):
        assert old in text, f"{old} is not in README's example any more"
        text = text.replace(old, new)
    return text


def run_as_printed(server, findings):
    """All SQL, from above to below; a restart where it says so. Returns the statements."""
    run = [one["sql"] for one in findings if one["sql"]]
    for sql in run:
        server.execute(sql, "shop")
    if any("restart of the server" in sql for sql in run):
        server.restart()
    return run


def test_a_value_comes_after_one_round_of_check(shop, cache, tmp_path, capsys):
    ports = servers.free_port(), servers.free_port()
    file, began = tmp_path / "nestguard.yaml", time.monotonic()
    file.write_text(example(shop, cache, ports))
    rounds, statements = 0, []
    while (told := json.loads(run_check(file, "--json").stdout))["errors"] + told["warnings"]:
        assert rounds < 5, told
        rounds += 1
        statements += run_as_printed(shop, told["findings"])
    guard = servers.Nestguard(file.read_text())
    guard.port, guard.control_port = ports
    try:
        guard.start()
        wait_until(lambda: guard.redis().get("article:7"), servers.PATIENCE, guard.log)
        seconds = time.monotonic() - began
        guard.wait_guarding()
        assert guard.redis().mget("article:7", "article:20001") == [b"title 7", None]
        assert guard.keyspace("articles")["rejected"] >= 1
    finally:
        guard.remove()
    found = {"seconds to the first value": seconds, "rounds of check": rounds,
             "statements to run": len(statements)}
    with capsys.disabled():
        print(f"\n{'a new user':30} {'now':>6} {'before':>7}")
        for what, number in found.items():
            print(f"{what:30} {number:6.3g} {BEFORE[what]:7}")
        print(*(f"    {sql}" for sql in statements), sep="\n")
    assert rounds == 1 and len(statements) <= BEFORE["statements to run"], statements
    assert not any("FULL" in sql for sql in statements)
