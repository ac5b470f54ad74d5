"""All kinds of hostile clients at once, in bouts, beside the model of test_random.py: no reply is wrong,
none is an error, the guard guards, and its memory is after the last bout what it was after the first
ones.

    NESTGUARD_SECONDS  how long, 60 unless it says otherwise; by hand an hour, of a sanitized build:
                       NESTGUARD_SECONDS=3600 NESTGUARD=build/nestguard python3 -m pytest -s tests/e2e/test_soak.py
    NESTGUARD_SEED     repeats the choices of a run, not its timing
"""
import functools
import json
import os
import re
import subprocess
import sys
import threading
import time

import hostile
from servers import PATIENCE
from test_random import KEYS, SEED, Run, check_the_end
from waiting import wait_until

SECONDS = float(os.environ.get("NESTGUARD_SECONDS", 60))
BOUT = 12  # seconds
WARM = 2   # bouts at least, a tenth of a long run: after these it has all the memory that it needs
MEGABYTE = 1 << 20


class Bouts(threading.Thread):
    """One after the other; between two, when nobody has anything under way, memory is weighed."""

    def __init__(self, guard, seed):
        super().__init__(daemon=True)
        self.guard, self.seed = guard, seed
        self.end = time.monotonic() + SECONDS
        self.weights, self.rounds, self.problem = [], [], None
        self.refused_calls = 0

    def bout(self, number):
        done = subprocess.run(
            [sys.executable, *hostile.command_against(self.guard, "--rows", KEYS, "--seconds", BOUT,
                                                      "--seed", self.seed + number)],
            capture_output=True, text=True, check=False, timeout=BOUT + 6 * PATIENCE)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        self.rounds.append(said["rounds"])
        self.refused_calls += said["refused_calls"]

    def weigh(self):
        wait_until(lambda: self.guard.total("nestguard_client_memory_bytes") < MEGABYTE, 2 * PATIENCE,
                   "the memory of clients who have gone")
        self.weights.append(self.guard.resident_bytes())

    def run(self):
        try:
            while time.monotonic() < self.end or len(self.weights) < WARM + 3:
                self.bout(len(self.weights))
                self.weigh()
        except BaseException as problem:  # pylint: disable=broad-except
            self.problem = problem


def check_flat(weights):
    """Not more than a warm guard needs, and a share for what an allocator cannot give back. It gives back
    some ticks after the last client has gone, or at the next occasion: hence two bouts."""
    told = ", ".join(f"{weight / MEGABYTE:.0f}" for weight in weights)
    print(f"MB after each bout: {told}")
    ends = max(WARM, len(weights) // 10)
    warm = max(weights[:ends])
    assert min(weights[-ends:]) < 1.2 * warm + 32 * MEGABYTE, told


def size_of_log(guard):
    """Bytes, without the model's own calls and rebuilds: a fast machine makes more of them. It knows the
    token, and nothing that it asks for is refused."""
    return sum(len(line) for line in guard.log_path.read_text().splitlines()
               if not re.search(r" control: \S+ \d{3} [A-Z]+ /| generation ", line))


def test_hostile_clients_wear_nothing_out(start_guard, database, cache, tmp_path):
    print(f"NESTGUARD_SEED={SEED} NESTGUARD_SECONDS={SECONDS}")
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, payload text)")
    hostile.prepare(cache.client(), large=4 * MEGABYTE)
    items = {"name": "items", "key": "item:{id}", "table": "items", "value": "payload", "ttl": "1h"}
    guard = hostile.target(tmp_path, functools.partial(start_guard, items), hint_ttl="1h",
                           load_timeout="60s", max_client_memory="256mb")
    run = Run(guard, database, SEED)
    guard.rebuild()
    bouts, began = Bouts(guard, SEED), time.monotonic()
    bouts.start()
    steps = 0
    while bouts.is_alive():
        run.step()
        steps += 1
    assert bouts.problem is None, bouts.problem
    check_the_end(run)
    assert steps > 100
    for kind in hostile.KINDS:
        assert all(rounds[kind] for rounds in bouts.rounds), f"{kind}: {bouts.rounds}"
    print(f"{steps} steps; rounds: " + ", ".join(
        f"{kind} {sum(rounds[kind] for rounds in bouts.rounds)}" for kind in hostile.KINDS))
    assert bouts.refused_calls and guard.total("nestguard_tls_failures_total")
    check_flat(bouts.weights)
    assert guard.log_path.read_text().count("no valid token") < time.monotonic() - began + 2, "one a second"
    assert size_of_log(guard) < 2000 * (SECONDS + 60), "it is a log, not a victim"
    cache.client().acl_deluser("weak")
