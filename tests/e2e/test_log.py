"""The log: its forms, its levels, and that a reload changes both and loses nothing."""
import json
import os
import signal
import subprocess

import pytest

from servers import NESTGUARD, PATIENCE
from waiting import wait_until


def lines(guard):
    return guard.log_path.read_text().splitlines()


def wait_for_line(guard, text, count=1):
    wait_until(lambda: sum(text in line for line in lines(guard)) >= count, PATIENCE,
               lambda: f"{text!r}\n{guard.log()}")


def test_json_has_an_object_a_line(start_guard, items):
    guard = start_guard(items(), log_format="json")
    said = [json.loads(line) for line in lines(guard) if line.startswith("{")]
    assert said and all(set(entry) == {"time", "level", "event", "values", "message"} for entry in said)
    [state] = [entry for entry in said if entry["event"].startswith("keyspace %s: %s, was %s")]
    assert state["message"].startswith("keyspace items: guarding, was loading")
    assert state["values"][:3] == ["items", "guarding", "loading"] and len(state["values"]) == 4


def start_in_vain(file, stderr, **environment):
    """serve with this file ends by itself, and has written so to stderr."""
    guard = subprocess.run([NESTGUARD, "serve", "-c", file], stderr=stderr, timeout=PATIENCE,
                           env={**os.environ, **environment}, check=False)
    assert guard.returncode == 1


def wrong_file(tmp_path, cache, database, **settings):
    file = tmp_path / "nestguard.yaml"
    file.write_text(json.dumps({"cache": cache.url, "database": database.url, "keyspaces": [
        {"name": "items", "key": "item:{id}", "table": "nowhere", "value": "payload"}], **settings}))
    return file


@pytest.mark.parametrize("wrong", [{}, {"load_budget": "much"}], ids=["database", "file"])
def test_json_says_why_there_is_no_start(tmp_path, cache, database, wrong):
    file, said = wrong_file(tmp_path, cache, database, log_format="json", **wrong), tmp_path / "said"
    with said.open("wb") as stderr:
        start_in_vain(file, stderr)
    entries = [json.loads(line) for line in said.read_text().splitlines()]
    assert {entry["level"] for entry in entries} == {"error"}
    assert any(word in entry["message"] for entry in entries for word in ("nowhere", "load_budget"))
    assert entries[-1]["event"].startswith("not started: ")


@pytest.mark.parametrize("wrong", [{}, {"load_budget": "much"}, {"keyspaces": "{"}],
                         ids=["database", "file", "keyspaces"])
def test_the_journal_is_told_how_much_it_matters_why_there_is_no_start(tmp_path, cache, database,
                                                                       wrong):
    file, said = wrong_file(tmp_path, cache, database, **wrong), tmp_path / "said"
    with said.open("wb") as stderr:
        about = os.fstat(stderr.fileno())
        start_in_vain(file, stderr, JOURNAL_STREAM=f"{about.st_dev}:{about.st_ino}")
    lines_said = said.read_text().splitlines()
    assert len(lines_said) > 1 and all(line.startswith("<3>error ") for line in lines_said)
    assert "not started: " in lines_said[-1]


def test_clients_come_and_go_at_debug_level_only(start_guard, items):
    guard = start_guard(items())
    guard.redis().ping()
    assert not any("client " in line for line in lines(guard))
    guard.configure({**json.loads(guard.file.read_text()), "log_level": "debug"})
    guard.signal(signal.SIGHUP)
    wait_for_line(guard, "configuration read again")
    with guard.wire():
        wait_for_line(guard, "has come")
    wait_for_line(guard, "has gone")


def test_a_reload_changes_the_form_and_loses_no_line(start_guard, items):
    guard = start_guard(items())
    before = lines(guard)
    for count, form in enumerate(["json", "text"] * 3, 1):
        guard.configure({**json.loads(guard.file.read_text()), "log_format": form})
        guard.signal(signal.SIGHUP)
        wait_for_line(guard, "configuration read again", count)
    assert lines(guard)[:len(before)] == before
    again = [line for line in lines(guard) if "configuration read again" in line]
    assert [line.startswith("{") for line in again] == [True, False] * 3


def test_the_level_leaves_out_what_is_less(start_guard, items):
    guard = start_guard(items(), log_level="error")
    assert not any(" info " in line or " warning " in line for line in lines(guard)
                   if line.startswith("20"))
