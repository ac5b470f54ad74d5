"""`nestguard ctl push`: a keyspace's keys from a file or another program's output, as many as there are."""
import json
import os
import signal
import subprocess

import pytest

from servers import NESTGUARD, run_nestguard
from terminal import Terminal, plain
from test_pushed_keys import COUNT, assert_knows, keys, pushed, wait_begun, wait_broken_off


@pytest.fixture
def guard(start_guard):
    return start_guard(pushed(), database=None, ready=False, control_token="sesame")


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "keys.txt"
    made.write_bytes(keys())
    return made


def ctl(guard, *words):
    return run_nestguard("ctl", "-c", guard.file, *words)


def sending(guard, *words, **settings):
    return subprocess.Popen([NESTGUARD, "ctl", "-c", guard.file, "push", "items", *words],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, **settings)


def test_a_file_is_pushed_and_the_answer_printed(guard, file):
    status, said = ctl(guard, "push", "items", file)
    assert status == 0 and json.loads(said) == {
        "keyspace": "items", "lines": COUNT, "keys": COUNT, "duplicates": 0, "generation": 1}
    assert_knows(guard)


@pytest.mark.parametrize("words", [[], ["-"]])
@pytest.mark.parametrize("is_file", [True, False])
def test_standard_input_is_pushed(guard, file, words, is_file):
    """From where it stands, if it is a file."""
    if is_file:
        with open(file, "rb", buffering=0) as whole:
            assert whole.readline() == b"item:1\n"
            done = subprocess.run([NESTGUARD, "ctl", "-c", guard.file, "push", "items", *words],
                                  stdin=whole, check=False, capture_output=True)
        assert done.returncode == 0 and json.loads(done.stdout)["keys"] == COUNT - 1
    else:
        with sending(guard, *words) as sender:
            said = sender.communicate(keys())[0]
        assert sender.returncode == 0 and json.loads(said)["keys"] == COUNT


def test_lines_go_out_as_they_come(guard):
    """Whoever makes them may take a while for the first, and between two."""
    with sending(guard) as sender:
        assert "are being pushed" not in guard.log()
        sender.stdin.write(keys(1, 10))
        sender.stdin.flush()
        wait_begun(guard)
        said = sender.communicate(keys(11))[0]
    assert sender.returncode == 0 and json.loads(said)["keys"] == COUNT
    assert_knows(guard)


def test_what_the_guard_says_against_it_is_told(guard, file, tmp_path):
    assert ctl(guard, "push", "items", file)[0] == 0
    status, said = ctl(guard, "push", "none", file)
    assert status == 1 and "there is no keyspace of this name" in said
    status, said = run_nestguard("ctl", "--control", f"127.0.0.1:{guard.control_port}", "push", "items", file)
    assert status == 1 and "NESTGUARD_TOKEN" in said
    (tmp_path / "half.txt").write_bytes(keys()[:-1])
    status, said = ctl(guard, "push", "items", tmp_path / "half.txt")
    assert status == 1 and "does not end" in said
    (tmp_path / "empty.txt").touch()
    status, said = ctl(guard, "push", "items", tmp_path / "empty.txt")
    assert status == 1 and "min_keys" in said
    assert_knows(guard)


def test_a_push_that_is_refused_is_not_sent(guard, tmp_path):
    """A gigabyte, of which nobody wants a byte."""
    with open(tmp_path / "large.txt", "wb") as large:
        large.truncate(1 << 30)
    for words in (["push", "none"], ["--token", "wrong", "push", "items"]):
        status, said = run_nestguard("ctl", "-c", guard.file, *words, tmp_path / "large.txt")
        assert status == 1 and ("there is no keyspace" in said or "Bearer" in said), said


def test_what_cannot_be_read_is_named(guard, tmp_path):
    status, said = ctl(guard, "push", "items", tmp_path / "none.txt")
    assert status == 1 and "none.txt: No such file" in said
    status, said = ctl(guard, "push", "items", tmp_path)
    assert status == 1 and "Is a directory" in said
    assert "are being pushed" not in guard.log()


def test_one_that_is_killed_changes_nothing(guard, file):
    assert ctl(guard, "push", "items", file)[0] == 0
    with sending(guard, start_new_session=True) as sender:
        sender.stdin.write(keys(2, 2000))
        sender.stdin.flush()
        wait_begun(guard)
        os.killpg(sender.pid, signal.SIGKILL)
    wait_broken_off(guard)
    assert_knows(guard)


def test_wrong_usage_is_told(guard):
    for words, said in [(["push"], "KEYSPACE is missing"), (["push", ""], "KEYSPACE is empty"),
                        (["push", "items", "a", "b"], "extra word"),
                        (["push", "items", "--watch", "1"], "unknown option")]:
        assert ctl(guard, *words)[0] == 2 and said in ctl(guard, *words)[1]
    terminal = Terminal("ctl", "-c", guard.file, "push", "items")
    assert "standard input is a terminal" in terminal.rest()
    terminal.close()


def test_a_person_sees_how_far_it_is(guard, tmp_path):
    fifo = tmp_path / "keys"
    os.mkfifo(fifo)
    terminal = Terminal("ctl", "-c", guard.file, "push", "items", fifo)
    with open(fifo, "wb") as lines:
        lines.write(keys(1, 100000))
        lines.flush()
        terminal.read(lambda text: "bytes sent: " in text)
    assert '"keys": 100000' in plain(terminal.rest())
    terminal.close()


def test_millions_take_no_memory_of_the_sender(guard, tmp_path):
    def push_lines(count):
        """How much memory it took, in bytes."""
        with open(tmp_path / "said", "w+b") as said, subprocess.Popen(
                ["seq", "-f", "item:%.0f", "1", str(count)], stdout=subprocess.PIPE) as lines:
            sender = subprocess.Popen([NESTGUARD, "ctl", "-c", guard.file, "push", "items"],
                                      stdin=lines.stdout, stdout=said, stderr=said)
            _, sender.returncode, used = os.wait4(sender.pid, 0)
            said.seek(0)
            assert json.load(said)["lines"] == count
        return used.ru_maxrss * 1024

    few = push_lines(COUNT)
    assert push_lines(3_000_000) < few + (16 << 20), "and it is 40 MB that were sent"
