"""`nestguard ctl` as a person sees it, on a terminal, and as programs do."""
import contextlib
import json
import os
import subprocess
import termios

import pytest

from servers import NESTGUARD, PATIENCE, run_nestguard
from terminal import Terminal, plain
from waiting import wait_until

MISSING = "item:1000"


@pytest.fixture
def guard(start_guard, items):
    return start_guard(items())


@pytest.fixture
def terminal(guard):
    """terminal(word, ..., VARIABLE=value) runs `nestguard ctl` of the guard on a terminal."""
    with contextlib.ExitStack() as stack:
        def run(*words, **settings):
            terminal = Terminal("ctl", "-c", guard.file, *words, **settings)
            stack.callback(terminal.close)
            return terminal
        yield run


def ctl(guard, *words):
    return run_nestguard("ctl", "-c", guard.file, *words)


class TestStatus:
    def test_on_a_terminal_it_is_a_table_in_colours(self, guard, terminal):
        guard.redis().mget("item:1", MISSING)
        text = terminal("status").rest()
        assert "\x1b[32mguarding\x1b[0m" in text
        row = next(line for line in plain(text).splitlines() if line.startswith("items "))
        assert row.split()[1] == "guarding" and row.split()[-4:] == ["2", "1", "0", "1"]

    def test_without_colours_where_they_are_not_wanted(self, terminal):
        assert "\x1b" not in terminal("status", NO_COLOR="1").rest()

    def test_for_programs_it_is_json_as_ever(self, guard, terminal):
        status, said = ctl(guard, "status")
        assert status == 0 and json.loads(said)["keyspaces"][0]["name"] == "items"
        assert json.loads(terminal("status", "--json").rest())["keyspaces"]

    def test_a_table_can_be_asked_for_anywhere(self, guard):
        status, said = ctl(guard, "status", "--table")
        assert status == 0 and "\nitems " in said and "\x1b" not in said

    def test_a_keyspace_that_does_not_guard_has_its_reason(self, start_guard, database, items):
        with database.locked():
            guard = start_guard(items(), ready=False)
            said = ctl(guard, "status", "--table")[1]
            assert "not guarding everything" in said and "items      loading" in said, said
        guard.wait_guarding()


class TestWatch:
    def test_programs_get_an_object_a_line(self, guard):
        with subprocess.Popen([NESTGUARD, "ctl", "-c", guard.file, "status", "--watch", "0.1"],
                              stdout=subprocess.PIPE, text=True) as process:
            seen = [json.loads(process.stdout.readline())["uptime_seconds"] for _ in range(3)]
            process.terminate()
        assert seen == sorted(seen) and seen[0] < seen[2]

    def test_it_ends_when_nobody_reads_it_any_more(self, guard):
        process = subprocess.Popen([NESTGUARD, "ctl", "-c", guard.file, "status", "--watch=0.1"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) != 0

    def test_it_outlasts_a_guard(self, guard, terminal):
        watching = terminal("status", "--watch", "0.1")
        watching.read(lambda text: "guarding" in text)
        guard.stop()
        watching.read(lambda text: "nothing answers" in text)
        guard.start()
        watching.read(lambda text: "\x1b[32mguarding\x1b[0m" in text)


class TestTop:
    def test_it_shows_rates_and_who_asks(self, guard, terminal):
        top = terminal("top")
        client = guard.redis()
        client.client_setname("shop")

        def asked(text):
            client.mget("item:1", MISSING)
            rows = [line.split() for line in plain(text).splitlines() if line.startswith("items ")]
            return any(len(row) > 3 and row[2] not in "-0" and row[3] not in "-0" for row in rows) \
                and "shop" in text

        assert "q quits" in top.read(asked)

    @pytest.mark.parametrize("key", ["q", "\x03"])
    def test_it_leaves_the_terminal_as_it_was(self, terminal, key):
        top = terminal("top")
        top.read(lambda text: "guarding" in text)
        assert termios.tcgetattr(top.slave) != top.before
        top.press(key)
        text = top.rest()
        assert top.process.returncode == 0 and text.endswith("\x1b[?25h\x1b[?1049l")
        assert termios.tcgetattr(top.slave) == top.before

    def test_it_keeps_within_the_terminals_size(self, terminal):
        top = terminal("top", rows=6, columns=40)
        lines = plain(top.read(lambda text: text.count("q quits") >= 2)).splitlines()
        assert max(map(len, lines)) <= 40
        top.resize(40, 150)
        top.read(lambda text: any(len(line) > 40 for line in plain(text).splitlines()))

    def test_a_guard_that_goes_and_comes_is_shown(self, guard, terminal):
        top = terminal("top")
        top.read(lambda text: "guarding" in text)
        guard.stop()
        top.read(lambda text: "nothing answers" in text)
        guard.start()
        top.read(lambda text: "nothing answers" not in text.split("\x1b[H")[-1]
                 and text.count("q quits") > 3)

    def test_elsewhere_it_says_what_there_is(self, guard):
        status, said = ctl(guard, "top")
        assert status == 2 and "status --watch" in said


def test_the_end_of_a_terminal_ends_it(guard):
    top = Terminal("ctl", "-c", guard.file, "top")
    top.read(lambda text: "guarding" in text)
    os.close(top.slave)
    os.close(top.master)
    wait_until(lambda: top.process.poll() is not None, PATIENCE, "the end")
