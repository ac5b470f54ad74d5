"""What the cache's user may not do, `check` says, and what it prints mends it."""
import pathlib
import re

import pytest

import servers
from checking import GOOD, assert_in_order, check, keyspace  # check is a fixture
from following import follow  # follow is a fixture
from waiting import wait_until

README = pathlib.Path(__file__).parents[2] / "deploy" / "README.md"


def documented_rights():
    """The line that the README gives to administrators."""
    line = re.search(r"^ACL SETUSER nestguard on >PASSWORD (.*)$", README.read_text(), re.M)
    return line[1].split()


@pytest.fixture
def user(cache):
    """user(rule, ...) makes the user anew and gives the cache's URL with it."""
    admin = cache.client()

    def make(*rules):
        admin.execute_command("ACL", "DELUSER", "nestguard")
        admin.execute_command("ACL", "SETUSER", "nestguard", "on", ">secret", *rules)
        return cache.url.replace("//", "//nestguard:secret@")

    yield make
    admin.execute_command("ACL", "DELUSER", "nestguard")


def test_the_documented_rights_are_enough_for_check(check, database, user):
    database.execute(GOOD)
    assert_in_order(check(keyspace(), cache=user(*documented_rights())))


@pytest.mark.parametrize("right, level, lost", [
    ("del", "error", "stale values"),
    ("scan", "error", "stale values"),
    ("set", "error", "no row would be cached"),
    ("get", "error", "lookups of rows"),
    ("select", "error", "no client's command"),
    ("mget", "warning", "lookups of rows"),
    ("exists", "warning", "lookups of rows"),
    ("info", "warning", "run_id"),
    ("role", "warning", "replica"),
    ("client|id", "warning", "lost connection"),
    ("client|kill", "warning", "lost connection"),
])
@pytest.mark.parametrize("transactions", [True, False])
def test_each_missing_right_is_told_with_what_is_lost_and_mended(
        check, database, cache, user, right, level, lost, transactions):
    database.execute(GOOD)
    rules = [rule for rule in documented_rights() if rule not in ("+" + right, "+multi", "+discard")]
    url = user(*rules, *(["+multi", "+discard"] if transactions else []))
    report = check(keyspace(), cache=url)
    text, remedy = report.one(level)
    assert right.replace("|", " ").upper() in text and lost in text and "no Redis" not in text
    assert remedy == f"ACL SETUSER nestguard +{right}"
    assert cache.client().dbsize() == 0
    cache.client().execute_command(*remedy.split())
    assert_in_order(check(keyspace(), cache=url))


def test_limits_that_are_not_told_are_a_note(check, database, user):
    database.execute(GOOD)
    url = user(*[rule for rule in documented_rights() if rule != "+config|get"])
    report = check(keyspace(), cache=url)
    assert report.findings == [] and "may not CONFIG GET" in report.text


def test_a_user_whose_connections_the_cache_may_evict_is_told(check, database, cache, user):
    database.execute(GOOD)
    url = user(*[rule for rule in documented_rights() if rule != "+client|no-evict"])
    admin = cache.client()
    assert_in_order(check(keyspace(), cache=url))
    admin.config_set("maxmemory-clients", "64mb")
    try:
        text, remedy = check(keyspace(), cache=url).one("warning")
        assert "maxmemory-clients" in text and "NO-EVICT" in text
        assert remedy == "ACL SETUSER nestguard +client|no-evict"
        admin.execute_command(*remedy.split())
        assert_in_order(check(keyspace(), cache=url))
    finally:
        admin.config_set("maxmemory-clients", 0)


def rights_to(*patterns, without=()):
    return [rule for rule in documented_rights() if rule[0] != "~" and rule not in without] + [
        "~" + pattern for pattern in patterns]


def test_keys_of_a_template_that_the_user_may_not_touch_are_told(check, database, cache, user):
    database.execute(GOOD + "INSERT INTO items VALUES (7, 'x', 'x')")
    url = user(*rights_to("other:*"))
    report = check(keyspace(), cache=url)
    text, remedy = report.one("error")
    assert "DEL, SET, GET, MGET, EXISTS keys such as item:7," in text
    assert "of keyspace items" in text and "stale values" in text
    assert remedy == "ACL SETUSER nestguard ~item:*"
    cache.client().execute_command(*remedy.split())
    assert_in_order(check(keyspace(), cache=url))


NAMES = """CREATE TABLE items (id text PRIMARY KEY, payload text NOT NULL);
           INSERT INTO items VALUES ('ann', 'x'), ('bob', 'x'), ('eve', 'x')"""


@pytest.mark.parametrize("pattern", ["item:[a-z]*", "item:???"])
def test_a_pattern_that_all_rows_fit_is_no_finding(check, database, cache, user, pattern):
    database.execute(NAMES)
    cache.client().set("item:bob", "cached")
    report = check(keyspace(), cache=user(*rights_to(pattern)))
    assert_in_order(report)
    (note,) = [note for note in report.notes if "may not DEL" in note]
    assert "keys such as item:9" in note and "of which 3 were tried" in note
    assert cache.client().get("item:bob") == b"cached"


