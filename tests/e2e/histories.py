"""What a lookup may be answered, by what was committed when: the model of the random histories.

    versions of a key    v0 ────▶ v1 ────────▶ v2        a change is somewhere between `begun`
    its changes             [begun, done]  [begun, done]  (COMMIT is sent) and `done` (it returned)

A reply to a request that lasted from `asked` to `answered` may be a version that was the row at any
moment of that time. What the cache holds may be older: up to the last change that the guard
reported as followed and purged. Nil may be older, too, where commits do not wait for the guard: by
`slack`, the longest that it may be behind, and by no more than it said it was.

A migration makes versions like any other commit. The log does not tell of them, and for a moment
may not tell of others: they are `unlogged`, and the guard is to find out by asking (`probed`). A row
that was there all the time is never denied, whatever half of its transaction the log tells.

Where replicas are read from the cache's word may be older than what was reported as purged, by `stale`:
what had been reported that long before the request is surely gone.

Without a log (`max_age`) nil may be as old as the snapshot that the guard rejects by, and a value as
old as `max_age`.
"""
import collections
import threading
import time

NEVER = float("inf")
REQUEST = 20  # seconds that no request lasts


class Version:
    """`known`: when nil may not stand for it any more, where commits wait for the guard."""
    __slots__ = ("value", "begun", "done", "known", "unlogged")

    def __init__(self, value, begun, done=NEVER):
        self.value, self.begun, self.done, self.known = value, begun, done, done
        self.unlogged = False


class Moment(collections.namedtuple("Moment", "time purged probed followed")):
    """What was so before a request: changes done by `purged` are followed and their keys purged,
    unlogged ones by `probed`; those done by `followed` are in the filter, the guard said."""

    def without(self, forgotten):
        return self._replace(purged=min(self.purged, forgotten.purged),
                             probed=min(self.probed, forgotten.probed))


