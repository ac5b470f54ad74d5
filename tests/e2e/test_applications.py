"""What deploy/applications.md promises of five applications, with the configurations and the code that
stand there. Where a language is not among the packages that the tests install (Ruby, Go) or need
not be (Java), what its lines send to Redis is sent by redis-py."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import redis
import yaml

import servers
from following import is_possible, publish
from servers import PATIENCE, run_nestguard
from waiting import wait_until

PAGE = servers.ROOT / "deploy" / "applications.md"
CLIENTS = pathlib.Path(__file__).parent / "clients"


class Section:
    """One application's part of the page."""

    def __init__(self, title):
        text = re.search(rf"^## {title}.*?(?=^## |\Z)", PAGE.read_text(), re.S | re.M).group()
        self.blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```", text, re.S | re.M))

    @property
    def config(self):
        return yaml.safe_load(self.blocks["yaml"])

    def run(self, port, control_port=6390):
        """The names that its Python defines."""
        assert "port=6380" in self.blocks["python"]
        names = {}
        code = self.blocks["python"].replace("port=6380", f"port={port}")
        exec(code.replace("127.0.0.1:6390", f"127.0.0.1:{control_port}"), names)  # pylint: disable=exec-used
        return names


@pytest.fixture
def start(start_guard, database):
    """start(section) starts a guard by its configuration, where this machine has its servers.
    `check` finds nothing wrong with it."""
    def begin(section, ready=True):
        config = section.config
        assert (config.pop("listen"), config.pop("control"), config.pop("cache")) == (
            "127.0.0.1:6380", "127.0.0.1:6390", "redis://127.0.0.1:6379/0")
        [keyspace] = config.pop("keyspaces")
        if config.pop("database", None):
            publish(database, keyspace)
            config.update(sync="replication")
        else:
            config.update(database=None, sync=None)
        guard = start_guard(keyspace, ready=ready, **config)
        status, said = run_nestguard("check", "-c", guard.file)
        assert status == 0 and "error:" not in said, said
        return guard

    return begin


def wait_answer(ask, wanted, guard):
    wait_until(lambda: ask() == wanted, PATIENCE, lambda: f"{wanted}: {ask()}\n{guard.log()}")


def test_rails_reads_json_and_writes_nothing(start, database, cache):
    """Rails.cache.read(raw: true) is a GET; Ruby is not here."""
    section = Section("Rails")
    assert 'Rails.cache.read("product:#{id}", raw: true)' in section.blocks["ruby"]
    database.execute("CREATE TABLE products (id bigint PRIMARY KEY, name text, cents int, secret text);"
                     "INSERT INTO products SELECT n, 'Product ' || n, 100 * n, 'x'"
                     " FROM generate_series(1, 100) n")
    guard = start(section)
    client = guard.redis()

    def cached(number):
        entry = client.get(f"product:{number}")
        return entry and json.loads(entry)

    assert cached(42) == {"id": 42, "name": "Product 42", "cents": 4200}
    cache.wait_for_key("product:42")
    assert 0 < cache.client().pttl("product:42") <= 11 * 60 * 1000
    asked, loads = cache.calls("get"), database.count_loads()
    assert cached(4711) is None
    assert (cache.calls("get"), database.count_loads()) == (asked, loads)
    database.execute("UPDATE products SET cents = 1 WHERE id = 42;"
                     "INSERT INTO products VALUES (4711, 'new', 5); DELETE FROM products WHERE id = 7")
    wait_answer(lambda: cached(42)["cents"], 1, guard)
    wait_answer(lambda: cached(4711), {"id": 4711, "name": "new", "cents": 5}, guard)
    wait_answer(lambda: cached(7), None, guard)
    database.server.stop()
    with pytest.raises(redis.ResponseError, match="NESTGUARD"):
        cached(50)


@pytest.fixture
def coupons(start, database, cache):
    database.execute("CREATE TABLE coupons (code text PRIMARY KEY, percent int);"
                     "INSERT INTO coupons SELECT 'SUMMER' || n, 10 FROM generate_series(1, 100) n")
    guard = start(Section("A Java service"))
    wait_until(lambda: cache.client().get("coupons:filter:lease"), PATIENCE, guard.log)
    return guard


def test_java_asks_where_guava_looks(coupons, database, cache, tmp_path):
    """The page's class, with Debian's Guava, over a socket of the test's own."""
    jars = [f"/usr/share/java/{jar}.jar" for jar in ("guava", "failureaccess")]
    if not shutil.which("javac") or not pathlib.Path(jars[0]).exists():
        pytest.skip("there is no JDK with Guava")
    (tmp_path / "Coupons.java").write_text(Section("A Java service").blocks["java"])
    path = ":".join([*jars, str(tmp_path)])
    made = subprocess.run(["javac", "-cp", path, "-d", tmp_path, tmp_path / "Coupons.java",
                           CLIENTS / "AskCoupons.java"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr

    def absent(*codes):
        said = subprocess.run(["java", "-cp", path, "AskCoupons", str(cache.port), *codes],
                              check=True, capture_output=True, text=True)
        return [line.split()[1] == "true" for line in said.stdout.splitlines()]

    codes = [f"SUMMER{n}" for n in range(1, 101)]
    assert absent(*codes) == [False] * 100
    assert sum(absent(*(f"WINTER{n}" for n in range(200)))) > 190
    database.execute("INSERT INTO coupons VALUES ('WINTER3', 5)")
    wait_until(lambda: coupons.redis().get("coupon:WINTER3") == b'{"code":"WINTER3","percent":5}',
               PATIENCE, coupons.log)
    wait_answer(lambda: absent("WINTER3", "SUMMER1"), [False, False], coupons)
    coupons.stop()
    wait_until(lambda: not cache.client().get("coupons:filter:lease"), PATIENCE, "the lease's end")
    assert absent("WINTER4", "WINTER5") == [False, False]


def test_what_may_exist_is_read_through_the_guard(coupons):
    client = coupons.redis()
    assert client.get("coupon:SUMMER1") == b'{"code":"SUMMER1","percent":10}'
    assert client.get("coupon:NONE") is None
    assert client.execute_command("BF.EXISTS", "coupons", "SUMMER1") == 1


def test_python_reads_hashes(start, database, cache):
    database.execute("CREATE TABLE users (id bigint PRIMARY KEY, name text, plan text, avatar text,"
                     " password text); INSERT INTO users SELECT n, 'User ' || n, 'free', NULL, 'secret'"
                     " FROM generate_series(1, 100) n")
    section = Section("Python, with hashes")
    guard = start(section)
    page = section.run(guard.port)
    user, name_and_avatar = page["user"], page["name_and_avatar"]
    assert user(42) == {"id": "42", "name": "User 42", "plan": "free"}
    assert name_and_avatar(43) == ["User 43", None]
    cache.wait_for_key("user:43")
    assert cache.client().hgetall("user:43") == {b"id": b"43", b"name": b"User 43", b"plan": b"free"}
    loads = database.count_loads()
    assert user(4711) is None and name_and_avatar(4711) == [None, None]
    assert database.count_loads() == loads
    database.execute("UPDATE users SET avatar = 'a.png' WHERE id = 43")
    wait_answer(lambda: name_and_avatar(43), ["User 43", "a.png"], guard)
    database.execute("DELETE FROM users WHERE id = 43")
    wait_answer(lambda: user(43), None, guard)


def test_go_tells_an_order_that_is_none_from_a_miss(start, database, cache):
    """rdb.Get() is a GET and rdb.Set() a SET ... EX; Go is not here. The role may see ids only."""
    section = Section("Go, with loads")
    assert 'rdb.Set(ctx, "order:"+id, summary, time.Minute)' in section.blocks["go"]
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, total int);"
                     "INSERT INTO orders SELECT n, n FROM generate_series(1, 100) n;"
                     "REVOKE SELECT ON orders FROM guard; GRANT SELECT (id) ON orders TO guard")
    guard = start(section)
    client, loads = guard.redis(), database.count_loads()
    assert client.get("order:4711") == b"__absent__"
    assert client.get("order:42") is None
    assert client.set("order:42", "computed", ex=60)
    assert client.get("order:42") == b"computed" == cache.client().get("order:42")
    assert database.count_loads() == loads
    database.execute("UPDATE orders SET total = 0 WHERE id = 42; INSERT INTO orders VALUES (4711, 1)")
    wait_answer(lambda: client.get("order:42"), None, guard)
    wait_answer(lambda: client.get("order:4711"), None, guard)


def test_debezium_pushes_keys(start, cache, monkeypatch):
    """The messages are played: neither MySQL nor Kafka is here."""
    section = Section("MySQL, with Debezium")
    monkeypatch.setenv("PATH", f"{pathlib.Path(servers.NESTGUARD).parent}:{os.environ['PATH']}")
    guard = start(section, ready=False)
    page, before = section.run(guard.port, guard.control_port), {"before": None, "op": "r"}
    client = page["guard"]
    for number in range(1, 1501):
        page["on_change"]({**before, "after": {"id": number, "title": "old"}})
    assert is_possible(guard, "article:4711") and page["push"]()
    cache.client().mset({"article:42": "forty-two", "article:4711": "what nobody should see"})
    assert client.mget("article:42", "article:4711", "article:43") == [b"forty-two", None, None]

    page["on_change"]({"op": "u", "before": {"id": 42, "title": "old"}, "after": {"id": 42, "title": "new"}})
    page["on_change"]({"op": "c", "before": None, "after": {"id": 5000, "title": "new"}})
    page["on_change"]({"op": "d", "before": {"id": 7, "title": "old"}, "after": None})
    assert not cache.client().exists("article:42") and is_possible(guard, "article:5000")
    assert page["push"]() and not is_possible(guard, "article:7")
    assert is_possible(guard, "article:5000") and is_possible(guard, "article:42")

    page["keys"].intersection_update(sorted(page["keys"])[:500])
    assert not page["push"]() and "min_keys" in guard.keyspace("articles")["source_refused"]
    assert is_possible(guard, "article:5000") and not is_possible(guard, "article:7")


@pytest.mark.parametrize("title", ["Rails", "A Java service", "Python, with hashes",
                                   "Go, with loads", "MySQL, with Debezium"])
def test_each_has_a_configuration_and_code(title):
    assert len(Section(title).blocks) == 2
