"""Mistakes in the configuration file: each is reported with its line, all of them at once, and the
guard does not start on them."""
import socket

import pytest

from servers import PATIENCE, Nestguard, free_port, run_nestguard
from waiting import wait_until

# A file with everything in order but for one line, which each test replaces or adds.
FILE = """\
listen: [127.0.0.1:{port}]
control: 127.0.0.1:{control}
cache: {cache}
database: {database}
sync: none
{top}
keyspaces:
  - name: items
    key: "item:{{id}}"
    table: public.items
    value: payload
    {inner}
"""
TOP_LINE, INNER_LINE = 6, 12


@pytest.fixture
def write(database, cache, items, tmp_path):
    """write(top=..., inner=...) gives the path of a file with these lines in it."""

    def made(top="", inner="", **places):
        path = tmp_path / "guard.yaml"
        places = {"port": 6380, "control": 6390, "cache": cache.url, "database": database.url,
                  **places}
        path.write_text(FILE.format(top=top, inner=inner, **places))
        return path

    return made


def check(path, **environment):
    return run_nestguard("check", "-c", path, **environment)


def test_a_file_in_order_passes(write):
    status, said = check(write())
    assert status == 0, said


# What stands in the line, and what the message must name: the setting, and what is allowed.
TOP_MISTAKES = {
    "unknown key": ("listne: [127.0.0.1:1]", ["listne", "listen"]),
    "number for a word": ("workers: many", ["workers"]),
    "number out of its range": ("workers: 0", ["workers", "1"]),
    "negative number": ("load_budget: -1", ["load_budget"]),
    "number too large for its type": ("load_budget: 99999999999999999999", ["load_budget"]),
    "fraction for a count": ("load_connections: 1.5", ["load_connections"]),
    "duration without a unit": ("load_timeout: 2", ["load_timeout"]),
    "unknown unit of a duration": ("load_timeout: 2 fortnights", ["load_timeout", "ms"]),
    "bad size": ("max_bulk: 10 elephants", ["max_bulk", "kb"]),
    "bad choice": ("sync_mode: x", ["sync_mode"]),
    "bad address": ("password: [a, b]", ["password"]),
    "list for a number": ("workers: [1]", ["workers"]),
    "map for a duration": ("load_timeout: {a: 1}", ["load_timeout"]),
    "nothing for a number": ("workers:", ["workers"]),
    "a setting twice": ("sync: none", ["sync"]),
    "environment that is not set": ("password: ${NESTGUARD_NOT_SET_ANYWHERE}",
                                    ["NESTGUARD_NOT_SET_ANYWHERE"]),
    "unclosed reference to the environment": ("password: ${HOME", ["password"]),
}


@pytest.mark.parametrize("mistake", TOP_MISTAKES)
def test_a_mistake_in_a_setting_names_line_and_setting(write, mistake):
    line, words = TOP_MISTAKES[mistake]
    path = write(top=line)
    status, said = check(path)
    assert status == 1, said
    assert f"guard.yaml:{TOP_LINE}" in said
    for word in words:
        assert word in said, said


INNER_MISTAKES = {
    "unknown key": ("tabel: x", ["tabel", "table"]),
    "share over one": ("ttl_jitter: 200%", ["ttl_jitter"]),
    "rate of zero": ("false_positive_rate: 0", ["false_positive_rate"]),
    "rate that is no number": ("false_positive_rate: low", ["false_positive_rate"]),
    "bad choice": ("on_absent: null_object", ["on_absent", "nil", "error", "value"]),
    "bad flag": ("enforce: maybe", ["enforce", "true", "false"]),
    "value without absent_value": ("on_absent: value", ["absent_value"]),
    "negative duration": ("ttl: -5s", ["ttl"]),
    "bad miss": ("on_miss: ignore", ["on_miss", "load", "pass"]),
}


@pytest.mark.parametrize("mistake", INNER_MISTAKES)
def test_a_mistake_in_a_keyspace_names_line_and_setting(write, mistake):
    line, words = INNER_MISTAKES[mistake]
    status, said = check(write(inner=line))
    assert status == 1, said
    assert "guard.yaml:" in said
    for word in words:
        assert word in said, said


@pytest.mark.parametrize("template", [
    "item", "item:{}", "item:{id", "item:id}", "{id}{kind}", "item:{id}:{id}", '""'])
