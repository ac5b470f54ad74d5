"""Runs `nestguard check` and takes apart what it prints."""
import json
import os
import re
import subprocess

import pytest

import servers

GOOD = """
    CREATE TABLE items (id bigint PRIMARY KEY, payload text NOT NULL, kind text NOT NULL,
                        deleted_at timestamptz);
"""


class Report:
    """What check printed: findings as (place, level, text, remedy), those that SQL mends last, and
    the closing line."""

    def __init__(self, process):
        self.status = process.returncode
        self.text = process.stdout
        self.lines = process.stdout.splitlines()
        self.last = self.lines[-1] if self.lines else ""
        self.findings = []
        self.notes = []
        for line in self.lines[:-1]:
            found = re.match(r"(?:-- )?(.+?): (error|warning): (.*)", line)
            if line.startswith("    ") and self.notes:
                continue  # the remedy of a note; notes come last
            if line.startswith("    "):
                place, level, text, remedy = self.findings[-1]
                remedy = line.strip() if remedy is None else f"{remedy}\n{line.strip()}"
                self.findings[-1] = (place, level, text, remedy)
            elif " note: " in line:
                self.notes.append(line.split(" note: ", 1)[1])
            elif found:
                self.findings.append((*found.groups(), None))

    def levels(self):
        return [finding[1] for finding in self.findings]

    def one(self, level):
        """Text and remedy of the only finding, which must be of this level."""
        assert self.levels() == [level], self.text
        return self.findings[0][2:]


def run_check(file, *options):
    process = subprocess.run([servers.NESTGUARD, "check", "-c", str(file), *options],
                             env={**os.environ, **servers.SANITIZERS}, capture_output=True,
                             text=True, timeout=60, check=False)
    assert process.stderr == "" and process.returncode in (0, 1), process.stderr
    return process


@pytest.fixture
def check(database, cache, tmp_path):
    """check(keyspace, ..., setting=value) runs the command on the test's database and cache; a
    setting that is None is left out of the file."""

    def run(*keyspaces, **settings):
        file = tmp_path / "nestguard.yaml"
        config = {"listen": ["127.0.0.1:6380"], "control": "127.0.0.1:6390", "sync": "none",
                  "cache": cache.url, "database": database.url, "keyspaces": list(keyspaces),
                  **settings}
        config = {name: value for name, value in config.items() if value is not None}
        file.write_text(json.dumps(config, indent=2, ensure_ascii=False))
        return Report(run_check(file))

    return run


def keyspace(**settings):
    return {"name": "items", "key": "item:{id}", "table": "items", "value": "payload", **settings}


def assert_in_order(report):
    assert report.status == 0 and report.findings == [], report.text
    assert report.last.startswith("everything is in order: "), report.text
