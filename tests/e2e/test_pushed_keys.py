"""Keys that the application sends: a list of them is taken as a whole or not at all, and whoever
sends a part of one, breaks off, or sends something else never has a key denied that is in force."""
import contextlib
import http.client
import socket
import subprocess
import sys

import pytest

from checking import check  # pylint: disable=unused-import
from following import is_possible, looking_up, publish
from servers import PATIENCE
from waiting import wait_until

COUNT = 1000
PATH = "/v1/keyspaces/items/keys"


def keys(first=1, last=COUNT):
    return "".join(f"item:{n}\n" for n in range(first, last + 1)).encode()


def pushed(**settings):
    return {"name": "items", "key": "item:{id}", "source": "push", "on_miss": "pass",
            "false_positive_rate": 1e-7, **settings}


def push(guard, body, path=PATH):
    return guard.control("PUT", path, data=body)


def assert_taken(guard, body, count):
    answer = push(guard, body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["keys"] == count
    assert guard.keyspace()["rows"] == count
    assert guard.keyspace()["source_generation"] == answer.json()["generation"]
    assert guard.keyspace()["source_refused"] is None


def assert_knows(guard, last=COUNT):
    """These keys are all possible, and what never was is rejected."""
    assert guard.is_ready() and guard.keyspace()["rows"] == last
    found = guard.redis().execute_command("BF.MEXISTS", "items", *range(1, last + 1))
    assert found == [1] * last
    assert not is_possible(guard, "item:7000000")


@pytest.fixture
def guard(start_guard):
    """One that was told of the first keys."""
    started = start_guard(pushed(), database=None, ready=False)
    assert_taken(started, keys(), COUNT)
    return started


@contextlib.contextmanager
def sending(guard, body, length=None, path=PATH):
    """A call whose body has come so far: of that length, or in chunks without an end."""
    with socket.create_connection(("127.0.0.1", guard.control_port), timeout=PATIENCE) as sender:
        framing = f"Content-Length: {length}" if length else "Transfer-Encoding: chunked"
        sender.sendall(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n".encode())
        sender.sendall(body if length else b"%x\r\n%s\r\n" % (len(body), body))
        yield sender


def answer_of(sender):
    answer = http.client.HTTPResponse(sender, method="PUT")
    answer.begin()
    return answer.status, answer.read()


def wait_begun(guard):
    """Until the guard has the headers of the call that is being sent."""
    def has_begun():
        log = guard.log(100000)
        return log.count("are being pushed") > log.count("which were pushed") + log.count(
            "what was pushed is refused")

    wait_until(has_begun, PATIENCE, guard.log)


def wait_broken_off(guard):
    """Soon: without an end that is seen, a body is waited for as long as its last byte is 30 s ago."""
    wait_until(lambda: "broke off" in (guard.keyspace()["source_refused"] or ""), PATIENCE / 2,
               lambda: f"{guard.keyspace()}\n{guard.log()}")
    assert "its sender broke off after" in guard.log()


def test_everything_passes_until_keys_are_pushed(start_guard, cache):
    guard = start_guard(pushed(), database=None, ready=False)
    cache.client().set("item:5", "five")
    wait_until(lambda: guard.control("GET", "/readyz").status_code == 200, PATIENCE, guard.log)
    assert guard.redis().mget("item:5", "item:7000") == [b"five", None]
    assert is_possible(guard, "item:7000")
    assert guard.keyspace()["state"] == "loading"
    assert "pushed" in guard.keyspace()["reason"]
    assert guard.control("GET", "/guardz").status_code == 503
    assert_taken(guard, keys(), COUNT)
    guard.wait_guarding()
    assert guard.redis().mget("item:5", "item:7000") == [b"five", None]
    assert_knows(guard)


def test_a_push_answers_what_it_took(guard):
    answer = push(guard, keys(1, 800) + keys(701, 1100)).json()
    assert (answer["keyspace"], answer["lines"], answer["keys"], answer["duplicates"]) == (
        "items", 1200, 1100, 100)
    assert_taken(guard, keys(501, 1600), 1100)
    assert is_possible(guard, "item:1600") and not is_possible(guard, "item:1")
    assert push(guard, keys()).json()["generation"] == answer["generation"] + 2


@pytest.mark.parametrize("body, status, words", [
    (b"", 409, "min_keys"),
    (keys(1, 400), 409, "max_shrink"),
    (keys()[:-1], 400, "does not end"),
    (keys(1, 900) + b"42\n" + keys(901), 400, "line 901 is no key like item:{id}"),
    (keys(1, 900) + b"\n" + keys(901), 400, "line 901 is no key"),
    (keys().replace(b"\n", b"\r\n"), 400, "line 1 ends with a carriage return"),
    (b"\0" * 700000, 400, "does not end")],
    ids=["emptied", "cut short", "in a line", "ids", "empty line", "carriage returns", "zeros"])
def test_what_is_no_whole_list_denies_nothing(guard, body, status, words):
    answer = push(guard, body)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text
    assert words in guard.keyspace()["source_refused"] and words in guard.log()
    assert_knows(guard)
    assert_taken(guard, keys(1, 1100), 1100)


def test_as_much_may_be_missing_as_the_setting_says(start_guard, cache, guard):
    assert push(guard, keys(1, 10)).status_code == 409
    guard.configure({"cache": cache.url, "keyspaces": [pushed(max_shrink="100%", min_keys=0)]})
    guard.control("POST", "/v1/reload")
    assert_knows(guard)
    assert_taken(guard, keys(1, 10), 10)
    assert_taken(guard, b"", 0)
    assert not is_possible(guard, "item:5")


def test_filters_are_no_larger_than_they_may_be(start_guard):
    guard = start_guard(pushed(), database=None, ready=False, max_filter_memory="64kb")
    assert_taken(guard, keys(), COUNT)
    answer = push(guard, keys(1, 100000))
    assert answer.status_code == 413 and "max_filter_memory" in answer.json()["error"]
    assert_knows(guard)


@pytest.mark.parametrize("length", [None, 1000000], ids=["chunked", "with a length"])
@pytest.mark.parametrize("how", ["closes", "resets", "sends no more"])
def test_a_sender_who_breaks_off_changes_nothing(guard, length, how):
    """Each line that came is whole, and there are enough of them."""
    with sending(guard, keys(2, 2000), length) as sender:
        wait_begun(guard)
        if how == "sends no more":
            sender.shutdown(socket.SHUT_WR)
        elif how == "resets":
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        if how == "sends no more":
            wait_broken_off(guard)
    wait_broken_off(guard)
    assert_knows(guard)
    assert_taken(guard, keys(1, 1100), 1100)


HALF = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
connection.putrequest("PUT", sys.argv[2])
connection.putheader("Content-Length", "100000")
connection.endheaders(b"item:2\\n" * 1000)
sys.stdin.read()
"""


def test_a_sender_that_is_killed_changes_nothing(guard):
    with subprocess.Popen([sys.executable, "-c", HALF, str(guard.control_port), PATH],
                          stdin=subprocess.PIPE) as sender:
        wait_begun(guard)
        sender.kill()
    wait_broken_off(guard)
    assert_knows(guard)


def test_a_second_sender_is_refused_while_one_is_sending(guard):
    with sending(guard, keys(1, 500), len(keys(1, 1500))) as sender:
        wait_begun(guard)
        answer = push(guard, keys())
        assert answer.status_code == 409 and "already" in answer.json()["error"]
        sender.sendall(keys(501, 1500))
        assert answer_of(sender)[0] == 200
    assert_knows(guard, 1500)


def test_the_control_port_answers_while_keys_are_sent(guard):
    with sending(guard, keys(1, 500), len(keys(1, 1500))) as sender:
        wait_begun(guard)
        for path in ["/healthz", "/v1/status", "/metrics", "/v1/keys/item:5"]:
            assert guard.control("GET", path).status_code == 200
        sender.sendall(keys(501, 1500))
        assert answer_of(sender)[0] == 200


def test_keys_that_are_added_while_a_list_is_sent_are_in_force_with_it(start_guard):
    guard = start_guard(pushed(), database=None, ready=False, hint_ttl="100ms")
    assert_taken(guard, keys(), COUNT)
    client = guard.redis()
    assert client.execute_command("BF.ADD", "items", 1999) == 1
    with sending(guard, keys(1, 500), len(keys(1, 1200))) as sender:
        wait_begun(guard)
        client.set("item:2000", "written")
        assert client.execute_command("BF.ADD", "items", 2001) == 1
        assert guard.control("PUT", "/v1/keys/item:2002").status_code == 201
        wait_until(lambda: guard.status()["entries"] == 0, PATIENCE, guard.status)
        sender.sendall(keys(501, 1200))
        assert answer_of(sender)[0] == 200
    assert guard.keyspace()["rows"] == 1203
    assert all(is_possible(guard, f"item:{n}") for n in (2000, 2001, 2002))
    assert client.get("item:2000") == b"written"
    assert not is_possible(guard, "item:1999")


def test_only_its_own_keyspaces_take_keys(start_guard, database, items, tmp_path):
    file = tmp_path / "keys.txt"
    file.write_bytes(b"file:1\n")
    rows = items(name="rows", key="row:{id}")
    guard = start_guard(pushed(), rows, {"name": "files", "key": "file:{id}", "on_miss": "pass",
                                         "source": f"file:{file}"}, sync="poll", ready=False)
    assert_taken(guard, keys(), COUNT)
    guard.wait_guarding()
    for name, status in [("rows", 409), ("files", 409), ("none", 404), ("", 404)]:
        assert push(guard, keys(), f"/v1/keyspaces/{name}/keys").status_code == status
    assert guard.control("GET", PATH).status_code == 405
    assert guard.control("PUT", PATH + "?x=1", data=keys()).status_code == 400
    assert guard.control("PUT", "/v1/keyspaces/items", data=keys()).status_code == 404
    guard.rebuild()
    assert_knows(guard)
    assert guard.redis().get("row:5") == b"payload 5"
    publish(database, rows)


def test_the_token_is_asked_for_before_the_keys(start_guard):
    guard = start_guard(pushed(), database=None, ready=False, control_token="s3cret")
    for body in [keys(), keys(1, 200000)]:  # a body that is not waited for
        answer = guard.control("PUT", PATH, data=body, headers={"Authorization": "Bearer wrong",
                                                                "Expect": "100-continue"})
        assert answer.status_code == 401
    assert guard.keyspace()["state"] == "loading" and guard.keyspace()["source_refused"] is None
    assert_taken(guard, keys(), COUNT)


@pytest.mark.parametrize("asks", [True, False], ids=["asking", "unasked"])
def test_what_is_refused_is_answered_before_it_is_sent(start_guard, asks):
    """Of a list without an end, too; and who sends a lot before he looks gets the answer."""
    guard = start_guard(pushed(), database=None, ready=False, control_token="s3cret")
    right = "Authorization: Bearer s3cret\r\n"
    for path, token, status in [(PATH, "", 401), ("/v1/keyspaces/none/keys", right, 404),
                                (PATH + "?x=1", right, 400), ("/v1/keyspaces/items", right, 404)]:
        with socket.create_connection(("127.0.0.1", guard.control_port), timeout=PATIENCE) as sender:
            sender.sendall((f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                            + token + "Expect: 100-continue\r\n" * asks + "\r\n").encode())
            if not asks:
                for _ in range(200):
                    sender.sendall(b"10000\r\n" + b"item:77\n" * 8192 + b"\r\n")
            assert answer_of(sender)[0] == status
    assert_taken(guard, keys(), COUNT)


def test_a_keyspace_that_goes_while_keys_are_sent_takes_none(start_guard, cache, guard):
    with sending(guard, keys(1, 500), len(keys(1, 1500))) as sender:
        wait_begun(guard)
        guard.configure({"cache": cache.url, "keyspaces": [pushed(key="thing:{id}")]})
        guard.control("POST", "/v1/reload")
        sender.sendall(keys(501, 1500))
        status, text = answer_of(sender)
    assert status == 409 and b"removed or changed" in text
    assert guard.keyspace()["state"] == "loading"
    assert is_possible(guard, "thing:5")


def test_a_guard_ends_while_keys_are_sent(guard):
    with sending(guard, keys(1, 500), 1000000):
        wait_begun(guard)
        guard.stop()
    assert not guard.is_running()


def test_large_lists_are_taken(guard):
    assert_taken(guard, keys(1, 300000), 300000)
    found = guard.redis().execute_command("BF.MEXISTS", "items", *range(1, 300001, 97))
    assert all(found)
    assert push(guard, b"item:" + b"x" * 3000000 + b"\n" + keys(1, 200000)).status_code == 200


def test_no_key_of_every_list_is_denied_while_lists_come_and_go(guard):
    """Under load: 1 to 500 are in each whole list, and in the broken ones some are not."""
    with looking_up(guard, 500) as denied:
        last = COUNT
        for body in [b"", keys(1, 200), keys(501, 1500)[:-4], b"junk\n", None] * 3:
            if body is None:
                with sending(guard, keys(501, 2000)):
                    wait_begun(guard)
                wait_broken_off(guard)
            else:
                assert push(guard, body).status_code in (400, 409)
            last += 10
            assert_taken(guard, keys(1, last), last)
    assert not denied


@pytest.mark.parametrize("settings, words", [
    ({}, None), ({"control": None}, "source: push needs control"),
    ({"source": "pushed"}, "or push"), ({"on_miss": "load"}, "source needs on_miss: pass")])
def test_check_knows_what_a_pushed_keyspace_needs(check, settings, words):  # pylint: disable=redefined-outer-name
    keyspace = pushed(**{name: of for name, of in settings.items() if name != "control"})
    top = {name: of for name, of in settings.items() if name == "control"}
    found = check(keyspace, database=None, **top)
    assert found.levels() == [] if words is None else words in found.text, found.text