def test_a_bad_key_template_is_refused_with_its_line(write, template):
    path = write()
    path.write_text(path.read_text().replace('"item:{id}"', f"'{template}'"))
    status, said = check(path)
    assert status == 1, said
    assert "guard.yaml:9" in said and "key" in said


@pytest.mark.parametrize("places, line", [
    ({"port": "99999"}, 1), ({"port": "http"}, 1), ({"control": "-1"}, 2),
    ({"cache": "http://127.0.0.1:6379"}, 3), ({"cache": "redis://127.0.0.1:6379/x"}, 3),
    ({"database": "postgresql://[::1"}, 4), ({"database": "nonsense=1"}, 4),
])
def test_a_bad_address_or_url_is_refused_with_its_line(write, places, line):
    status, said = check(write(**places))
    assert status == 1, said
    assert f"guard.yaml:{line}" in said


def test_keyspaces_that_match_the_same_key_are_refused(write):
    path = write(inner="ttl: 10m\n  - {name: more, key: 'item:{id}:x', table: items, "
                       "value: payload}")
    status, said = check(path)
    assert status == 1, said
    assert '"item:{id}"' in said and '"item:{id}:x"' in said and "guard.yaml:13" in said


def test_keyspaces_of_the_same_name_are_refused(write):
    path = write(inner="ttl: 10m\n  - {name: items, key: 'x:{id}', table: items, value: payload}")
    status, said = check(path)
    assert status == 1 and "guard.yaml:13" in said, said


@pytest.mark.parametrize("gone", ["cache", "database", "keyspaces", "key", "table", "name",
                                  "value"])
def test_a_required_setting_that_is_missing_is_named(write, gone):
    path = write()
    lines = path.read_text().splitlines()
    if gone == "keyspaces":
        lines = lines[:6]
    else:
        lines = ["  - ttl: 1m" if line.startswith(f"  - {gone}:") else line for line in lines
                 if not line.strip().startswith(f"{gone}:")]
    path.write_text("\n".join(lines) + "\n")
    status, said = check(path)
    assert status == 1, said
    assert gone in said


@pytest.mark.parametrize("text", ["", "listen: [", "- a\n- b\n", "a: b: c\n", "\tx: 1\n", "\0\1",
                                  "{" * 10_000, "a: &x [*x]\n", "just text"])
def test_what_is_no_configuration_at_all_is_refused(write, text):
    path = write()
    path.write_text(text)
    status, said = check(path)
    assert status == 1 and "guard.yaml" in said, said


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n...\n", "~\n"])
def test_an_empty_file_is_told_what_it_needs(write, text):
    path = write()
    path.write_text(text)
    status, said = check(path)
    assert status == 1
    for word in ("empty", "cache", "database", "keyspaces", "nestguard --help"):
        assert word in said, said


def test_check_names_ports_that_are_taken(write, tmp_path):
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        unix.bind(str(tmp_path / "taken.sock"))
        unix.listen()
        address = f"127.0.0.1:{tcp.getsockname()[1]}"
        path = write()
        path.write_text(path.read_text().replace("listen: [", f"listen: [{address}, ")
                        .replace("control: 127.0.0.1:6390", f"control: unix:{tmp_path}/taken.sock"))
        status, said = check(path)
        assert f"listen: {address} is taken" in said and "taken.sock is taken" in said
        assert status == 0 and "0 errors, " in said, said
        assert (tmp_path / "taken.sock").exists()
    (tmp_path / "taken.sock").unlink()
    (tmp_path / "taken.sock").touch()
    status, said = check(path)
    assert status == 0 and "taken.sock cannot be listened on: what stands" in said
    assert address not in said
    assert (tmp_path / "taken.sock").exists(), "it only looks"


def test_a_start_on_a_port_that_is_taken_says_what_to_do(write):
    with socket.socket() as tcp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        port = tcp.getsockname()[1]
        status, said = run_nestguard("serve", "-c", write(port=port, control=free_port()))
    assert status == 1 and f"listening on 127.0.0.1:{port}: another process has" in said, said
    assert "ss -ltnp" in said and "choose another one" in said


