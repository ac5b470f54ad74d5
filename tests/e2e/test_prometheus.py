"""The alert rules and the dashboard, by a real Prometheus: each expression returns something, and alerts fire
when their cause is made and end when it ends."""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
import redis
import requests

import servers
from following import publish
from servers import PATIENCE, ROOT
from waiting import wait_until

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(
    not shutil.which("prometheus"),
    reason="prometheus is not installed: deploy/install-packages prometheus")

FOLDER = pathlib.Path(ROOT, "deploy/prometheus")
RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
NAMES = [rule["alert"] for rule in RULES["groups"][0]["rules"]]
WINDOW = "5s"


class Prometheus(servers.Server):
    """Scrapes a guard five times a second, and has the rules without their patience."""
    name = "prometheus"
    stop_signal = signal.SIGTERM

    def __init__(self, guard):
        super().__init__()
        self.file = self.directory / "prometheus.yaml"
        rules = json.loads(re.sub(r"\[\d+[mh]\]", f"[{WINDOW}]", json.dumps(RULES)))
        for rule in rules["groups"][0]["rules"]:
            rule.pop("for", None)
        (self.directory / "rules.yaml").write_text(json.dumps(rules))
        self.file.write_text(json.dumps({
            "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms",
                       "evaluation_interval": "200ms"},
            "rule_files": [str(self.directory / "rules.yaml")],
            "scrape_configs": [{"job_name": "nestguard", "static_configs": [
                {"targets": [f"127.0.0.1:{guard.control_port}"]}]}]}))

    def command(self):
        return ["setpriv", "--pdeathsig", self.death_signal, "prometheus",
                f"--config.file={self.file}", f"--storage.tsdb.path={self.directory}/data",
                f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error"]

    def get(self, path, **query):
        return requests.get(f"http://127.0.0.1:{self.port}{path}", params=query, timeout=PATIENCE)

    def is_ready(self):
        try:
            return self.get("/-/ready").status_code == 200
        except requests.ConnectionError:
            return False

    def query(self, expression):
        answer = self.get("/api/v1/query", query=expression).json()
        assert answer["status"] == "success", answer
        return answer["data"]["result"]

    def firing(self):
        return {alert["labels"]["alertname"] for alert in
                self.get("/api/v1/alerts").json()["data"]["alerts"] if alert["state"] == "firing"}

    def wait_firing(self, name, fires=True):
        wait_until(lambda: (name in self.firing()) == fires, PATIENCE,
                   lambda: f"{name} {'to fire' if fires else 'to end'}: {self.firing()}")


@pytest.fixture
def guard(start_guard, database, items, tmp_path):
    """Of rows, published, and of a list."""
    rows = items(publish={"key": "published"})
    publish(database, rows)
    (tmp_path / "keys.txt").write_text("listed:1\nlisted:2\n")
    lists = {"name": "listed", "key": "listed:{id}", "source": f"file:{tmp_path}/keys.txt", "on_miss": "pass"}
    return start_guard(rows, lists, sync="replication", max_lag="2s", max_clients=50, attack_threshold=20,
                       max_hints=10)


@pytest.fixture
def prometheus(guard):
    prometheus = Prometheus(guard).start()
    yield prometheus
    prometheus.remove()


def ask(guard):
    """A hit, a miss and a reject, and an item."""
    guard.redis().bf().exists("items", 1)
    for key in ("item:1", "item:1", f"item:{time.monotonic_ns()}"):
        try:
            guard.redis().get(key)
        except redis.RedisError:
            pass


def has_data(prometheus, expression):
    """A quantile of nothing is no number."""
    return any(series["value"][1] != "NaN" for series in prometheus.query(expression))


def test_the_rules_are_rules(tmp_path):
    subprocess.run(["promtool", "check", "rules", FOLDER / "alerts.yaml"], check=True)


def test_every_expression_of_the_dashboard_returns_data(guard, prometheus):
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    wanted = [target["expr"].replace("$__rate_interval", WINDOW)
              for panel in panels for target in panel.get("targets", [])]
    assert len(wanted) > 20

    def empty():
        guard.redis().delete("item:1")
        ask(guard)
        return [expression for expression in wanted if not has_data(prometheus, expression)]

    wait_until(lambda: not empty(), PATIENCE, lambda: f"data of {empty()}")
    wait_until(lambda: prometheus.firing() == set(), PATIENCE,
               lambda: f"all is well, but {prometheus.firing()}")


def test_every_rule_can_be_evaluated_and_its_metrics_are_there(guard, prometheus):
    def rules():
        [group] = prometheus.get("/api/v1/rules").json()["data"]["groups"]
        return group["rules"]

    wait_until(lambda: all(rule["health"] == "ok" for rule in rules()), PATIENCE, rules)
    assert [rule["name"] for rule in rules()] == NAMES
    for rule in rules():
        for metric in set(re.findall(r"nestguard_\w+", rule["query"])):
            wait_until(lambda metric=metric: prometheus.query(metric), PATIENCE, metric)


def test_alerts_fire_and_end_with_the_database(guard, prometheus, database):
    database.server.stop()
    for name in ("NestguardNotGuarding", "NestguardDatabaseDown", "NestguardBuildFails"):
        prometheus.wait_firing(name)

    def loads_fail():
        ask(guard)
        return "NestguardLoadsFail" in prometheus.firing()

    guard.redis().delete("item:1")
    wait_until(loads_fail, PATIENCE, "failing loads")
    database.server.start()
    guard.wait_guarding()
    for name in ("NestguardNotGuarding", "NestguardDatabaseDown", "NestguardBuildFails",
                 "NestguardLoadsFail"):
        prometheus.wait_firing(name, False)


def test_slow_loads_fire_and_end(guard, prometheus, database, threads):
    def is_slow():
        guard.redis().delete("item:1")
        with database.locked():
            waits = threads.submit(guard.redis().get, "item:1")
            time.sleep(0.8)  # that is the cause
        waits.result(PATIENCE)
        return "NestguardLoadsSlow" in prometheus.firing()

    wait_until(is_slow, PATIENCE, "slow loads")
    prometheus.wait_firing("NestguardLoadsSlow", False)


def test_alerts_fire_and_end_with_the_cache(guard, prometheus, cache):
    cache.kill()
    prometheus.wait_firing("NestguardCacheDown")
    cache.start()
    prometheus.wait_firing("NestguardCacheDown", False)


def test_a_lease_that_is_not_held_fires(guard, prometheus, cache, database):
    client = cache.client()
    wait_until(lambda: client.exists("published:lease"), PATIENCE, guard.log)
    prometheus.wait_firing("NestguardNoLease", False)
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1")
    database.execute("INSERT INTO items VALUES (1000, 'new')")
    prometheus.wait_firing("NestguardNoLease")
    client.config_set("maxmemory", "0")
    prometheus.wait_firing("NestguardNoLease", False)


def test_a_guard_that_hangs_is_down(guard, prometheus):
    guard.pause()
    prometheus.wait_firing("NestguardDown")
    guard.resume()
    prometheus.wait_firing("NestguardDown", False)


def test_a_build_that_waits_fires(guard, prometheus, database):
    with database.locked():
        guard.control("POST", "/v1/rebuild")
        prometheus.wait_firing("NestguardBuildWaits")
    prometheus.wait_firing("NestguardBuildWaits", False)


def test_a_list_that_is_refused_fires(guard, prometheus, tmp_path):
    good = tmp_path / "keys.txt"
    text = good.read_text()
    good.write_text("no key of that keyspace\n")
    prometheus.wait_firing("NestguardSourceRefused")
    assert "keys.txt" in guard.keyspace("listed")["source_refused"]
    good.write_text(text)
    prometheus.wait_firing("NestguardSourceRefused", False)


def test_a_file_that_is_refused_fires(guard, prometheus):
    good = guard.file.read_text()
    guard.configure(good + "nonsense\n")
    guard.signal(signal.SIGHUP)
    prometheus.wait_firing("NestguardReloadRefused")
    guard.configure(good)
    guard.signal(signal.SIGHUP)
    prometheus.wait_firing("NestguardReloadRefused", False)


def test_writes_that_are_refused_fire(guard, prometheus):
    """And those that are not refused do not."""
    guard.redis().set("item:5000", "v")
    wait_until(lambda: prometheus.query("nestguard_hints_refused_total"), PATIENCE, "the metric")
    with pytest.raises(redis.ResponseError, match="max_hints"):
        guard.redis().mset({f"item:{n}": "v" for n in range(6000, 6100)})
    prometheus.wait_firing("NestguardHintsRefused")
    assert "max_hints (10)" in guard.log() and "a write of 127.0.0.1 was refused" in guard.log()
    assert guard.metric("nestguard_hints_refused_total") == 1


def test_an_attack_fires_and_the_log_names_who_it_is(guard, prometheus):
    """Not who was rejected before it, too seldom for one."""
    before = guard.redis(client_name="shop-web")
    for n in range(10):
        before.get(f"item:{7000 + n}")
    wait_until(lambda: "shop-web" in guard.control("GET", "/v1/attack").text, PATIENCE, "its account")
    attacker, number = guard.redis(client_name="the-one"), 0

    def is_named():
        nonlocal number
        for _ in range(100):
            attacker.get(f"item:{10000 + number}")
            number += 1
        return "the most of them" in guard.log(1000)

    wait_until(is_named, PATIENCE, guard.log)
    assert 'name "the-one"' in guard.log(1000) and "shop-web" not in guard.log(1000)
    prometheus.wait_firing("NestguardAttack")
    prometheus.wait_firing("NestguardAttack", False)


def test_promtool_finds_nothing_wrong_with_the_metrics(guard):
    ask(guard)
    done = subprocess.run(["promtool", "check", "metrics"], check=False, capture_output=True,
                          input=guard.control("GET", "/metrics").content)
    assert (done.returncode, done.stderr.decode()) == (0, "")
