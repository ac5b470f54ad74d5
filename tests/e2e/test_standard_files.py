"""Standard input, output and error that a caller has closed, or that take nothing any more."""
import subprocess

import pytest

from servers import NESTGUARD, PATIENCE, free_port
from waiting import wait_until

CLOSED = {"input": "<&-", "output": ">&-", "error": "2>&-"}
FULL = {
    "help": ["--help"], "version": ["--version"], "check": ["check", "-c", "FILE"],
    "check as JSON": ["check", "--json", "-c", "FILE"], "help of check": ["check", "--help"],
    "plan": ["plan", "-c", "FILE", "--keys", "10"], "info": ["filter", "info", "FILTER"],
    "build": ["filter", "build", "KEYS", "FILTER"], "query": ["filter", "query", "FILTER"],
    "help of ctl": ["ctl", "--help"],
}


@pytest.fixture
def words(tmp_path):
    """Files for a command: a guard's configuration, a list of keys, a filter of it."""
    file, keys, filter_file = (tmp_path / name for name in ("file", "keys", "filter"))
    file.write_text(f"listen: 127.0.0.1:{free_port()}\ncache: redis://127.0.0.1:{free_port()}\n"
                    f"database: postgresql://127.0.0.1:{free_port()}/shop\nkeyspaces:\n"
                    "  - {name: a, key: 'a:{id}', table: t, value: v}\n")
    keys.write_text("a\nb\n")
    subprocess.run([NESTGUARD, "filter", "build", keys, filter_file], check=True,
                   stdout=subprocess.DEVNULL)
    named = {"FILE": file, "KEYS": keys, "FILTER": filter_file}
    return lambda *arguments: [NESTGUARD, *(named.get(word, word) for word in arguments)]


def closed(which, command):
    return ["sh", "-c", f'exec "$@" {CLOSED[which]}', "sh", *command]


@pytest.mark.parametrize("which", CLOSED)
def test_a_check_goes_on_without_one_that_is_closed(words, which):
    command = closed(which, words("check", "-c", "FILE"))
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=4 * PATIENCE, check=False)
    assert done.returncode == 1
    assert ("no connection" in done.stdout) == (which != "output")
    assert ("could not be written" in done.stderr) == (which == "output")


@pytest.mark.parametrize("which", CLOSED)
def test_a_guard_serves_without_one_that_is_closed(start_guard, items, which):
    guard = start_guard(items())
    guard.stop()
    command = closed(which, [NESTGUARD, "serve", "-c", guard.file])
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: process.poll() is not None or guard.is_ready(), PATIENCE,
                       "a guard that serves")
            assert process.poll() is None
            with guard.wire() as wire:
                assert wire.ask("GET", "item:1") == b"$9\r\npayload 1\r\n"
        finally:
            process.terminate()
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("what", FULL)
def test_output_that_cannot_be_written_is_a_failure(words, what):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words(*FULL[what]), input="a\n", stdout=full, stderr=subprocess.PIPE,
                              timeout=4 * PATIENCE, check=False, text=True)
    assert done.returncode == 1
    assert done.stderr.count("could not be written: No space left on device") == 1


@pytest.mark.parametrize("what", ["metrics", "status", "config", "health"])
def test_an_answer_that_cannot_be_written_is_a_failure(start_guard, items, what):
    guard = start_guard(items())
    with open("/dev/full", "wb") as full:
        done = subprocess.run([NESTGUARD, "ctl", "-c", guard.file, what], stdout=full,
                              stderr=subprocess.PIPE, timeout=PATIENCE, check=False, text=True)
    assert done.returncode == 1
    assert done.stderr.count("could not be written") == 1
