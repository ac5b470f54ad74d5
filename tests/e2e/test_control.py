"""The control port: every call, what it does to lookups, and the status codes; `nestguard ctl`."""
import concurrent.futures
import json
import re
import shutil
import socket
import subprocess

import pytest
import redis

from servers import NESTGUARD, PATIENCE, run_nestguard
from waiting import wait_until

MISSING = "item:1000"


def call(guard, method, key, query=""):
    response = guard.control(method, guard.key_path(key) + query)
    return response.status_code


class TestStatus:
    def test_status_tells_everything(self, start_guard, items):
        guard = start_guard(items())
        guard.redis().mget("item:1", MISSING)
        status = guard.status()
        assert re.fullmatch(r"\d+\.\d+\.\d+", status["version"])
        assert status["uptime_seconds"] >= 0
        assert status["generation"]["number"] == 1 and status["generation"]["complete"] is True
        assert status["generation"]["rows"] == 100
        assert status["building"] is None
        keyspace = guard.keyspace()
        assert keyspace["state"] == "guarding" and keyspace["rows"] == 100
        assert keyspace["rejected"] == 1 and keyspace["cache_misses"] == 1
        assert keyspace["cache_hits"] == 0 and keyspace["would_reject"] == 0

    def test_progress_of_a_build_is_shown(self, start_guard, database, items):
        with database.locked():
            guard = start_guard(items(), ready=False)
            building = wait_until(lambda: guard.status()["building"], PATIENCE, "the build")
            assert building["number"] == 1 and building["rows"] == 0
            assert {"rows_per_second", "remaining_seconds"} <= set(building)
            assert guard.keyspace()["state"] == "loading"
        guard.wait_guarding()

    def test_metrics_are_prometheus_text(self, start_guard, items):
        guard = start_guard(items())
        guard.redis().mget("item:1", MISSING)
        response = guard.control("GET", "/metrics")
        assert response.headers["Content-Type"].startswith("text/plain")
        typed = set(re.findall(r"^# TYPE (\S+) (?:counter|gauge)$", response.text, re.M))
        for summary in re.findall(r"^# TYPE (\S+) summary$", response.text, re.M):
            typed |= {f"{summary}_sum", f"{summary}_count"}
        for histogram in re.findall(r"^# TYPE (\S+) histogram$", response.text, re.M):
            typed |= {f"{histogram}_bucket", f"{histogram}_sum", f"{histogram}_count"}
        line = re.compile(r'[a-z_:]+(\{([a-z_]+="([^"\\\n]|\\.)*",?)*\})? [-+0-9.eEinfNa]+')
        for text in response.text.splitlines():
            if text.startswith("#"):
                continue
            assert line.fullmatch(text), text
            assert re.match(r"[a-z_:]+", text)[0] in typed, text
        assert guard.counter("nestguard_keyspace_state", state="guarding") == 1
        assert guard.counter("nestguard_keyspace_state", state="loading") == 0
        assert guard.counter("nestguard_rejected_total") == 1
        assert guard.counter("nestguard_loads_total", result="row") == 1


class TestExplain:
    def test_a_key_with_a_row_is_possible(self, start_guard, cache, items):
        guard = start_guard(items())
        told = guard.explain("item:1")
        assert told["key"] == "item:1" and told["keyspace"] == "items"
        assert told["verdict"] == "possible" and told["why"]
        assert told["cached"] is False and told["in_flight"] is False
        assert told["generation"] == 1
        guard.redis().get("item:1")
        cache.wait_for_key("item:1")
        assert guard.explain("item:1")["cached"] is True

    def test_a_key_without_is_absent(self, start_guard, database, items):
        guard = start_guard(items())
        told = guard.explain(MISSING)
        assert told["verdict"] == "absent" and told["row"] is False
        assert database.count_loads() == 1, "the filter's word is compared with the database's"
        assert guard.explain("item:1")["row"] is None
        assert database.count_loads() == 1

    def test_a_row_that_does_not_count_is_said_to(self, start_guard, database, items):
        guard = start_guard(items(where="id <= 50"))
        told = guard.explain("item:60")
        assert told["verdict"] == "absent" and told["row"] is False
        assert told["where"] == "id <= 50" and "meets `where`" in told["why"]
        assert guard.explain("item:1")["where"] == "id <= 50"

    def test_why_nobody_has_answered_is_said(self, start_guard, database, cache, items):
        guard = start_guard(items())
        told = guard.explain(MISSING)
        assert told["row_error"] is None and told["cached_error"] is None
        cache.stop()
        database.server.stop()

        def is_said():
            told = guard.explain(MISSING)
            assert told["verdict"] == "absent"
            return told["row"] is None and told["row_error"] and told["cached"] is None \
                and told["cached_error"]

        wait_until(is_said, PATIENCE, lambda: guard.explain(MISSING))

    def test_a_load_in_flight_shows(self, start_guard, database, items):
        guard = start_guard(items(), load_timeout="60s")
        with concurrent.futures.ThreadPoolExecutor() as pool, database.locked():
            waiting = pool.submit(guard.redis().get, "item:1")
            wait_until(lambda: guard.explain("item:1")["in_flight"], PATIENCE, "the load")
            assert not guard.explain("item:2")["in_flight"]
        assert waiting.result(PATIENCE) == b"payload 1"

    @pytest.mark.parametrize("text", ["a/b", "a b", "ä☃", "a?b=c&d", "100%", "a+b", "\n\t"])
    def test_keys_of_any_text_can_be_named(self, start_guard, database, text):
        database.execute("CREATE TABLE words (w text PRIMARY KEY, v text)")
        database.execute("INSERT INTO words VALUES (%s, 'x')", (text,))
        guard = start_guard({"name": "words", "key": "w:{w}", "table": "words", "value": "v"})
        told = guard.explain("w:" + text)
        assert told["key"] == "w:" + text and told["verdict"] == "possible"
        assert call(guard, "DELETE", "w:" + text) == 409
        database.execute("DELETE FROM words")
        assert call(guard, "DELETE", "w:" + text) == 204
        assert guard.explain("w:" + text)["verdict"] == "absent"


