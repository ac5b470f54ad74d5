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
from following import follow  # noqa: F401, a fixture
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
def guard(follow, items):
    return follow(items(publish={"key": "published"}))


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


def test_promtool_finds_nothing_wrong_with_the_metrics(guard):
    ask(guard)
    done = subprocess.run(["promtool", "check", "metrics"], check=False, capture_output=True,
                          input=guard.control("GET", "/metrics").content)
    assert (done.returncode, done.stderr.decode()) == (0, "")
