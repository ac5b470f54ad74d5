"""`nestguard filter` builds filters from files of keys and asks them; `nestguard plan` compares the
kinds; a guard uses the kind that its keyspace names."""
import json
import re
import signal
import subprocess
import time

import pytest

from servers import NESTGUARD, PATIENCE, run_nestguard
from terminal import Terminal

KINDS = ["cuckoo", "bloom", "blocked-bloom", "counting-bloom", "scalable-bloom"]


def run(*arguments, given=b""):
    """(exit status, standard output, standard error) of a run that gets bytes."""
    done = subprocess.run([NESTGUARD, *map(str, arguments)], input=given, capture_output=True,
                          timeout=4 * PATIENCE, check=False)
    assert b"Sanitizer" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr.decode()


def ask(file, *keys):
    status, said, errors = run("filter", "query", file, given=b"\n".join(keys))
    assert status == 0, errors
    return said.split(b"\n")[:-1]


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text("".join(f"item:{i}\n" for i in range(5000)))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_built_of_a_file_is_possible_and_most_else_absent(kind, keys, tmp_path):
    file = tmp_path / "filter"
    status, said, errors = run("filter", "build", keys, file, "--filter", kind, "--fpr", "1%")
    assert status == 0 and errors == ""
    # A key that looks like one that is in need not be put in.
    stored = re.search(rf"(\d+) keys of 5000 lines in a {kind} filter", said.decode())
    assert 4950 <= int(stored[1]) <= 5000
    built = [f"item:{i}".encode() for i in range(5000)]
    others = [f"item:{i}".encode() for i in range(5000, 15000)]
    assert ask(file, *built) == [b"possible " + key for key in built]
    answers = ask(file, *others)
    assert [answer.split(b" ", 1)[1] for answer in answers] == others
    assert sum(answer.startswith(b"possible ") for answer in answers) < 150


def test_keys_that_share_an_entry_are_counted_and_explained(tmp_path):
    """Every key counts once, also where the filter takes two for one; a line counts each time."""
    keys = tmp_path / "keys"
    keys.write_text("".join(f"item:{i}\n" for i in range(20000)) * 2)
    status, said, _ = run("filter", "build", keys, tmp_path / "filter", "--fpr", "3%")
    assert status == 0 and b"20000 keys of 40000 lines in a cuckoo filter" in said
    entries, shared = map(int, re.search(rb"(\d+) entries: (\d+) keys look to the filter like another"
                                         rb" one, and are found by its entry", said).groups())
    assert entries + shared == 20000 and 0 < shared < 600


def test_a_file_says_what_it_is(keys, tmp_path):
    file = tmp_path / "filter"
    built = run("filter", "build", keys, file)[1].decode().splitlines()
    status, said, errors = run("filter", "info", file)
    assert status == 0 and errors == ""
    first, *rest = said.decode().splitlines()
    assert re.fullmatch(rf"{file}: \d+ entries in a cuckoo filter, \d+\.\d % full", first)
    assert [line.split(",")[0] for line in rest] == [line.split(",")[0] for line in built[-3:]]
    assert run("filter", "info", keys)[0] == 1 and run("filter", "info")[0] == 2


def test_what_takes_long_shows_its_rate_and_rest_on_a_terminal(tmp_path):
    """However fast the machine is: it is held up for longer than a rate takes."""
    keys = tmp_path / "keys"
    with open(keys, "w", encoding="ascii") as file:
        file.writelines(f"item:{i}\n" for i in range(5_000_000))
    terminal = Terminal("filter", "build", keys, tmp_path / "filter")
    progress = r"(reading keys|building): \d+ of \d+ \(\d+ %\), \d+ a second, \d+ s left"
    try:
        terminal.read(lambda text: "reading keys" in text)
        terminal.process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.read(lambda text: re.search(progress, text))
    finally:
        terminal.close()


def test_keys_may_come_through_a_pipe_and_be_any_bytes(tmp_path):
    odd = [b"", b"\xff\x00\xfe", b"two words", "gr\u00fc\u00dfe".encode(), b"x" * 200000]
    file = tmp_path / "filter"
    status, said, errors = run("filter", "build", "-", file, given=b"\n".join(odd * 40))
    assert status == 0, errors
    assert b"5 keys of 200 lines" in said
    assert ask(file, *odd) == [b"possible " + key for key in odd]
    assert ask(file, b"x" * 199999) == [b"absent " + b"x" * 199999]