class TestAdmission:
    def test_an_admitted_key_passes(self, start_guard, database, items):
        guard = start_guard(items())
        assert guard.redis().get("item:500") is None
        database.execute("INSERT INTO items VALUES (500, 'new')")
        assert call(guard, "PUT", "item:500") == 201
        for _ in range(8):  # on every worker
            assert guard.redis().get("item:500") == b"new"
        assert guard.explain("item:500")["verdict"] == "possible"
        assert call(guard, "PUT", "item:500") == 204

    def test_it_ends_when_no_row_shows_up(self, start_guard, items):
        guard = start_guard(items(), hint_ttl="100ms")
        assert call(guard, "PUT", "item:500") == 201
        guard.rebuild()
        wait_until(lambda: guard.explain("item:500")["verdict"] == "absent", PATIENCE, "its end")
        assert guard.redis().get("item:500") is None

    def test_before_the_row_is_there_a_lookup_is_nil_not_an_error(self, start_guard, items):
        guard = start_guard(items())
        assert call(guard, "PUT", "item:500") == 201
        assert guard.redis().get("item:500") is None


class TestDeletion:
    def test_of_a_row_that_is_gone(self, start_guard, database, cache, items):
        guard = start_guard(items())
        assert guard.redis().get("item:5") == b"payload 5"
        cache.wait_for_key("item:5")
        database.execute("DELETE FROM items WHERE id = 5")
        assert guard.redis().get("item:5") == b"payload 5", "still cached"
        assert call(guard, "DELETE", "item:5") == 204
        assert cache.client().exists("item:5") == 0
        loads, gets = database.count_loads(), cache.calls("get")
        for _ in range(8):
            assert guard.redis().get("item:5") is None
        assert (database.count_loads(), cache.calls("get")) == (loads, gets)
        assert guard.explain("item:5")["verdict"] == "absent"

    def test_of_a_row_that_is_there_is_refused(self, start_guard, database, items):
        guard = start_guard(items())
        response = guard.control("DELETE", guard.key_path("item:5"))
        assert response.status_code == 409
        assert "row=delete" in response.json()["error"] and "block" in response.json()["error"]
        assert guard.redis().get("item:5") == b"payload 5"
        assert database.value("SELECT count(*) FROM items") == 100

    def test_with_the_row(self, start_guard, database, cache, items):
        guard = start_guard(items())
        assert guard.redis().mget("item:5", "item:6") == [b"payload 5", b"payload 6"]
        cache.wait_for_key("item:5")
        assert call(guard, "DELETE", "item:5", "?row=delete") == 204
        assert database.query("SELECT id FROM items WHERE id IN (5, 6)") == [(6,)]
        for _ in range(8):
            assert guard.redis().mget("item:5", "item:6") == [None, b"payload 6"]
        assert cache.client().exists("item:5") == 0
        assert call(guard, "DELETE", "item:5", "?row=delete") == 204, "it is gone already"

    def test_with_the_row_keeps_to_where(self, start_guard, database, items):
        database.execute("UPDATE items SET deleted_at = now() WHERE id = 5")
        guard = start_guard(items(where="deleted_at IS NULL"))
        assert call(guard, "DELETE", "item:5", "?row=delete") == 204
        assert database.value("SELECT count(*) FROM items WHERE id = 5") == 1

    def test_with_a_row_that_may_not_be_deleted(self, start_guard, database, items):
        guard = start_guard(items())
        database.execute("REVOKE DELETE ON items FROM guard")
        response = guard.control("DELETE", guard.key_path("item:5") + "?row=delete")
        assert response.status_code >= 400 and "permission" in response.json()["error"]
        assert guard.redis().get("item:5") == b"payload 5"

    def test_a_block_refuses_a_row_that_exists(self, start_guard, database, cache, items):
        guard = start_guard(items())
        assert guard.redis().get("item:5") == b"payload 5"
        cache.wait_for_key("item:5")
        assert call(guard, "DELETE", "item:5", "?block=10m") == 204
        assert cache.client().exists("item:5") == 0
        for _ in range(8):
            assert guard.redis().get("item:5") is None
        guard.rebuild()
        assert guard.redis().mget("item:5", "item:6") == [None, b"payload 6"]
        assert database.value("SELECT count(*) FROM items") == 100

    def test_a_block_ends(self, start_guard, items):
        guard = start_guard(items())
        assert call(guard, "DELETE", "item:5", "?block=200ms") == 204
        wait_until(lambda: guard.redis().get("item:5") == b"payload 5", PATIENCE, "the block's end")

    def test_a_key_that_comes_back_is_admitted(self, start_guard, database, items):
        guard = start_guard(items())
        assert call(guard, "DELETE", "item:5", "?row=delete") == 204
        database.execute("INSERT INTO items VALUES (5, 'again')")
        assert call(guard, "PUT", "item:5") == 201
        assert guard.redis().get("item:5") == b"again"

    def test_a_key_that_comes_back_is_in_the_next_generation(self, start_guard, database, items):
        guard = start_guard(items())
        assert call(guard, "DELETE", "item:5", "?row=delete") == 204
        database.execute("INSERT INTO items VALUES (5, 'again')")
        guard.rebuild()
        wait_until(lambda: guard.redis().get("item:5") == b"again", PATIENCE, "the row")

    def test_takes_no_other_keys_fingerprint_away(self, start_guard, database, items):
        """Thousands of deletions of keys that never were, in a filter where many look alike."""
        guard = start_guard(items(false_positive_rate=0.03))
        for n in range(101, 1500):
            assert call(guard, "DELETE", f"item:{n}") == 204
        assert guard.redis().mget([f"item:{n}" for n in range(1, 101)]) == [
            f"payload {n}".encode() for n in range(1, 101)]

    def test_reaches_a_load_in_flight(self, start_guard, database, cache, items):
        """The load may answer who waited for it, but what it read must not be cached."""
        guard = start_guard(items(), load_timeout="60s")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            with database.locked():
                lookup = pool.submit(guard.redis().get, "item:5")
                wait_until(lambda: guard.explain("item:5")["in_flight"], PATIENCE, "the load")
                deletion = pool.submit(call, guard, "DELETE", "item:5", "?row=delete")
                wait_until(lambda: len(waiting_for_the_lock(database)) == 2, PATIENCE, "both")
            assert deletion.result(PATIENCE) == 204
            assert lookup.result(PATIENCE) in (None, b"payload 5")
        assert cache.client().exists("item:5") == 0
        assert guard.redis().get("item:5") is None

    def test_when_the_database_cannot_be_asked(self, start_guard, database, cache, items):
        guard = start_guard(items())
        database.server.stop()
        assert call(guard, "DELETE", "item:5") == 503
        assert call(guard, "DELETE", "item:5", "?row=delete") == 503
        database.server.start()
        wait_until(lambda: call(guard, "DELETE", "item:5") == 409, PATIENCE, "the database")

    def test_is_logged_with_who_and_what(self, start_guard, items):
        guard = start_guard(items())
        guard.control("DELETE", guard.key_path("item:5") + "?row=delete",
                      headers={"From": "ann@example.org"})
        wait_until(lambda: "row=delete" in guard.log(), PATIENCE, guard.log)
        line = next(line for line in guard.log().splitlines() if "row=delete" in line)
        assert "DELETE" in line and "127.0.0.1" in line and "ann@example.org" in line
        assert "204" in line


