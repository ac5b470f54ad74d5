"""What a keyspace publishes for applications that read it themselves: which bits, which names, and that
while the lease stands no row is missing, whatever happens to guard and cache."""
import pathlib
import shutil
import subprocess
import time

import pytest

import servers
from checking import check
from conftest import items_keyspace
from following import follow
from published import Published
from servers import PATIENCE
from test_clients import node_modules, run
from waiting import wait_until

NAME = "published"
SCRIPTS = pathlib.Path(__file__).parent / "clients"


def published(**settings):
    return items_keyspace(publish={"key": NAME, **settings})


def lease(cache):
    return cache.client().get(f"{NAME}:lease")


def wait_lease(cache, guard):
    return wait_until(lambda: lease(cache), PATIENCE,
                      lambda: f"a lease: {guard.keyspace('items')['published']}\n{guard.log()}")


def wait_no_lease(cache):
    wait_until(lambda: not lease(cache), PATIENCE, "the lease to end")


def info(cache, name=NAME):
    return {field.decode(): value.decode()
            for field, value in cache.client().hgetall(f"{name}:info").items()}


def absent(cache, *items):
    return Published(cache.client(), NAME).absent(*map(str, items))


def wait_possible(cache, *items):
    wait_until(lambda: lease(cache) and not any(absent(cache, *items)), PATIENCE,
               lambda: f"{items} to be in the filter")


def bitmaps(cache):
    return [NAME] if not cache.client().exists(f"{NAME}-cursor") else [
        f"{NAME}-{i}" for i in range(int(cache.client().get(f"{NAME}-cursor")) + 1)]


def test_rows_are_in_it_and_others_are_not(follow, items, cache):
    guard = follow(published(false_positive_rate=0.001))
    wait_lease(cache, guard)
    assert absent(cache, *range(1, 101)) == [False] * 100
    assert sum(absent(cache, *range(1000, 2000))) > 980
    said = info(cache)
    assert said["format"] == "guava-murmur3-128-64" and said["keys"] == "100"
    assert int(said["generation"]) == int(lease(cache)) and abs(
        int(said["built_at"]) - time.time()) < 1000
    assert cache.client().strlen(NAME) == int(said["m"]) // 8 + 1
    assert cache.client().keys(f"{NAME}:building*") == []
    assert 0 < cache.client().pttl(f"{NAME}:lease") <= 2000


def test_rows_that_come_are_in_it_at_once_and_rows_that_go_stay_until_it_is_made_anew(
        follow, items, cache, database):
    guard = follow(published())
    wait_lease(cache, guard)
    database.execute("INSERT INTO items SELECT n, 'new' FROM generate_series(101, 200) n")
    wait_possible(cache, *range(1, 201))
    database.execute("UPDATE items SET id = 500 WHERE id = 1")
    wait_possible(cache, 500)
    assert not any(absent(cache, 1))
    before = lease(cache)
    guard.rebuild()
    wait_until(lambda: lease(cache) not in (None, before), PATIENCE, "another bitmap")
    assert absent(cache, 500, 1) == [False, True]


def test_the_same_from_node(follow, items, cache, node_modules):
    guard = follow(published(false_positive_rate=0.0001))
    wait_lease(cache, guard)
    asked = ["1", "100", "101", "Grüße", "0123456789abcdef0"]
    for port in (cache.port, guard.port):
        assert run("ask_published.mjs", node_modules, port, NAME, *asked) == [
            "[false,false,true,true,true]"]


def test_the_same_through_the_guard_and_by_a_script(follow, items, cache):
    guard = follow(published(false_positive_rate=0.0001))
    wait_lease(cache, guard)
    reader = Published(guard.redis(), NAME)
    assert reader.absent("1", "100", "101") == [False, False, True]
    places = [place for item in ("1", "101", "100") for place in reader.places(item)]
    script = (servers.ROOT / "deploy" / "published.lua").read_text()
    for client in (cache.client(), guard.redis()):
        sha = client.script_load(script)

        def ask(generation, sha=sha, client=client):
            return client.evalsha(sha, 2, f"{NAME}:lease", NAME, generation, reader.info["m"],
                                  reader.info["k"], *places)

        assert ask(reader.info["generation"]) == b"PAP"
        assert ask("1") == b"stale"
    guard.stop()
    wait_no_lease(cache)
    assert cache.client().evalsha(sha, 2, f"{NAME}:lease", NAME, "1", 64, 8, *places) == b""


@pytest.mark.parametrize("bits", [32, 64])
def test_guava_itself_reads_it(follow, items, cache, tmp_path, bits):
    jars = [f"/usr/share/java/{jar}.jar" for jar in ("guava", "failureaccess")]
    if not shutil.which("javac") or not pathlib.Path(jars[0]).exists():
        pytest.skip("there is no JDK with Guava")
    guard = follow(published(format=f"guava-murmur3-128-{bits}", false_positive_rate=0.0001))
    wait_lease(cache, guard)
    (tmp_path / "bitmap").write_bytes(cache.client().get(NAME))
    path = ":".join([*jars, str(tmp_path)])
    subprocess.run(["javac", "-cp", path, "-d", tmp_path, SCRIPTS / "PublishedGuava.java"],
                   check=True, capture_output=True)
    asked = [*map(str, range(1, 121)), "Grüße"]
    said = subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8", "-cp", path, "PublishedGuava",
         tmp_path / "bitmap", "0" if bits == 32 else "1", info(cache)["k"], *asked],
        check=True, capture_output=True, text=True, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin"})
    found = dict(line.split() for line in said.stdout.splitlines())
    assert [item for item in asked if found[item] == "true"] == asked[:100]


