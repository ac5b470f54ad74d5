"""What a lookup may be answered, by what was committed when: the model of test_follow_random.py.

    versions of a key    v0 ────▶ v1 ────────▶ v2        a change is somewhere between `begun`
    its changes             [begun, done]  [begun, done]  (COMMIT is sent) and `done` (it returned)

A reply to a request that lasted from `asked` to `answered` may be a version that was the row at any
moment of that time. What the cache holds may be older: up to the last change that the guard
reported as followed and purged. Nil may be older by `slack`, which is nothing where commits wait
for the guard.
"""
import bisect
import threading
import time

NEVER = float("inf")


class Version:
    __slots__ = ("value", "begun", "done")

    def __init__(self, value, begun, done=NEVER):
        self.value, self.begun, self.done = value, begun, done


class Histories:
    def __init__(self, slack):
        self.slack = slack
        self.lock = threading.Lock()
        self.versions = {}     # key: its versions; the first is of before the beginning
        self.purged_until = 0  # changes done by then are followed, and their keys purged
        self.gaps = []         # [from, to]: changes done in it were followed by no guard

    def add_key(self, key, value=None):
        self.versions[key] = [Version(value, 0, 0)]

    def value(self, key):
        """Now; for the one writer of the key."""
        return self.versions[key][-1].value

    # changes: begin(), then commit() or undo()

    def begin(self, values):
        with self.lock:
            now = time.monotonic()
            for key, value in values.items():
                self.versions[key].append(Version(value, now))

    def commit(self, values):
        with self.lock:
            now = time.monotonic()
            for key in values:
                self.versions[key][-1].done = now
                self._shorten(self.versions[key])

    def undo(self, values):
        with self.lock:
            for key in values:
                self.versions[key].pop()

    def _shorten(self, versions):
        """Forgets what no reply that is still to come may be."""
        while len(versions) > 50:
            del versions[0]

    # the guard

    def confirm(self, until):
        with self.lock:
            self.purged_until = max(self.purged_until, until)

    def open_gap(self):
        """The guard is about to die: what it has not confirmed, nobody purges."""
        with self.lock:
            self.gaps.append([self.purged_until, NEVER])

    def close_gap(self):
        with self.lock:
            self.gaps[-1][1] = time.monotonic()

    def now(self):
        """To be asked before a request: (the time, what is purged)."""
        with self.lock:
            return time.monotonic(), self.purged_until

    # replies

    def _purges(self, version, purged_until):
        if version.done > purged_until:
            return False
        place = bisect.bisect(self.gaps, [version.done, NEVER])
        return not any(begin < version.done <= end for begin, end in self.gaps[:place])

    def allowed(self, key, asked, answered):
        """The values (None for nil) that the reply may be."""
        moment, purged_until = asked
        with self.lock:
            versions = self.versions[key]
            values, current, cached = set(), True, True
            for version in reversed(versions):  # current: it may have been the row meanwhile
                if version.begun <= answered:
                    if version.value is None and current:
                        values.add(None)
                    elif version.value is not None and cached:
                        values.add(version.value)
                if version.done < moment - self.slack:
                    current = False
                if self._purges(version, min(purged_until, moment)):
                    cached = False
            return values

    def explain(self, key):
        with self.lock:
            lines = [f"  {version.value!r}: {version.begun:.4f} to {version.done:.4f}"
                     for version in self.versions[key][-8:]]
            return "\n".join([f"{key}, purged until {self.purged_until:.4f}, gaps "
                              f"{self.gaps[-4:]}, versions:", *lines])
