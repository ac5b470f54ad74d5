"""`nestguard ctl reload` says what the guard has taken of its file, `nestguard ctl config` what is in
force: both without a secret."""
import json

import pytest

from ports import free_port
from servers import PATIENCE, run_nestguard
from waiting import wait_until

OTHERS = {"name": "others", "key": "other:{id}", "table": "items", "value": "payload"}
TOKEN = "sesame-0penn"


@pytest.fixture
def guard(start_guard, items):
    return start_guard(items(), control_token=TOKEN, password=None)


def write(guard, database, cache, *keyspaces, **settings):
    guard.configure({"cache": cache.url, "database": database.url, "control_token": TOKEN,
                     "keyspaces": list(keyspaces), **settings})


def ctl(guard, *words):
    return run_nestguard("ctl", "--control", f"127.0.0.1:{guard.control_port}", *words,
                         NESTGUARD_TOKEN=TOKEN)


def test_it_says_what_was_taken_and_what_was_not(guard, database, cache, items):
    write(guard, database, cache, items(ttl="1h"), OTHERS, load_budget=150, workers=1)
    status, said = ctl(guard, "reload")
    assert status == 0
    assert said.splitlines() == [
        "workers: NEEDS A RESTART for 1; it is 2", "load_budget: 150, it was 200",
        "ttl of keyspace items: 1h, it was 10m", "keyspace others: added, other:{id}",
        "what needs a restart is taken without a gap by a handover: kill -USR2"]
    write(guard, database, cache, items(ttl="1h"), load_budget=150)
    status, said = ctl(guard, "reload", "--json")
    answer = json.loads(said)
    assert answer["keyspaces"] == {"added": [], "changed": [], "removed": ["others"], "left": ["items"]}
    assert answer["restart"] == answer["problems"] == []
    assert ctl(guard, "reload") == (0, "nothing has changed\nkeyspaces left as they are: items\n")
    # As after a signal the log has it, too.
    assert "reload: load_budget: 150, was 200" in guard.log()


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_cache_that_was_not_taken_is_a_failure_though_all_else_was(guard, database, items, option):
    guard.configure({"cache": f"redis://127.0.0.1:{free_port()}", "database": database.url,
                     "control_token": TOKEN, "keyspaces": [items(ttl="1h")], "workers": 1})
    status, said = ctl(guard, "reload", *option)
    assert status == 1
    assert "nestguard ctl: cache was not taken: it cannot be used: cannot connect" in said
    assert "ttl: 1h" in ctl(guard, "config")[1]
    assert guard.redis().get("item:5") == b"payload 5"


def test_of_a_file_with_an_error_nothing_is_taken_and_its_place_is_said(guard, database, cache, items):
    write(guard, database, cache, items(ttl="1h"), OTHERS, load_budget=150, max_clint=3)
    status, said = ctl(guard, "reload")
    assert status == 1
    assert "the file has errors: nothing was changed" in said
    assert f'{guard.file}:' in said and 'unknown setting "max_clint"; did you mean max_clients?' in said
    assert guard.control("POST", "/v1/reload").status_code == 409
    config = ctl(guard, "config")[1]
    assert "load_budget: 200" in config and "others" not in config
    guard.file.unlink()
    status, said = ctl(guard, "reload")
    assert status == 1 and "cannot be read" in said


def test_both_need_the_token(guard):
    for method, path in [("POST", "/v1/reload"), ("GET", "/v1/config")]:
        assert guard.control(method, path, headers={"Authorization": "Bearer x"}).status_code == 401


def test_what_is_in_force_could_be_read_again(guard, database, cache, items, tmp_path):
    write(guard, database, cache, items(where="deleted_at IS NULL"), OTHERS, load_budget=150)
    assert ctl(guard, "reload")[0] == 0
    status, config = ctl(guard, "config")
    assert status == 0 and TOKEN not in config
    guard.file.write_text(config)
    # A secret is not guessed.
    status, said = ctl(guard, "reload")
    assert status == 1 and "NESTGUARD_CONTROL_TOKEN" in said
    guard.file.write_text(config.replace("${NESTGUARD_CONTROL_TOKEN}", TOKEN))
    status, said = ctl(guard, "reload")
    assert (status, said) == (0, "nothing has changed\nkeyspaces left as they are: items, others\n")
    again = tmp_path / "again.yaml"
    again.write_text(config)
    status, said = run_nestguard("check", "-c", again, NESTGUARD_CONTROL_TOKEN=TOKEN)
    assert status == 0, said


def test_another_token_holds_from_then_on(guard, database, cache, items):
    write(guard, database, cache, items(), control_token="n3w-sesame")
    assert ctl(guard, "reload")[1].startswith("control_token: (hidden), it was (hidden)\n")
    assert guard.control("GET", "/v1/status").status_code == 401
    guard.token = "n3w-sesame"
    assert guard.control("GET", "/v1/status").status_code == 200
    write(guard, database, cache, items(), control_token=None)  # a loopback address needs none
    assert guard.control("POST", "/v1/reload").status_code == 200
    assert guard.control("GET", "/v1/status", headers={"Authorization": "Bearer x"}).status_code == 200


def test_connections_for_loads_come_and_go_and_no_load_fails(guard, database, cache, items):
    def connections():
        return guard.status()["backends"]["database"]["connections"]

    wait_until(lambda: connections() == 4, PATIENCE, guard.log)
    client = guard.redis()
    for wanted in (1, 7, 2):
        write(guard, database, cache, items(), load_connections=wanted)
        assert f"load_connections: {wanted}, it was" in ctl(guard, "reload")[1]
        cache.client().flushall()
        assert client.mget([f"item:{n}" for n in range(1, 101)]) == [
            b"payload %d" % n for n in range(1, 101)]
        wait_until(lambda wanted=wanted: connections() == wanted, PATIENCE, guard.log)