def hashes(item):
    bkdr, sdbm, js = 0, 0, 1315423911
    for c in item.encode():
        bkdr = (bkdr * 131 + c) % 2**32
        sdbm = (c + (sdbm << 6) + (sdbm << 16) - sdbm) % 2**32
        js = (js ^ (js << 5) + c + (js >> 2)) % 2**32
    return bkdr, sdbm, js


def test_the_classic_trio_has_one_bit_each(follow, items, cache):
    guard = follow(published(format="bkdr-sdbm-js", items="key"))
    wait_lease(cache, guard)
    said = info(cache)
    wanted = {h % int(said["m"]) for n in range(1, 101) for h in hashes(f"item:{n}")}
    value = cache.client().get(NAME)
    found = {bit for bit in range(int(said["m"])) if value[bit // 8] & 0x80 >> bit % 8}
    assert said["k"] == "3" and found == wanted


def test_columns_are_joined_however_a_key_is_read(follow, database, cache):
    """From the log only the key is known, which may be read in several ways; the build knows."""
    database.execute("CREATE TABLE orders (a text, b text, payload text, PRIMARY KEY (a, b));"
                     " INSERT INTO orders VALUES ('x-y', 'z', 'p')")
    guard = follow({"name": "items", "key": "order/{a}-{b}", "table": "orders", "value": "payload",
                    "publish": {"key": NAME, "false_positive_rate": 0.0001}})
    wait_lease(cache, guard)
    assert absent(cache, "x-y:z", "x:y-z") == [False, True]
    database.execute("INSERT INTO orders VALUES ('1-2', '3', 'p')")
    wait_possible(cache, "1-2:3")


# ---- what may happen


def test_a_guard_that_is_killed_leaves_a_lease_that_lapses(follow, items, cache, database):
    guard = follow(published(), max_lag="700ms")
    wait_lease(cache, guard)
    guard.kill()
    begun = time.monotonic()
    wait_no_lease(cache)
    assert time.monotonic() - begun < 1.5
    database.execute("INSERT INTO items VALUES (1000, 'new')")
    assert absent(cache, 1000) == [False]
    guard.start()
    wait_lease(cache, guard)
    assert absent(cache, 1000, 1001) == [False, True]


def test_a_renewal_that_comes_late_does_not_lengthen_the_lease(follow, items, cache, database):
    """The cache stands still with renewals in its socket, and the guard is gone when it goes on."""
    guard = follow(published(), max_lag="500ms", cache_timeout="10s")
    wait_lease(cache, guard)
    cache.pause()
    time.sleep(0.4)
    guard.kill()
    database.execute("INSERT INTO items VALUES (1000, 'new')")
    time.sleep(0.8)
    cache.resume()
    for _ in range(20):
        assert absent(cache, 1000) == [False]
        time.sleep(0.02)


@pytest.mark.parametrize("loss", ["FLUSHALL", f"DEL {NAME}", f"DEL {NAME}:info",
                                  f"DEL {NAME}:lease", f"SETRANGE {NAME} 0 x", f"RENAME {NAME} x"])
def test_what_the_cache_loses_is_written_again(follow, items, cache, loss):
    guard = follow(published(false_positive_rate=0.0001))
    wait_lease(cache, guard)
    before = cache.client().get(NAME)
    cache.client().execute_command(*loss.split())
    if not loss.startswith("SETRANGE"):
        for _ in range(100):
            assert not any(absent(cache, *range(1, 101)))
    else:
        guard.rebuild()
        wait_until(lambda: cache.client().get(NAME)[:1] == before[:1], PATIENCE, "another bitmap")
    wait_until(lambda: lease(cache) and absent(cache, 1, 1000) == [False, True], PATIENCE,
               "the filter")
    assert cache.client().get(NAME) == before


def test_a_cache_that_was_started_anew_gets_it_again(follow, items, cache):
    guard = follow(published(false_positive_rate=0.0001))
    wait_lease(cache, guard)
    cache.kill()
    cache.start()
    wait_lease(cache, guard)
    assert absent(cache, 1, 1000) == [False, True]


def test_a_cache_that_refuses_bits_has_no_lease(follow, items, cache, database):
    guard = follow(published())
    wait_lease(cache, guard)
    cache.client().config_set("maxmemory-policy", "noeviction")
    cache.client().config_set("maxmemory", "1")
    try:
        database.execute("INSERT INTO items VALUES (1000, 'new')")
        wait_no_lease(cache)
        wait_until(lambda: guard.keyspace("items")["published"]["last_error"], PATIENCE, "an error")
    finally:
        cache.client().config_set("maxmemory", "0")
    wait_possible(cache, 1000)


def test_in_shadow_mode_there_is_no_lease(follow, items, cache):
    guard = follow({**published(), "enforce": False})
    wait_until(lambda: guard.keyspace("items")["state"] == "guarding", PATIENCE, "guarding")
    time.sleep(0.5)
    assert lease(cache) is None


def test_when_it_is_full_it_is_replaced(follow, items, cache, database):
    guard = follow(published(false_positive_rate=0.001))
    wait_lease(cache, guard)
    size, generation = int(info(cache)["m"]), guard.generation()
    database.execute("INSERT INTO items SELECT n, 'new' FROM generate_series(1001, 4000) n")
    wait_until(lambda: guard.generation() > generation and int(info(cache)["m"]) > size, PATIENCE,
               lambda: f"a larger one: {guard.log()}")
    wait_lease(cache, guard)
    assert not any(absent(cache, *range(1001, 4001)))
    assert sum(absent(cache, *range(10000, 20000))) > 9950


def test_rows_that_are_gone_have_it_replaced(follow, items, cache, database):
    database.execute("INSERT INTO items SELECT n, 'new' FROM generate_series(1001, 4000) n")
    guard = follow(published(false_positive_rate=0.001))
    wait_lease(cache, guard)
    database.execute("DELETE FROM items WHERE id > 1000")
    wait_until(lambda: lease(cache) and sum(absent(cache, *range(1001, 4001))) > 2900, PATIENCE,
               lambda: f"rows to be gone: {guard.log()}")


def test_one_that_grows_is_more_bitmaps_with_a_cursor(follow, items, cache, database):
    guard = follow(published(false_positive_rate=0.001, grow=True))
    wait_lease(cache, guard)
    reader = Published(cache.client(), NAME)
    assert bitmaps(cache) == [f"{NAME}-0"] and reader.absent("1", "5000") == [False, True]
    generation = guard.generation()
    database.execute("INSERT INTO items SELECT n, 'new' FROM generate_series(1001, 1900) n")
    wait_until(lambda: len(bitmaps(cache)) > 2, PATIENCE, lambda: f"growth: {guard.log()}")
    wait_possible(cache, *range(1001, 1901))
    assert not any(reader.absent(*map(str, range(1001, 1901))))
    assert sum(reader.absent(*map(str, range(10000, 20000)))) > 9980
    assert guard.generation() == generation
    assert guard.keyspace("items")["published"]["layers"] == len(bitmaps(cache))


def test_of_two_guards_one_publishes_and_the_other_takes_over(follow, items, cache, database,
                                                               start_guard):
    first = follow(published(false_positive_rate=0.0001))
    wait_lease(cache, first)
    second = start_guard(published(false_positive_rate=0.0001), sync="replication", max_lag="2s")
    wait_until(lambda: second.keyspace("items")["published"]["last_error"], PATIENCE, "it to wait")
    owner = info(cache)["owner"]
    database.execute("INSERT INTO items VALUES (1000, 'new')")
    wait_possible(cache, 1000)
    assert info(cache)["owner"] == owner
    first.kill()
    database.execute("INSERT INTO items VALUES (1001, 'new')")
    wait_until(lambda: info(cache)["owner"] != owner and lease(cache), PATIENCE, second.log)
    assert absent(cache, 1000, 1001, 1002) == [False, False, True]
    first.start()
    wait_until(lambda: first.keyspace("items")["published"]["last_error"], PATIENCE, "it to wait")
    assert info(cache)["owner"] != owner


def test_what_is_something_else_is_not_written_over(follow, items, cache):
    cache.client().hset(NAME, "somebody", "else")
    guard = follow(published(), ready=None)
    wait_until(lambda: guard.is_alive() and "something else" in (
        guard.keyspace("items")["published"]["last_error"] or ""), PATIENCE, "it to be refused")
    assert cache.client().hgetall(NAME) == {b"somebody": b"else"} and not lease(cache)
    cache.client().delete(NAME)
    wait_lease(cache, guard)


def test_check_says_what_is_in_the_way(check, items, cache):
    def said():
        return check(published(), sync="replication").text

    assert NAME not in said()
    cache.client().set(NAME, "text")
    assert f'"{NAME}" is there already (a string)' in said()
    cache.client().hset(f"{NAME}:info", "owner", "a guard")
    assert NAME not in said()


def test_metrics_and_status_show_it(follow, items, cache):
    guard = follow(published())
    wait_lease(cache, guard)
    said = wait_until(lambda: guard.keyspace("items")["published"], PATIENCE, "the status")
    assert said["key"] == NAME and said["state"] == "live" and said["keys"] == 100
    assert 0 < said["bits_set"] < said["bits"] and said["last_error"] is None
    metrics = guard.metrics()
    assert metrics['nestguard_published_keys{keyspace="items"}'] == 100
    assert metrics['nestguard_published_lease_seconds{keyspace="items"}'] > 0