def test_check_says_nothing_of_ports_that_are_free(write, tmp_path):
    path = write(port=free_port(), control=free_port())
    abandoned = socket.socket(socket.AF_UNIX)
    abandoned.bind(str(tmp_path / "old.sock"))
    abandoned.close()
    path.write_text(path.read_text().replace("listen: [", f"listen: [unix:{tmp_path}/old.sock, "))
    status, said = check(path)
    assert status == 0 and "taken" not in said and "listened on" not in said
    assert (tmp_path / "old.sock").exists(), "it only looks"


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "nowhere.yaml"
    for command in ("check", "serve"):
        status, said = run_nestguard(command, "-c", path)
        assert status == 1 and str(path) in said, said


def test_all_mistakes_are_reported_at_once(write):
    path = write(top="workers: many", inner="enforce: maybe", port="99999",
                 cache="http://127.0.0.1:1")
    path.write_text(path.read_text().replace("value: payload", "vlaue: payload")
                    .replace("sync: none", "sync: sometimes").replace("item:{id}", "item"))
    status, said = check(path)
    assert status == 1
    for line in (1, 3, 5, 6, 9, 11, 12):
        assert f"guard.yaml:{line}" in said, f"line {line} in:\n{said}"


def test_secrets_are_not_repeated_in_messages(write):
    status, said = check(write(cache="http://user:hunter2@127.0.0.1/",
                               database="postgresql://u:hunter3@[::1"))
    assert status == 1
    assert "hunter2" not in said and "hunter3" not in said


def test_values_come_from_the_environment(write):
    path = write(top="password: ${SECRET_OF_TEST}", inner="ttl: ${TTL_OF_TEST}")
    status, said = check(path, SECRET_OF_TEST="x: [y", TTL_OF_TEST="5m")
    assert status == 0, said
    status, said = check(path, SECRET_OF_TEST="x", TTL_OF_TEST="soon")
    assert status == 1 and "ttl" in said, said


def test_a_control_port_for_others_needs_a_token(write):
    path = write()
    path.write_text(path.read_text().replace("control: 127.0.0.1", "control: 0.0.0.0"))
    status, said = check(path)
    assert status == 1 and "control_token" in said, said
    path.write_text(path.read_text() + "control_token: secret\n")
    status, said = check(path)
    assert status == 0, said


@pytest.mark.parametrize("mistake, words", [
    ({"value": "no_such_column"}, ["no_such_column"]),
    ({"table": "no_such_table"}, ["no_such_table"]),
    ({"key": "item:{payload}"}, ["payload", "unique"]),
    ({"where": "no_such_column > 1"}, ["no_such_column"]),
    ({"colour": "blue"}, ["colour"]),
])
def test_serve_does_not_start_on_a_mistake(database, cache, items, mistake, words):
    guard = Nestguard({"cache": cache.url, "database": database.url,
                       "keyspaces": [items(**mistake)]})
    try:
        status, said = run_nestguard("serve", "-c", guard.file)
        assert status == 1, said
        for word in words:
            assert word in said, said
    finally:
        guard.remove()


def test_serve_names_an_address_that_is_taken(start_guard, database, cache, items):
    first = start_guard(items())
    second = Nestguard({"cache": cache.url, "database": database.url, "keyspaces": [items()],
                        "listen": [f"127.0.0.1:{first.port}"]})
    try:
        status, said = run_nestguard("serve", "-c", second.file)
        assert status == 1 and str(first.port) in said, said
        second.configure({"cache": cache.url, "database": database.url, "keyspaces": [items()],
                          "control": f"127.0.0.1:{first.control_port}"})
        status, said = run_nestguard("serve", "-c", second.file)
        assert status == 1 and str(first.control_port) in said, said
    finally:
        second.remove()


def test_a_missing_permission_comes_with_the_sql_that_grants_it(write, database):
    database.execute("REVOKE ALL ON items FROM guard")
    status, said = check(write())
    assert status == 1, said
    remedy = next(line.strip() for line in said.splitlines() if line.strip().startswith("GRANT"))
    database.execute(remedy)
    status, said = check(write())
    assert status == 0, said


