"""Keys that are no rows': a file of them is taken anew when it changes, and one that is cut short,
emptied, deleted or damaged never denies a key that the one before had."""
import contextlib
import os
import re
import threading

import pytest

from checking import check  # pylint: disable=unused-import
from following import is_possible, looking_up, publish, wait_state
from servers import PATIENCE, run_nestguard
from waiting import wait_until

COUNT = 1000


def keys(first=1, last=COUNT):
    return "".join(f"item:{n}\n" for n in range(first, last + 1))


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "keys.txt"
    made.write_text(keys())
    return made


def from_file(file, **settings):
    return {"name": "items", "key": "item:{id}", "source": f"file:{file}", "on_miss": "pass",
            "settle": "200ms", "false_positive_rate": 1e-7, **settings}


def replace(file, text):
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    os.rename(fresh, file)


def wait_taken(guard, count):
    wait_until(lambda: guard.keyspace()["rows"] == count, PATIENCE,
               lambda: f"{count} keys: {guard.keyspace()}\n{guard.log()}")


def wait_refused(guard, *words):
    def is_refused():
        why = guard.keyspace()["source_refused"]
        return why and all(word in why for word in words)

    wait_until(is_refused, PATIENCE, lambda: f"{words}: {guard.keyspace()}\n{guard.log()}")
    assert "is refused" in guard.log()


def assert_knows_the_first(guard):
    """The keys of before are all possible, and what never was is rejected."""
    assert guard.is_ready() and guard.keyspace()["rows"] == COUNT
    client = guard.redis()
    assert client.execute_command("BF.MEXISTS", "items", *range(1, COUNT + 1)) == [1] * COUNT
    assert not is_possible(guard, "item:7000000")


@pytest.mark.parametrize("has_database", [False, True])
def test_keys_of_a_file_are_guarded(start_guard, cache, file, has_database):
    """Without a table no database is needed; nothing is loaded from one."""
    settings = {} if has_database else {"database": None}
    guard = start_guard(from_file(file), **settings)
    cache.client().set("item:5", "five")
    cache.client().set("item:7000", "not in the file")
    assert guard.redis().mget("item:5", "item:6", "item:7000") == [b"five", None, None]
    assert_knows_the_first(guard)
    assert guard.keyspace()["table"] is None and guard.keyspace()["source"] == f"file:{file}"
    explained = guard.explain("item:7000")
    assert (explained["verdict"], explained["row"]) == ("absent", None)


def test_what_it_has_no_use_for_is_not_said_to_fail(start_guard, file):
    """No alert fires for a database that there is none of, nor for a check that is of rows."""
    guard = start_guard(from_file(file), database=None)
    assert guard.status()["backends"]["database"]["connections"] is None
    assert not any(name.startswith(("nestguard_database_connections", "nestguard_self_check_good",
                                    "nestguard_generation_age_seconds"))
                   for name in guard.metrics()), guard.metrics()


def test_beside_a_table_only_that_is_checked(start_guard, items, file):
    file.write_text("listed:1\n")
    listed = from_file(file, name="listed", key="listed:{id}")
    guard = start_guard(items(), listed)
    wait_until(lambda: guard.keyspace()["self_check"], PATIENCE, guard.status)
    assert guard.keyspace("listed")["self_check"] is None
    assert guard.counter("nestguard_self_check_good") == 1
    assert 'nestguard_self_check_good{keyspace="listed"}' not in guard.metrics()


def test_a_filter_file_is_guarded_by(start_guard, file, tmp_path):
    filter_file = tmp_path / "keys.filter"
    assert run_nestguard("filter", "build", file, filter_file, "--fpr", "1e-7")[0] == 0
    guard = start_guard(from_file(filter_file), database=None)
    assert_knows_the_first(guard)
    file.write_text(keys(1, 1500))
    assert run_nestguard("filter", "build", file, filter_file, "--fpr", "1e-7")[0] == 0
    wait_taken(guard, 1500)
    whole = filter_file.read_bytes()
    filter_file.write_bytes(whole[:-100])
    wait_refused(guard)
    assert is_possible(guard, "item:1500")


@pytest.mark.parametrize("write", [replace, lambda file, text: file.write_text(text)],
                         ids=["renamed", "in place"])
def test_a_file_that_changes_is_taken_anew(start_guard, file, write):
    guard = start_guard(from_file(file), database=None)
    write(file, keys(501, 1600))
    wait_taken(guard, 1100)
    assert is_possible(guard, "item:1600") and not is_possible(guard, "item:1")


