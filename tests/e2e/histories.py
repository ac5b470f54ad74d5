"""What a lookup may be answered, by what was committed when: the model of test_follow_random.py.

    versions of a key    v0 ────▶ v1 ────────▶ v2        a change is somewhere between `begun`
    its changes             [begun, done]  [begun, done]  (COMMIT is sent) and `done` (it returned)

A reply to a request that lasted from `asked` to `answered` may be a version that was the row at any
moment of that time. What the cache holds may be older: up to the last change that the guard
reported as followed and purged. Nil may be older, too, where commits do not wait for the guard: by
`slack`, the longest that it may be behind, and by no more than it said it was.
"""
import threading
import time

NEVER = float("inf")
REQUEST = 20  # seconds that no request lasts


class Version:
    """`known`: when nil may not stand for it any more, where commits wait for the guard."""
    __slots__ = ("value", "begun", "done", "known")

    def __init__(self, value, begun, done=NEVER):
        self.value, self.begun, self.done, self.known = value, begun, done, done


class Moment:
    """What was so before a request."""
    __slots__ = ("time", "purged", "followed")

    def __init__(self, now, purged, followed):
        self.time, self.purged, self.followed = now, purged, followed


class Histories:
    def __init__(self, slack):
        self.slack = slack
        self.lock = threading.Lock()
        self.versions = {}  # key: its versions; the first is of before the beginning
        self.purged = 0     # changes done by then are followed, and their keys purged
        self.followed = 0   # changes done by then are in the filter, the guard said
        self.gaps = []      # [from, to]: changes committed in it were followed by no guard

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

    def commit(self, values, grace=0):
        """`grace`: the commit did not return, so nobody may have waited for the guard."""
        with self.lock:
            now = time.monotonic()
            for key in values:
                version = self.versions[key][-1]
                version.done, version.known = now, now + grace
                if len(self.versions[key]) % 100 == 0:
                    self._forget_old(key)

    def _forget_old(self, key):
        """What no reply that is still to come may be."""
        versions, past = self.versions[key], time.monotonic() - REQUEST
        for place in range(len(versions) - 1, 0, -1):
            if versions[place].done < past and self._is_purged(versions[place], self.purged):
                del versions[:place]
                return

    def undo(self, values):
        with self.lock:
            for key in values:
                self.versions[key].pop()

    # the guard

    def confirm_purged(self, until):
        with self.lock:
            self.purged = max(self.purged, until)

    def confirm_followed(self, until):
        with self.lock:
            self.followed = max(self.followed, until)

    def open_gap(self):
        """The guard is about to die: what it has not confirmed, nobody purges."""
        with self.lock:
            self.gaps.append([self.purged, NEVER])

    def close_gap(self):
        with self.lock:
            self.gaps[-1][1] = time.monotonic()

    def now(self):
        """To be asked before a request."""
        with self.lock:
            return Moment(time.monotonic(), self.purged, self.followed)

    # replies

    def _is_purged(self, version, purged):
        """A commit whose waiting overlaps a gap may have been written to the log within it."""
        return version.done <= purged and not any(
            begin < version.done and version.begun <= end for begin, end in self.gaps)

    def _is_known(self, version, moment):
        return version.known < moment.time - self.slack or version.done < moment.followed

    def allowed(self, key, asked, answered):
        """The values (None for nil) that the reply may be."""
        with self.lock:
            values, nil, cached = set(), True, True
            for version in reversed(self.versions[key]):
                if not nil and not cached:
                    break
                if version.begun <= answered:
                    if version.value is None and nil:
                        values.add(None)
                    elif version.value is not None and cached:
                        values.add(version.value)
                nil = nil and not self._is_known(version, asked)
                cached = cached and not self._is_purged(version, min(asked.purged, asked.time))
            return values

    def explain(self, key, asked):
        with self.lock:
            lines = [f"  {version.value!r}: {version.begun:.4f} to {version.done:.4f}"
                     for version in self.versions[key][-8:]]
            return "\n".join([f"asked at {asked.time:.4f}, when all to {asked.purged:.4f} was "
                              f"purged, to {asked.followed:.4f} followed; gaps {self.gaps[-4:]}; "
                              "versions:", *lines])