def test_usage(tmp_path):
    status, said = run_nestguard("--version")
    assert status == 0 and said.startswith("nestguard ")
    status, said = run_nestguard("--help")
    assert status == 0
    for word in ("serve", "check", "ctl", "false_positive_rate", "load_budget"):
        assert word in said
    for arguments in (["serve", "--help"], ["check", "-h"]):
        status, said = run_nestguard(*arguments)
        assert status == 0 and "serve -c FILE" in said, arguments
    for arguments in ([], ["serve"], ["check", "-c"], ["nosuchcommand"], ["--nosuchoption"]):
        status, said = run_nestguard(*arguments)
        assert status == 2 and "nestguard" in said, (arguments, said)


class TestReload:
    """SIGHUP takes what can change, names what cannot, and survives a bad file."""

    def settings(self, database, cache, items, keyspace=None, **settings):
        return {"cache": cache.url, "database": database.url,
                "keyspaces": [items(**(keyspace or {}))], **settings}

    def reload(self, guard, config):
        guard.configure(config)
        guard.signal(1)

    def test_enforcement_can_be_taken_back(self, start_guard, database, cache, items):
        guard = start_guard(items())
        client = guard.redis()
        assert client.get("item:500") is None
        assert guard.counter("nestguard_rejected_total") == 1
        self.reload(guard, self.settings(database, cache, items, {"enforce": False}))

        def is_shadowed():
            assert client.get("item:500") is None
            return guard.counter("nestguard_would_reject_total") > 0

        wait_until(is_shadowed, PATIENCE, "shadow mode")
        rejected = guard.counter("nestguard_rejected_total")
        assert client.get("item:501") is None
        assert guard.counter("nestguard_rejected_total") == rejected

    def test_what_was_remembered_ends_with_enforcement(self, start_guard, database, cache, items):
        """The filter holds both keys, and nobody tells of the rows that come back. One is asked for
        while nothing is enforced, the other when it is again."""
        def enforce(enforced):
            self.reload(guard, self.settings(database, cache, items, {"enforce": enforced}))
            wait_until(lambda: guard.keyspace()["enforce"] == enforced, PATIENCE, "the reload")

        guard = start_guard(items())
        client = guard.redis()
        database.execute("DELETE FROM items WHERE id IN (5, 6)")
        assert client.mget("item:5", "item:6") == [None, None]
        database.execute("INSERT INTO items VALUES (5, 'back'), (6, 'back')")
        assert client.mget("item:5", "item:6") == [None, None], "remembered"
        enforce(False)
        assert client.get("item:5") == b"back"
        enforce(True)
        assert client.mget("item:5", "item:6") == [b"back", b"back"]

    def test_a_password_can_be_set(self, start_guard, database, cache, items):
        guard = start_guard(items())
        self.reload(guard, self.settings(database, cache, items, password="sesame"))

        def is_asked_for():
            with guard.wire() as wire:
                return wire.ask("PING").startswith(b"-NOAUTH")

        wait_until(is_asked_for, PATIENCE, "the password")
        assert guard.redis(password="sesame").get("item:1") == b"payload 1"

    def test_what_cannot_change_is_named(self, start_guard, database, cache, items):
        guard = start_guard(items())
        self.reload(guard, self.settings(database, cache, items, {"table": "public.items"},
                                         workers=3, load_connections=9))
        wait_until(lambda: "load_connections" in guard.log(), PATIENCE, guard.log)
        assert "workers cannot change" in guard.log() and "without a gap (SIGUSR2): 3 (now 2)" in guard.log()
        assert "reload: reload:" not in guard.log()
        assert guard.redis().mget("item:1", "item:500") == [b"payload 1", None]

    def test_a_cache_that_is_to_be_encrypted_and_is_not_stays_as_it_is(self, start_guard, database, cache, items):
        guard = start_guard(items())
        encrypted = cache.url.replace("redis:", "rediss:")
        for count in (1, 2):  # also when nothing but this has changed since the last time
            self.reload(guard, {**self.settings(database, cache, items), "cache": encrypted})
            wait_until(lambda: guard.log().count("read again") == count, PATIENCE, guard.log)
            assert guard.log().count(f"cache stays {cache.url} for now, not {encrypted}") == count
            assert guard.redis().set("plain", "x")

    def test_a_bad_file_changes_nothing(self, start_guard, items):
        guard = start_guard(items())
        self.reload(guard, "listen: [\n")
        wait_until(lambda: "nestguard.yaml:" in guard.log(), PATIENCE, guard.log)
        assert guard.redis().mget("item:1", "item:500") == [b"payload 1", None]
        assert guard.is_ready()