@pytest.mark.parametrize("text, words", [
    ("", ["0 keys", "min_keys"]),
    (keys(1, 400), ["400 keys", "max_shrink"]),
    (keys()[:-3], ["does not end"]),
    (keys(1, 900) + "42\n", ["line 901 is no key"]),
    (keys().replace("\n", "\r\n"), ["carriage return"])],
    ids=["emptied", "cut short", "in a line", "ids", "carriage returns"])
def test_what_is_no_whole_file_denies_nothing(start_guard, file, text, words):
    guard = start_guard(from_file(file), database=None)
    replace(file, text)
    wait_refused(guard, *words)
    assert_knows_the_first(guard)
    replace(file, keys(1, 1100))
    wait_taken(guard, 1100)
    assert guard.keyspace()["source_refused"] is None


def test_a_file_that_is_deleted_denies_nothing_and_may_come_back(start_guard, file):
    guard = start_guard(from_file(file), database=None)
    file.unlink()
    wait_refused(guard, "No such file")
    assert_knows_the_first(guard)
    file.write_text(keys(1, 1200))
    wait_taken(guard, 1200)


def test_a_file_that_is_there_again_as_it_was_is_not_read_again(start_guard, tmp_path):
    """Nor are keys forgotten that were told since."""
    folder, away = tmp_path / "folder", tmp_path / "away"
    folder.mkdir()
    file = folder / "keys.txt"
    file.write_text(keys())
    guard = start_guard(from_file(file), database=None, hint_ttl="100ms")
    guard.redis().set("item:2000", "written")
    wait_until(lambda: guard.status()["entries"] == 0, PATIENCE, guard.status)
    os.rename(folder, away)
    wait_refused(guard, "No such file")
    os.rename(away, folder)
    wait_until(lambda: guard.keyspace()["source_refused"] is None, PATIENCE, guard.keyspace)
    assert is_possible(guard, "item:2000")


def test_as_much_may_be_missing_as_the_setting_says(start_guard, file):
    guard = start_guard(from_file(file, max_shrink="100%", min_keys=0), database=None)
    replace(file, "")
    wait_taken(guard, 0)
    assert guard.is_ready() and not is_possible(guard, "item:5")


def test_what_was_refused_is_taken_when_the_settings_allow_it(start_guard, file, cache):
    guard = start_guard(from_file(file), database=None)
    replace(file, keys(1, 10))
    wait_refused(guard, "max_shrink")
    guard.configure({"cache": cache.url, "keyspaces": [from_file(file, max_shrink="100%")]})
    guard.control("POST", "/v1/reload")
    wait_taken(guard, 10)


@pytest.mark.parametrize("text", [None, keys()[:-2], "", "42\n"],
                         ids=["gone", "cut", "empty", "ids"])
def test_a_start_with_a_bad_file_passes_everything(start_guard, cache, file, text):
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    cache.client().set("item:5", "five")
    guard = start_guard(from_file(file), database=None, ready=False)
    wait_refused(guard)
    assert guard.redis().get("item:5") == b"five" and not guard.is_ready()
    assert is_possible(guard, "item:7000")
    replace(file, keys())
    guard.wait_guarding()
    assert_knows_the_first(guard)


def test_a_file_is_not_read_while_it_is_written(start_guard, file):
    """Half of it, and more than max_shrink asks for, is there for a while."""
    guard = start_guard(from_file(file, settle="2s"), database=None)
    with open(file, "w", encoding="ascii") as slow:
        for n in range(1, 41):
            slow.write(keys(50 * n - 49, 50 * n))
            slow.flush()
            assert guard.keyspace()["rows"] == COUNT
            threading.Event().wait(0.05)
    wait_taken(guard, 2000)
    assert "is refused" not in guard.log()


def test_keys_that_are_written_or_admitted_are_known_until_the_next_file(start_guard, cache, file):
    guard = start_guard(from_file(file, settle="500ms"), database=None, hint_ttl="100ms")
    client = guard.redis()
    client.set("item:2000", "written")
    assert client.execute_command("BF.ADD", "items", 2001) == 1
    assert guard.control("PUT", "/v1/keys/item:2002").status_code == 201
    wait_until(lambda: guard.status()["entries"] == 0, PATIENCE, guard.status)
    assert client.get("item:2000") == b"written"
    assert all(is_possible(guard, f"item:{n}") for n in (2000, 2001, 2002))
    behind = file.with_name("behind.txt")  # which is looked at behind the first
    behind.write_text("other:1\n")
    guard.configure({"cache": cache.url, "hint_ttl": "100ms", "keyspaces": [
        from_file(file, settle="500ms", filter="bloom", false_positive_rate=1e-6),
        from_file(behind, name="others", key="other:{id}")]})
    assert guard.control("POST", "/v1/reload").ok
    wait_until(lambda: "keyspace others: 1 keys taken" in guard.log(), PATIENCE, guard.log)
    assert all(is_possible(guard, f"item:{n}") for n in (2000, 2001, 2002))
    replace(file, keys(1, 1200))
    wait_taken(guard, 1200)
    assert not is_possible(guard, "item:2001")