def waiting_for_the_lock(database):
    return database.query("""
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'guard' AND wait_event_type = 'Lock'""")


class TestRebuild:
    def test_brings_new_rows_in_and_lets_old_ones_go(self, start_guard, database, items):
        guard = start_guard(items())
        database.execute("INSERT INTO items VALUES (500, 'new'); DELETE FROM items WHERE id = 5")
        response = guard.control("POST", "/v1/rebuild")
        assert response.status_code == 202 and response.json() == {"generation": 2}
        wait_until(lambda: guard.generation() == 2, PATIENCE, "the new generation")
        assert guard.redis().mget("item:500", "item:5") == [b"new", None]
        assert guard.explain("item:5")["verdict"] == "absent"
        assert guard.keyspace()["rows"] == 100

    def test_many_in_a_row_end_with_a_generation_that_has_everything(
            self, start_guard, database, items):
        guard = start_guard(items())
        for n in range(500, 520):
            database.execute("INSERT INTO items VALUES (%s, 'new')", (n,))
            number = guard.control("POST", "/v1/rebuild").json()["generation"]
        wait_until(lambda: guard.generation() >= number, PATIENCE, f"generation {number}")
        assert guard.redis().mget([f"item:{n}" for n in range(500, 520)]) == [b"new"] * 20