class Histories:
    """`probing`: how long the guard may take to find out what the log does not tell."""

    def __init__(self, slack, probing, max_age=None, stale=0):
        self.slack, self.probing, self.max_age, self.stale = slack, probing, max_age, stale
        self.reads_replicas = False  # or may have done so until now
        self.lock = threading.Lock()
        self.versions = {}  # key: its versions; the first is of before the beginning
        self.purged = self.probed = self.followed = 0
        self.reports = collections.deque([(0, 0, 0)])  # when, and what these two were
        self.gaps = []      # [from, to, over]: changes committed in it were followed by no guard;
                            # what the cache held of before was gone when it was over
        self.lapses = []    # [moment, from, to]: the cache may be as it was at the moment
        self.unlogged = collections.defaultdict(lambda: [0, 0])  # kind of key: [under way, until]

    def add_key(self, key, value=None):
        self.versions[key] = [Version(value, 0, 0)]

    def value(self, key):
        """The newest; sure only to whoever keeps others from changing the row."""
        return self.versions[key][-1].value

    # changes: begin(), then commit() or undo()

    def begin(self, values, unlogged=False):
        """The versions that are made of the keys, by key."""
        with self.lock:
            now = time.monotonic()
            made = {key: Version(value, now) for key, value in values.items()}
            for key, version in made.items():
                version.unlogged = unlogged
                self.versions[key].append(version)
            return made

    def commit(self, made, grace=0):
        """`grace`: the commit did not return, so nobody may have waited for the guard."""
        with self.lock:
            now = time.monotonic()
            for key, version in made.items():
                under_way, until = self.unlogged[kind_of(key)]
                version.unlogged |= under_way > 0 or until >= version.begun
                late = max(grace, self.probing - self.slack) if version.unlogged else grace
                version.done, version.known = now, now + late
                if len(self.versions[key]) % 100 == 0:
                    self._forget_old(key, now)

    def undo(self, made):
        with self.lock:
            for key, version in made.items():
                self.versions[key].remove(version)

    def _forget_old(self, key, now):
        """What no reply that is still to come may be."""
        versions, past = self.versions[key], now - REQUEST
        moment = self._moment(now)._replace(time=past)
        for lapse, _, _ in self.lapses:
            moment = moment.without(lapse)
        for place in range(len(versions) - 1, 0, -1):
            if versions[place].done < past and self._is_purged(versions[place], moment) and (
                    self._is_known(versions[place], moment)):
                del versions[:place]
                return

    def begin_unlogged(self, kinds):
        """From here on the log may not tell of changes of these kinds of keys, until
        end_unlogged() and for as long as the guard may take to notice."""
        with self.lock:
            for kind in kinds:
                self.unlogged[kind][0] += 1

    def end_unlogged(self, kinds):
        with self.lock:
            for kind in kinds:
                self.unlogged[kind][0] -= 1
                self.unlogged[kind][1] = time.monotonic() + self.probing

    # the guard

    def _report(self):
        now = time.monotonic()
        self.reports.append((now, self.purged, self.probed))
        while len(self.reports) > 1 and self.reports[1][0] <= now - self.stale:
            self.reports.popleft()

    def confirm_purged(self, until):
        with self.lock:
            self.purged = max(self.purged, until)
            self._report()

    def confirm_probed(self, until):
        """Nothing is to be purged, and all is as it was found to be by a question sent then."""
        with self.lock:
            self.probed = max(self.probed, until - self.probing)
            self._report()

    def confirm_followed(self, until):
        with self.lock:
            self.followed = max(self.followed, until)

    def open_gap(self):
        """The guard is about to die: what it has not confirmed, nobody purges."""
        with self.lock:
            self.gaps.append([min(self.purged, self.probed), NEVER, NEVER])

    def close_gap(self):
        with self.lock:
            self.gaps[-1][1] = time.monotonic()

    def forget_gaps(self):
        """No guard runs, and the cache is empty."""
        with self.lock:
            now = time.monotonic()
            self.gaps = [[begin, end, min(over, now)] for begin, end, over in self.gaps
                         if over > now - REQUEST]

    def begin_lapse(self, moment):
        """The cache is about to be as it was not long after the moment."""
        with self.lock:
            self.lapses = [lapse for lapse in self.lapses if lapse[2] > time.monotonic() - REQUEST]
            self.lapses.append([moment, time.monotonic(), NEVER])

    def end_lapse(self):
        """The guard has purged what was forgotten to be."""
        with self.lock:
            self.lapses[-1][2] = time.monotonic()

    def now(self):
        """To be asked before a request."""
        with self.lock:
            return self._moment(time.monotonic())

    def _moment(self, now):
        if self.max_age is not None:
            return Moment(now, now - self.max_age, now - self.max_age, self.followed)
        purged, probed = self.purged, self.probed
        if self.reads_replicas:
            _, purged, probed = next((report for report in reversed(self.reports)
                                      if report[0] <= now - self.stale), self.reports[0])
        return Moment(now, min(purged, now), min(probed, now), self.followed)

    def read_replicas(self):
        """From now on."""
        with self.lock:
            self.reads_replicas = True

    # replies

    def _is_purged(self, version, moment):
        """A commit whose waiting overlaps a gap may have been written to the log within it."""
        return version.done <= (moment.probed if version.unlogged else moment.purged) and not any(
            begin < version.done and version.begun <= end and moment.time <= over
            for begin, end, over in self.gaps)

    def _is_known(self, version, moment):
        return version.known < moment.time - self.slack or version.done < moment.followed

    def allowed(self, key, asked, answered):
        """The values (None for nil) that the reply may be."""
        with self.lock:
            for moment, begin, end in self.lapses:
                if begin <= answered and asked.time <= end + self.stale * self.reads_replicas:
                    asked = asked.without(moment)
            values, nil, cached = set(), True, True
            for version in reversed(self.versions[key]):
                if not nil and not cached:
                    break
                if version.begun <= answered:
                    if nil and version.value is None:
                        values.add(None)
                    if version.value is not None and cached:
                        values.add(version.value)
                nil = nil and not self._is_known(version, asked)
                cached = cached and not self._is_purged(version, asked)
            return values

    def may_be_missing(self, key, asked, answered, slack):
        """Whether the key may have been missing from what is published: by `slack` behind, whatever
        the guard itself knew by then, and whatever the cache has forgotten."""
        with self.lock:
            for version in reversed(self.versions[key]):
                known = version.known < asked.time - slack
                if version.begun <= answered and (version.value is None or (
                        version.unlogged and not known)):
                    return True
                if known:
                    return False
            return True

    def explain(self, key, asked):
        with self.lock:
            lines = [f"  {version.value!r}: {version.begun:.4f} to {version.done:.4f}"
                     + (" unlogged" if version.unlogged else "")
                     for version in self.versions[key][-8:]]
            return "\n".join([f"asked at {asked.time:.4f}, when all to {asked.purged:.4f} was "
                              f"purged, to {asked.probed:.4f} probed, to {asked.followed:.4f} "
                              f"followed; gaps {self.gaps[-4:]}; versions:", *lines])


def kind_of(key):
    return key.split(":")[0]