def test_keys_that_were_told_are_not_missing_in_the_next_file(start_guard, file):
    replace(file, keys(1, 100))
    guard = start_guard(from_file(file, max_shrink="50%"), database=None)
    guard.redis().execute_command("BF.MADD", "items", *range(1000, 1300))
    replace(file, keys(1, 150))
    wait_taken(guard, 150)


def test_a_connections_places_for_what_it_writes_come_back_with_time(start_guard, file):
    guard = start_guard(from_file(file), database=None, hint_ttl="100ms", max_hints=100)
    client = guard.redis(max_connections=1)
    for first in range(5000, 5200, 40):
        for n in range(first, first + 40):
            client.set(f"item:{n}", "written")
        wait_until(lambda: guard.status()["entries"] == 0, PATIENCE, guard.status)


def test_a_second_write_is_known_across_a_file_as_long_as_the_first(start_guard, database, items,
                                                                   file):
    """Also beside rows of which a log tells."""
    from_table = items(name="rows", key="row:{id}")
    publish(database, from_table)
    guard = start_guard(from_file(file), from_table, sync="replication", hint_ttl="5s")
    client = guard.redis()
    client.set("item:2000", "first")
    hints = guard.counter("nestguard_hints_total")
    client.set("item:2000", "second")
    assert guard.counter("nestguard_hints_total") == hints + 1


def test_more_keys_than_have_places_stop_the_rejecting(start_guard, file):
    guard = start_guard(from_file(file), database=None, hint_ttl="100ms", max_hints=1000000)
    with contextlib.suppress(Exception):
        for n in range(40):
            guard.redis().execute_command("BF.MADD", "items", *range(10000 + 500 * n,
                                                                     10500 + 500 * n))
    wait_state(guard, "passing")
    assert guard.redis().execute_command("BF.EXISTS", "items", 7000000) == 1
    replace(file, keys(1, 1200))
    guard.wait_guarding()


def many(tmp_path, of, count=4):
    """Keyspaces of as many files each, which `of` makes of a path without an end."""
    return [from_file(of(tmp_path / f"many{n}"), name=f"many{n}", key=f"many{n}:{{id}}") for n in range(count)]


def lines_of(path):
    path.write_text("".join(f"{path.name}:{n}\n" for n in range(COUNT * 10)))
    return path


def image_of(path):
    image = path.with_suffix(".filter")
    assert run_nestguard("filter", "build", lines_of(path), image, "--fpr", "1e-7")[0] == 0
    return image


@pytest.mark.parametrize("of", [lines_of, image_of])
def test_all_of_them_together_are_no_larger_than_they_may_be(start_guard, check, tmp_path, of):
    keyspaces = many(tmp_path, of)
    alone = start_guard(*keyspaces[:1], database=None).keyspace("many0")["filter"]["bytes"]
    bound = 3 * alone + alone // 2
    guard = start_guard(*keyspaces, database=None, max_filter_memory=bound, ready=False)
    wait_until(lambda: guard.keyspace("many3")["source_refused"], PATIENCE, guard.log)
    assert "more memory than it is allowed" in guard.keyspace("many3")["source_refused"]
    assert [guard.keyspace(f"many{n}")["state"] == "guarding" for n in range(4)] == [True] * 3 + [False]
    text, _ = check(*keyspaces, database=None, max_filter_memory=bound).one("error")
    assert "many3" in text and "more memory than it is allowed" in text


def test_a_check_counts_those_of_tables_with_them(check, database, items, tmp_path):
    def needed(bound, *keyspaces):
        """Bytes, as far as they are more than the bound."""
        text = check(items(), *keyspaces, max_filter_memory=bound).text
        found = re.search(r"the filters need about ([0-9.]+) KiB", text)
        return found and int(float(found[1]) * 1024)

    database.execute("INSERT INTO items SELECT n FROM generate_series(100000, 200000) n; ANALYZE items")
    alone = needed(1)
    assert alone and not needed(alone + 1024)
    assert needed(alone + 1024, *many(tmp_path, lines_of, 1)) > alone + 1024