def test_carriage_returns_are_part_of_keys_and_spoken_of(tmp_path):
    file = tmp_path / "filter"
    status, _, errors = run("filter", "build", "-", file, given=b"item:1\r\nitem:2\nitem:3\r\n")
    assert status == 0 and "2 of 3 lines end with a carriage return" in errors, errors
    assert ask(file, b"item:1\r", b"item:2") == [b"possible item:1\r", b"possible item:2"]


def test_whoever_waits_for_an_answer_gets_it(keys, tmp_path):
    file = tmp_path / "filter"
    run("filter", "build", keys, file)
    with subprocess.Popen([NESTGUARD, "filter", "query", file], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, bufsize=0) as process:
        for key, answer in ((b"item:7", b"possible"), (b"item:x", b"absent")):
            process.stdin.write(key + b"\n")
            assert process.stdout.readline() == answer + b" " + key + b"\n"
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_two_filters_of_the_same_keys_have_different_secrets(keys, tmp_path):
    for name in ("a", "b"):
        run("filter", "build", keys, tmp_path / name)
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_what_is_replaced_stays_readable_and_where_it_is(keys, tmp_path):
    """A guard of another user reads it, by a link that an application moves."""
    file, link = tmp_path / "today.filter", tmp_path / "current.filter"
    assert run("filter", "build", keys, file)[0] == 0
    file.chmod(0o644)
    link.symlink_to(file.name)
    before = file.read_bytes()
    status, _, errors = run("filter", "build", keys, link)
    assert status == 0, errors
    assert link.is_symlink() and file.read_bytes() != before
    assert file.stat().st_mode & 0o777 == 0o644


def test_damaged_and_foreign_files_are_refused(keys, tmp_path):
    file = tmp_path / "filter"
    run("filter", "build", keys, file)
    whole = file.read_bytes()
    for damaged, reason in ((whole[:-1], "cut off"), (whole + b"x", "behind its end"),
                            (whole[:300] + bytes([whole[300] ^ 1]) + whole[301:], "damaged"),
                            (keys.read_bytes(), "no filter of nestguard"), (b"", "too short")):
        file.write_bytes(damaged)
        status, said, errors = run("filter", "query", file, given=b"item:1\n")
        assert (status, said) == (1, b"")
        assert str(file) in errors and reason in errors


def test_a_failed_build_leaves_the_old_file(keys, tmp_path):
    file = tmp_path / "filter"
    file.write_text("old")
    status, _, errors = run("filter", "build", tmp_path / "nothing", file)
    assert status == 1 and "No such file" in errors
    assert file.read_text() == "old" and len(list(tmp_path.iterdir())) == 2
    status, _, errors = run("filter", "build", keys, tmp_path / "no" / "file")
    assert status == 1 and "No such file" in errors


