"""What happened to a fleet of caches while a random run went on: when, to which slots, and what
clients saw of it.

    begun ──── no primary ────▶ led ──────▶ ended      in between writes may be refused, and what
      └─ the fault               └─ again             was acknowledged may be forgotten

Outside of all of them every write succeeds, and is still there when it is read.
"""
import statistics
import threading
import time

from histories import NEVER

PAST = 60  # seconds after which nobody asks any more


class Trouble:
    """`slots`: None is all. `refused`, `failed`: first and last of writes and of lookups."""

    def __init__(self, kind, slots):
        self.kind, self.slots = kind, slots
        self.begun, self.led, self.ended = time.monotonic(), None, NEVER
        self.refused, self.failed = [], []

    def concerns(self, slots, asked, answered):
        return self.begun <= answered and asked <= self.ended and (
            self.slots is None or slots is None or not self.slots.isdisjoint(slots))

    def note(self, is_write, asked, answered):
        times = self.refused if is_write else self.failed
        times[:] = [min([asked, *times]), max([answered, *times])]

    @staticmethod
    def length(times):
        return times[1] - times[0] if times else 0


class Troubles:
    def __init__(self):
        self.lock = threading.Lock()
        self.recent, self.over = [], []
        self.stalls = []  # [from, to]: the machine had no time for us
        self.moves = {}  # slot: [from, to], the last time that it went to another node

    def begin(self, kind, slots):
        with self.lock:
            trouble = Trouble(kind, slots)
            self.recent = [each for each in self.recent if each.ended > trouble.begun - PAST]
            self.recent.append(trouble)
            return trouble

    def end(self, trouble):
        with self.lock:
            trouble.ended = time.monotonic()
            self.over.append(trouble)

    def begin_move(self, slot):
        with self.lock:
            self.moves[slot] = [time.monotonic(), NEVER]

    def end_move(self, slot):
        with self.lock:
            self.moves[slot][1] = time.monotonic()

    def stalled(self, begun):
        """Up to now; what waits for its turn may still be late a moment after that."""
        with self.lock:
            self.stalls = self.stalls[-20:] + [[begun, time.monotonic() + 2]]

    def was_moving(self, slots, asked, answered):
        with self.lock:
            return any(begun <= answered and asked <= ended + 1 for begun, ended in
                       (self.moves[slot] for slot in slots if slot in self.moves))

    def have_excused(self, is_write, slots, asked, answered):
        """Whether what was asked of these slots (None: of some) may have failed."""
        with self.lock:
            found = [each for each in self.recent if each.concerns(slots, asked, answered)]
            for trouble in found:
                trouble.note(is_write, asked, answered)
            return bool(found) or any(
                begun <= answered and asked <= ended for begun, ended in self.stalls)

    def may_have_lost(self, slots, since, answered):
        with self.lock:
            return any(each.concerns(slots, since, answered) for each in self.recent) or any(
                begun <= answered and since <= ended for begun, ended in self.stalls)

    def are_quiet(self, trouble, seconds):
        """Nothing was refused for so long."""
        with self.lock:
            last = max(trouble.refused + trouble.failed + [trouble.begun])
            return time.monotonic() - last > seconds

    def describe(self):
        with self.lock:
            return (f"moves {self.moves}, troubles"
                    f" {[(each.kind, each.begun, each.ended) for each in self.recent]}")

    # the table

    def table(self):
        head = ["fault", "times", "no primary", "", "writes refused", "", "with a primary", "",
                "lookups refused"]
        lines = [head, ["", "", *["p50", "max"] * 3, "max"]]
        for kind in sorted({each.kind for each in self.over}):
            lines.append(self.row(kind, [each for each in self.over if each.kind == kind]))
        return "\n".join("  ".join(f"{cell:>14}" for cell in line).rstrip() for line in lines)

    @staticmethod
    def row(kind, troubles):
        headless = [each.led - each.begun for each in troubles if each.led]
        refused = [each.length(each.refused) for each in troubles]
        late = [max(0, each.refused[1] - max(each.led, each.refused[0])) if each.refused else 0
                for each in troubles if each.led]
        lookups = max(each.length(each.failed) for each in troubles)
        cells = [cell for times in (headless, refused, late)
                 for cell in (statistics.median(times or [0]), max(times, default=0))]
        return [kind, str(len(troubles)), *(f"{cell:.2f} s" for cell in [*cells, lookups])]