class TestHttp:
    @pytest.mark.parametrize("method, path, status", [
        ("GET", "/nothing", 404), ("GET", "/v1/keys", 404), ("GET", "/v1/keys/plain", 404),
        ("PUT", "/v1/keys/plain", 404), ("DELETE", "/v1/keys/plain", 404),
        ("POST", "/healthz", 405), ("DELETE", "/v1/status", 405), ("GET", "/v1/rebuild", 405),
        ("POST", "/v1/keys/item:1", 405), ("PATCH", "/metrics", 405),
        ("DELETE", "/v1/keys/item:1?block=soon", 400), ("DELETE", "/v1/keys/item:1?row=maybe", 400),
        ("DELETE", "/v1/keys/item:1?block=", 400), ("DELETE", "/v1/keys/item:1?block=-5m", 400),
        ("GET", "/v1/keys/item:" + "9" * 40_000, 414),
        ("HEAD", "/healthz", 200), ("HEAD", "/v1/status", 200), ("GET", "/", 200),
    ], ids=lambda value: str(value)[:40])
    def test_status_codes(self, start_guard, database, items, method, path, status):
        guard = start_guard(items())
        response = guard.control(method, path)
        assert response.status_code == status
        if status >= 400:
            assert response.json()["error"]
        if status == 405:
            assert response.headers["Allow"]
        assert database.value("SELECT count(*) FROM items") == 100

    def test_a_bad_escape_in_a_target_is_refused(self, start_guard, items):
        guard = start_guard(items())
        with socket.create_connection(("127.0.0.1", guard.control_port), PATIENCE) as connection:
            connection.sendall(b"GET /v1/keys/%zz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.makefile("rb").readline().split()[1] == b"400"

    def test_a_large_body_is_refused(self, start_guard, items):
        guard = start_guard(items())
        response = guard.control("PUT", guard.key_path("item:500"), data=b"x" * 10_000_000)
        assert response.status_code == 413
        assert guard.is_ready()

    def test_a_token_is_asked_for(self, start_guard, items):
        guard = start_guard(items(), control_token="sesame")
        assert guard.status()["keyspaces"]
        for header in ("", "Bearer wrong", "Bearer", "Basic c2VzYW1l", "Bearer sesame2", "sesame"):
            for method, path in (("GET", "/v1/status"), ("GET", "/metrics"),
                                 ("DELETE", "/v1/keys/item:1"), ("POST", "/v1/rebuild")):
                response = guard.control(method, path, headers={"Authorization": header})
                assert response.status_code == 401, (header, path)

    def test_a_connection_persists_and_requests_may_be_pipelined(self, start_guard, items):
        guard = start_guard(items())
        asked = [MISSING, "item:1", "item:2", "item:3"]
        with socket.create_connection(("127.0.0.1", guard.control_port), PATIENCE) as connection:
            for _ in range(3):
                connection.sendall(b"".join(
                    b"GET /v1/keys/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % key.encode()
                    for key in asked))
                stream = connection.makefile("rb")
                assert [read_response(stream)["key"] for _ in asked] == asked

    def test_a_slow_call_holds_up_no_other(self, start_guard, database, items):
        guard = start_guard(items(), load_timeout="60s")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            with database.locked():
                slow = pool.submit(call, guard, "DELETE", "item:5")
                wait_until(lambda: waiting_for_the_lock(database), PATIENCE, "the call")
                assert guard.is_alive() and guard.status()["keyspaces"]
                assert guard.redis().get(MISSING) is None
            assert slow.result(PATIENCE) == 409


def read_response(stream):
    assert stream.readline().split()[1] == b"200"
    length = 0
    while (line := stream.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(stream.read(length))


class TestCtl:
    @pytest.fixture
    def guard(self, start_guard, items):
        return start_guard(items(), control_token="sesame")

    def ctl(self, guard, *words):
        return run_nestguard("ctl", "-c", guard.file, *words)

    def test_asking(self, guard):
        assert self.ctl(guard, "health")[0] == 0
        assert self.ctl(guard, "ready")[0] == 0
        status, said = self.ctl(guard, "status")
        assert status == 0 and json.loads(said)["keyspaces"][0]["name"] == "items"
        status, said = self.ctl(guard, "metrics")
        assert status == 0 and 'nestguard_rejected_total{keyspace="items"} 0' in said
        status, said = self.ctl(guard, "explain", MISSING)
        assert status == 0 and json.loads(said)["verdict"] == "absent"
        status, said = self.ctl(guard, "explain", "plain")
        assert status == 0 and "not guarded" in json.loads(said)["error"], "that is an answer, too"

    def test_acting(self, guard, database):
        status, said = self.ctl(guard, "delete", "item:5")
        assert status == 1 and "--row" in said and "--block" in said, "the row is there"
        assert self.ctl(guard, "delete", "item:5", "--row")[0] == 0
        assert database.value("SELECT count(*) FROM items") == 99
        assert self.ctl(guard, "delete", "item:6", "--block", "10m")[0] == 0
        assert guard.redis().mget("item:5", "item:6", "item:7") == [None, None, b"payload 7"]
        database.execute("INSERT INTO items VALUES (500, 'new')")
        assert self.ctl(guard, "admit", "item:500")[0] == 0
        assert guard.redis().get("item:500") == b"new"
        status, said = self.ctl(guard, "rebuild")
        assert status == 0 and json.loads(said) == {"generation": 2}

    def test_the_token_and_the_address_may_be_given_by_hand(self, guard):
        address = f"127.0.0.1:{guard.control_port}"
        assert run_nestguard("ctl", "--control", address, "status")[0] == 1
        assert run_nestguard("ctl", "--control", address, "--token", "wrong", "status")[0] == 1
        assert run_nestguard("ctl", "--control", address, "--token", "sesame", "status")[0] == 0
        assert run_nestguard("ctl", "--control", address, "status",
                             NESTGUARD_TOKEN="sesame")[0] == 0

    def test_a_guard_that_is_not_there_is_named(self, guard):
        guard.stop()
        status, said = self.ctl(guard, "status")
        assert status == 1 and str(guard.control_port) in said

    def test_only_the_client_has_the_libraries_of_one(self, tmp_path):
        def needed(program):
            return subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout

        assert "libcurl" not in needed(NESTGUARD)
        assert "libcurl" in needed(f"{NESTGUARD}-ctl")
        alone = shutil.copy(NESTGUARD, tmp_path)
        done = subprocess.run([alone, "ctl", "ready"], env={"PATH": str(tmp_path)}, check=False,
                              capture_output=True, text=True)
        assert done.returncode == 1 and "nestguard-ctl" in done.stderr

    def test_wrong_usage(self, guard):
        for words in ([], ["nosuch"], ["explain"], ["explain", "a", "b"], ["status", "--what"]):
            assert self.ctl(guard, *words)[0] == 2, words

    def test_who_forgets_its_word_is_told(self):
        listed = re.findall(r"^  ([a-z]+)\b", run_nestguard("ctl", "--help")[1], re.MULTILINE)
        assert "status" in listed and "config" in listed, listed
        for word in listed:
            status, said = run_nestguard(word, "-c", "nestguard.yaml")
            assert status == 2 and f"say: nestguard ctl {word}," in said, said
            assert said.count("\n") == 1, "no list stands between him and it"
        assert "nestguard ctl nosuch" not in run_nestguard("nosuch")[1]


def test_the_control_port_may_be_a_unix_socket(start_guard, items, tmp_path):
    path = tmp_path / "control.sock"
    guard = start_guard(items(), ready=None, control=f"unix:{path}")
    wait_until(lambda: run_nestguard("ctl", "--control", f"unix:{path}", "guarding")[0] == 0,
               PATIENCE, guard.log)
    assert guard.redis().mget("item:1", MISSING) == [b"payload 1", None]


def test_without_a_control_port_the_guard_works(start_guard, items):
    guard = start_guard(items(), ready=None, control=None)

    def guards():
        try:
            return guard.redis().mget("item:1", MISSING) == [b"payload 1", None]
        except redis.ConnectionError:
            return False

    wait_until(guards, PATIENCE, guard.log)