def test_answers_that_cannot_be_written_are_a_failure(keys, tmp_path):
    file = tmp_path / "filter"
    run("filter", "build", keys, file)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([NESTGUARD, "filter", "query", file], input=b"a\n" * 100, stdout=full,
                              stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert done.returncode == 1 and b"No space" in done.stderr


WRONG = {
    "no word": (["filter"], "build, info or query"),
    "unknown word": (["filter", "biuld"], "biuld"),
    "no file": (["filter", "build", "a"], "missing"),
    "word too many": (["filter", "build", "a", "b", "c"], "c: it is one word too many"),
    "unknown kind": (["filter", "build", "a", "b", "--filter", "x"], "cuckoo, bloom"),
    "rate too large": (["filter", "build", "a", "b", "--fpr=0.5"], "0.03"),
    "rate that is none": (["filter", "build", "a", "b", "--fpr", "little"], "little"),
    "value missing": (["filter", "build", "a", "b", "--fpr"], "value is missing"),
    "unknown option": (["filter", "query", "a", "--fast"], "--fast"),
    "query without a file": (["filter", "query"], "missing"),
    "plan without figures": (["plan"], "--keys"),
    "plan without a rate": (["plan", "--keys", "5"], "--fpr"),
    "plan of a file with a rate": (["plan", "-c", "a", "--fpr", "0.01"], "the file says"),
    "plan of a file with keys that are none": (["plan", "-c", "a", "--keys", "x"], "x: "),
    "no keys": (["plan", "--keys", "0", "--fpr", "0.01"], "from 1"),
    "keys that are none": (["plan", "--keys", "many", "--fpr", "0.01"], "many"),
    "rate of nothing": (["plan", "--keys", "5", "--fpr", "0"], "0.03"),
    "flag with a value": (["plan", "--table=5"], "takes no value"),
    "stray word": (["plan", "5"], "too many"),
}


@pytest.mark.parametrize("words, part", WRONG.values(), ids=WRONG.keys())
def test_wrong_usage_says_what_is_wrong_and_what_is_right(words, part):
    status, said, errors = run(*words)
    assert (status, said) == (2, b"")
    assert part in errors and f"nestguard {words[0]}" in errors.split("\n", 1)[1]


@pytest.mark.parametrize("words", [["filter", "--help"], ["filter", "build", "--help"],
                                   ["plan", "--help"], ["plan", "-h"]])
def test_help_is_no_mistake(words):
    status, said, errors = run(*words)
    assert status == 0 and errors == "" and b"nestguard " + words[0].encode() in said


BITMAPS = ["guava-murmur3-128-64", "guava-murmur3-128-32", "bkdr-sdbm-js"]


def plan(*words):
    """What it says, part by part: the rows of each, in columns."""
    status, said, errors = run("plan", *words)
    assert status == 0 and errors == ""
    return [[line.split() for line in part.splitlines()] for part in said.decode().split("\n\n")]


def test_plan_measures_every_kind_and_every_format():
    _, _, _, kinds, bitmaps = plan("--keys", 20000, "--fpr", "0.01")
    rows = {row[0]: row for row in kinds[1:] + bitmaps[1:]}
    assert list(rows) == KINDS + BITMAPS
    for name, row in rows.items():
        bits, expected, measured = float(row[1]), float(row[4]), float(row[5])
        assert 7 < bits < 80
        assert 0 < expected <= 0.0101 and abs(measured / expected - 1) < 0.3 + (name == BITMAPS[2])
        assert all(float(field) > 0 for field in row[6:9])
    assert [kind for kind in rows if rows[kind][9] == "yes"] == ["cuckoo", "counting-bloom"]


def test_plan_knows_the_formulas():
    head, functions, *_, bitmaps = plan("--keys", 500, "--fpr", "0.003")
    assert " ".join(head[1]).endswith("= 6,045 bits, k = m/n ln 2 = 8 functions")
    rates = {int(row[0]): list(map(float, row[1:3])) for row in functions[1:]}
    assert [rates[k][0] for k in (1, 5, 8)] == [0.079, 0.0044, 0.0029]
    assert all(abs(measured / theory - 1) < 0.4 for theory, measured in rates.values())
    assert [row[0] for row in functions if "best" in row] == ["8"]
    assert bitmaps[1][-5:] == ["8", "functions", "to", "6080", "bits"]


def test_plan_prints_the_table_of_the_textbook():
    status, said, errors = run("plan", "--table")
    assert status == 0 and errors == ""
    lines = [line.split() for line in said.decode().splitlines()[4:]]
    theory, measured = lines[::2], lines[1::2]
    assert [row[0] for row in theory] == [str(bits) for bits in range(2, 33)]
    assert theory[6][2:] == ["0.118", "0.0489", "0.0306", "0.024", "0.0217", "0.0216", "0.0229",
                             "0.0255"]
    for wanted, found in zip(theory, measured):
        for rate, seen in zip(map(float, wanted[2:]), map(float, found[1:])):
            noise = 5 * (rate / 200_000) ** 0.5
            assert len(wanted) == 10 and abs(seen - rate) < 0.05 * rate + noise


MEBIBYTE = {"B": 1 / 1024 ** 2, "KiB": 1 / 1024, "MiB": 1, "GiB": 1024}


def plan_of_file(*words, status=0):
    """{keyspace: (filter, rows, [MiB now, while renewed, and with more rows])}, and what else was
    said."""
    found, said, errors = run("plan", *words)
    assert found == status, errors
    table = said.decode().split("\n\n", 1)[0].splitlines()[1:]
    rows = re.findall(r"^ *(\S+) +(\S*) +([0-9,]+) ((?: +[0-9.]+ [KMG]?i?B)+)", "\n".join(table), re.M)
    return {name: (kind, int(count.replace(",", "")),
                   [float(size) * MEBIBYTE[unit]
                    for size, unit in re.findall(r"([0-9.]+) (\S+)", sizes)])
            for name, kind, count, sizes in rows}, errors


@pytest.fixture
def shop(tmp_path, database):
    database.execute("""
        CREATE TABLE items (id bigint PRIMARY KEY, deleted_at timestamptz);
        INSERT INTO items SELECT n, CASE WHEN n % 4 = 0 THEN now() END
          FROM generate_series(1, 200000) n;
        CREATE TABLE others (id text PRIMARY KEY);
        ANALYZE""")
    file = tmp_path / "guard.yaml"
    file.write_text(json.dumps({
        "cache": "redis://127.0.0.1", "database": database.url, "keyspaces": [
            {"name": "items", "key": "item:{id}", "table": "items", "on_miss": "pass"},
            {"name": "live", "key": "live:{id}", "table": "public.items", "on_miss": "pass",
             "where": "deleted_at IS NULL", "filter": "counting-bloom"},
            {"name": "others", "key": "other:{id}", "table": "others", "on_miss": "pass",
             "publish": {"key": "bits", "false_positive_rate": 0.001}}]}))
    return file


def test_plan_tells_of_each_keyspace_of_a_file(shop):
    found, errors = plan_of_file("-c", shop)
    assert errors == ""
    assert {name: row[:2] for name, row in found.items()} == {
        "items": ("cuckoo", 200_000), "live": ("counting-bloom", 150_000), "others": ("cuckoo", 0),
        "published": ("guava-murmur3-128-64", 0), "together": ("", 350_000)}
    now, renewed, *grown = found["items"][2]
    assert 0.38 < now < 0.5 and abs(renewed / now - 2) < 0.1 and len(grown) == 3
    for size, factor in zip(grown, (1.5, 2, 10)):
        assert abs(size / now / factor - 1) < 0.1
    assert 1.2 < found["live"][2][0] < 1.6


def test_plan_of_a_file_supposes_rows_where_the_database_is_not_to_be_asked(shop, database):
    before = database.value("SELECT sum(calls) FROM pg_stat_statements WHERE userid = 'guard'::regrole")
    found, _ = plan_of_file("--keys", 10_000_000, "--config", shop)
    assert {row[1] for name, row in found.items() if name != "together"} == {10_000_000}
    assert 19 < found["items"][2][0] < 21.5
    assert 25 < found["published"][2][0] < 27, "half as many rows more, at 14.4 bits"
    assert before == database.value(
        "SELECT sum(calls) FROM pg_stat_statements WHERE userid = 'guard'::regrole")


def test_plan_of_a_file_says_what_it_could_not_count(shop, database):
    database.execute("REVOKE SELECT ON others FROM guard")
    found, errors = plan_of_file("-c", shop, status=1)
    assert list(found) == ["items", "live"]
    assert "keyspace others: its rows could not be counted" in errors and "permission" in errors
    shop.write_text(shop.read_text().replace(database.url, "postgresql://127.0.0.1:1/none"))
    found, errors = plan_of_file("-c", shop, status=1)
    assert found == {} and "--keys N" in errors
    shop.write_text("cache: nothing")
    assert f"{shop}:1" in plan_of_file("-c", shop, status=1)[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_guard_uses_the_kind_that_its_keyspace_names(kind, start_guard, items):
    guard = start_guard(items(filter=kind))
    shown = guard.keyspace()["filter"]
    assert (shown["kind"], shown["keys"]) == (kind, 100)
    client = guard.redis()
    assert client.mget(f"item:{i}" for i in range(1, 101)) == [
        f"payload {i}".encode() for i in range(1, 101)]
    assert client.get("item:1000") is None


def test_check_refuses_a_kind_that_cannot_follow_the_log(tmp_path):
    file = tmp_path / "guard.yaml"
    file.write_text("cache: redis://127.0.0.1\ndatabase: postgresql://127.0.0.1:1/x\nkeyspaces:\n"
                    "  - name: items\n    key: item:{id}\n    table: items\n    value: payload\n"
                    "    filter: bloom\n")
    status, said = run_nestguard("check", "-c", file)
    assert status == 1
    assert f"{file}:8" in said and "sync: replication" in said and "counting-bloom" in said