@pytest.mark.parametrize("pattern, refused", [("item:[a-d]*", "eve"), ("item:[0-9]*", "ann")])
def test_a_row_that_the_users_pattern_leaves_out_is_an_error(check, database, user, pattern, refused):
    """Also where a key of digits would be allowed."""
    database.execute(NAMES)
    text, remedy = check(keyspace(), cache=user(*rights_to(pattern))).one("error")
    assert f"keys such as item:{refused}, of keyspace items: changed and deleted rows" in text
    assert remedy == "ACL SETUSER nestguard ~item:*"


@pytest.mark.parametrize("rows, without", [("DELETE FROM items", []),
                                           ("", ["+multi", "+discard"])])
def test_a_pattern_that_cannot_be_tried_with_a_row_is_a_warning(
        check, database, cache, user, rows, without):
    database.execute(NAMES + ";" + rows)
    cache.client().set("item:bob", "cached")
    url = user(*rights_to("item:[a-z]*", without=without))
    text, remedy = check(keyspace(), cache=url).one("warning")
    assert "keys such as item:9" in text and "no key that is there could be tried" in text
    assert remedy == "ACL SETUSER nestguard ~item:*"
    assert cache.client().get("item:bob") == b"cached"


def test_digits_alone_are_enough_where_no_row_tells_otherwise(check, database, user):
    database.execute(GOOD)
    assert_in_order(check(keyspace(), cache=user(*rights_to("item:[0-9]*"))))


def test_a_published_filter_needs_its_own_names_alone(check, database, cache, user):
    database.execute(GOOD)
    names = ["coupons", "coupons:info", "coupons:lease"]
    settings = {"publish": {"key": "coupons", "format": "guava-murmur3-128-64"}}
    extra = ("+eval +bitfield +time +type +strlen +getbit +setbit +hget +hset +hexists +rename "
             "+pttl +persist +pexpireat").split()
    report = check(keyspace(**settings), cache=user(*rights_to("item:*", *names), *extra))
    assert not [finding for finding in report.findings if "may not" in finding[2]], report.text
    report = check(keyspace(**settings), cache=user(*rights_to("item:*", *names[:2]), *extra))
    assert "keys such as coupons:lease" in report.text


def test_a_hash_needs_other_commands(check, database, cache, user):
    database.execute(GOOD)
    url = user(*documented_rights())
    settings = {"value": ["payload", "kind"], "fill": "hash"}
    report = check(keyspace(**settings), cache=url)
    assert sorted(report.levels()) == ["error", *["warning"] * 3]
    for *_, remedy in report.findings:
        cache.client().execute_command(*remedy.split())
    assert_in_order(check(keyspace(**settings), cache=url))


def test_a_published_filter_needs_more(check, database, cache, user):
    database.execute(GOOD)
    url = user(*documented_rights(), "+eval", "+type", "+hexists", "~coupons*")
    settings = {"publish": {"key": "coupons", "format": "guava-murmur3-128-64"}}
    report = check(keyspace(**settings), cache=url)
    assert "may not RENAME" in report.text and "publish could not keep its filter" in report.text
    for place, *_, remedy in report.findings:
        if place.startswith("cache"):
            cache.client().execute_command(*remedy.split())
    assert "may not" not in check(keyspace(**settings), cache=url).text


class Renaming(servers.Redis):
    def command(self):
        return [*super().command(), "--rename-command", "DEL", ""]


@pytest.fixture
def renaming():
    server = Renaming().start()
    yield server
    server.stop()
    server.remove()


def test_a_renamed_command_is_told(check, database, renaming):
    database.execute(GOOD)
    text, remedy = check(keyspace(), cache=renaming.url).one("error")
    assert "does not know DEL" in text and "rename-command" in text and remedy is None


def test_a_guard_with_the_documented_rights_fills_purges_and_sweeps(
        database, cache, items, follow, user):
    cache.client().set("item:3", "old")
    guard = follow(items(), cache=user(*documented_rights()), purge_at_start=True)
    wait_until(lambda: not cache.client().exists("item:3"), servers.PATIENCE, "the sweep")
    client = guard.redis()
    assert client.get("item:1") == b"payload 1"
    assert client.mget("item:2", "item:900") == [b"payload 2", None]
    cache.wait_for_key("item:1")
    database.execute("UPDATE items SET payload = 'new' WHERE id = 1")
    wait_until(lambda: client.get("item:1") == b"new", servers.PATIENCE, "the purge")
    assert "NOPERM" not in guard.log(lines=1000) and "may not" not in guard.log(lines=1000)


def test_a_guard_says_at_its_start_what_its_user_may_not(items, start_guard, user):
    rules = [rule for rule in documented_rights() if rule != "+del"]
    guard = start_guard(items(), cache=user(*rules))
    assert "may not DEL" in guard.log(lines=1000)
    assert "ACL SETUSER nestguard +del" in guard.log(lines=1000)