def test_a_key_without_a_row_is_not_deleted_for_one(start_guard, file):
    guard = start_guard(from_file(file), database=None)
    answer = guard.control("DELETE", "/v1/keys/item:5")
    assert answer.status_code == 409 and "source" in answer.json()["error"]
    assert is_possible(guard, "item:5")
    assert guard.control("DELETE", "/v1/keys/item:5?block=10m").status_code == 204
    assert guard.redis().get("item:5") is None


@pytest.mark.parametrize("sync", ["replication", "poll"])
def test_files_and_tables_are_guarded_side_by_side(start_guard, database, items, file, sync):
    assert items
    from_table = {"name": "rows", "key": "row:{id}", "table": "items", "value": "payload"}
    publish(database, from_table)
    guard = start_guard(from_file(file), from_table, sync=sync)
    assert guard.redis().get("row:5") == b"payload 5"
    assert guard.redis().get("row:500") is None
    assert_knows_the_first(guard)
    guard.rebuild()
    replace(file, keys(1, 1300))
    wait_taken(guard, 1300)
    database.execute("INSERT INTO items VALUES (777, 'new')")
    guard.rebuild()
    assert guard.redis().get("row:777") == b"new"
    assert guard.keyspace("items")["rows"] == 1300


def test_a_source_is_added_and_removed_while_it_runs(start_guard, database, cache, items, file):
    table = items(name="rows", key="row:{id}")
    guard = start_guard(table, sync="poll")
    settings = {"cache": cache.url, "database": database.url, "sync": "poll"}
    guard.configure({**settings, "keyspaces": [table, from_file(file)]})
    guard.control("POST", "/v1/reload")
    guard.wait_guarding()
    assert_knows_the_first(guard)
    guard.configure({**settings, "keyspaces": [table]})
    guard.control("POST", "/v1/reload")

    def is_nobodys():
        """What was cached of the keyspace is deleted meanwhile."""
        cache.client().set("item:9999", "nobody's")
        return guard.redis().get("item:9999") == b"nobody's"

    wait_until(is_nobodys, PATIENCE, guard.status)
    assert guard.redis().get("row:5") == b"payload 5"


def test_no_table_is_added_to_a_guard_without_a_database(start_guard, database, cache, items, file):
    guard = start_guard(from_file(file), database=None)
    guard.configure({"cache": cache.url, "database": database.url,
                     "keyspaces": [items(name="rows", key="row:{id}"), from_file(file)]})
    guard.control("POST", "/v1/reload")
    assert "started without a database" in guard.log()
    assert_knows_the_first(guard)


def test_no_key_of_every_file_is_denied_while_files_come_and_go(start_guard, file):
    """Under load: those of 1 to 500 are in each whole file, and in the broken ones some are not."""
    guard = start_guard(from_file(file), database=None)
    with looking_up(guard, 500) as denied:
        last = COUNT
        for text in ["", keys(1, 200), keys(501, 1500)[:-4], "junk", None] * 2:
            if text is None:
                file.unlink()
            else:
                replace(file, text)
            wait_refused(guard)
            last += 10
            replace(file, keys(1, last))
            wait_taken(guard, last)
    assert not denied
    assert guard.log(500).count("is refused") >= 10


class TestCheck:
    def test_a_good_file_is_in_order(self, check, file):  # pylint: disable=redefined-outer-name
        found = check(from_file(file), database=None)
        assert found.levels() == [], found.text

    @pytest.mark.parametrize("text, words", [("42\n", "line 1 is no key"), ("", "min_keys"),
                                             (None, "No such file")])
    def test_a_bad_one_is_not(self, check, file, text, words):  # pylint: disable=redefined-outer-name
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        message, _ = check(from_file(file), database=None).one("error")
        assert words in message

    @pytest.mark.parametrize("settings, words", [
        ({"table": "items"}, "table is about rows"),
        ({"on_miss": "load"}, "source needs on_miss: pass"),
        ({"source": "file:keys"}, "whole path"),
        ({"source": "http://x/keys"}, "source must be file:")])
    def test_what_makes_no_sense_is_refused(self, check, file, settings, words):  # pylint: disable=redefined-outer-name
        assert words in check(from_file(file, **settings), database=None).text
