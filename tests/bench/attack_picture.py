"""Draws what tests/bench/attack found: three panels of bars, one cluster a flood and one bar a
system. Plain SVG, light enough for a page that is read in the dark, too."""
import math
from xml.sax.saxutils import escape

COLOURS = {"nestguard": "#1a7f5a", "cached nulls": "#e0a030", "unprotected": "#c8443c"}
FLOOD_NAMES = {"0": "no flood", "100k": "100,000/s", "max": "as many as go"}
PANEL_WIDTH, PANEL_HEIGHT, GAP, TOP, LEFT = 290, 190, 40, 92, 30
BAR, CLUSTER = 26, 92
WIDTH = LEFT + 3 * PANEL_WIDTH + 2 * GAP + 14
HEIGHT = TOP + PANEL_HEIGHT + 64


def short(value):
    """Two digits, or three before the point: 0.4, 12, 950, 1.2k, 35k, 125k, 1.3M."""
    limit, unit = next(((limit, unit) for limit, unit in ((1e6, "M"), (1e3, "k"))
                        if value >= 0.9995 * limit), (1, ""))
    value /= limit
    return (f"{value:.0f}" if value >= 99.5 else f"{value:.2g}") + unit


def milliseconds(line):
    return line["p99_us"] / 1000


def mebibytes_a_minute(line):
    return max(0, line["cache_bytes_gained"]) / 2**20 / line["seconds"] * 60


PANELS = (
    ("Latency of lookups of existing rows", "99th percentile, ms, log scale", milliseconds, True),
    ("Queries that reach PostgreSQL", "a second, log scale",
     lambda line: line["queries_per_second"], True),
    ("Growth of the cache", "MiB a minute", mebibytes_a_minute, False),
)


def text(x, y, words, size=12, anchor="start", colour="#333", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
            f' fill="{colour}" font-weight="{weight}">{escape(words)}</text>')


def rule(x, y, colour):
    return (f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + PANEL_WIDTH:.1f}" y2="{y:.1f}"'
            f' stroke="{colour}" stroke-width="1"/>')


class Scale:
    """Values to heights. A logarithmic one begins at the decade below the least value."""

    def __init__(self, values, is_log):
        positive = [value for value in values if value > 0] or [1]
        self.is_log = is_log
        self.low = math.floor(math.log10(min(positive))) if is_log else 0
        top = math.log10(max(positive)) if is_log else max(positive)
        self.high = max(math.ceil(top), self.low + 1) if is_log else top * 1.08

    def height(self, value):
        if self.is_log:
            value = math.log10(value) if value > 0 else self.low
        return max(0, (value - self.low) / (self.high - self.low)) * PANEL_HEIGHT

    def ticks(self):
        if self.is_log:
            return [10.0 ** power for power in range(self.low, self.high + 1)]
        step = 10 ** math.floor(math.log10(self.high))
        step = next(step * part for part in (1, 0.5, 0.25, 0.2) if self.high / (step * part) >= 3)
        return [step * i for i in range(int(self.high / step) + 1)]


def bars(x, base, scale, flood, lines, take):
    """The bars of one flood, with their values, around x."""
    for i, system in enumerate(COLOURS):
        value = next(take(line) for line in lines
                     if line["part"] == system and line["flood"] == flood)
        left, height = x + (i - 1.5) * (BAR + 2) + 1, max(1.5, scale.height(value))
        yield (f'<rect x="{left:.1f}" y="{base - height:.1f}" width="{BAR}" height="{height:.1f}"'
               f' fill="{COLOURS[system]}"/>')
        yield text(left + BAR / 2, base - height - 4, short(value), 10, "middle")


def panel(x, lines, title, unit, take, is_log):
    base = TOP + PANEL_HEIGHT
    scale = Scale([take(line) for line in lines], is_log)
    yield text(x, TOP - 32, title, 13, weight="bold")
    yield text(x, TOP - 17, unit, 11, colour="#666")
    for tick in scale.ticks():
        y = base - scale.height(tick)
        yield rule(x, y, "#e4e4e4")
        yield text(x - 4, y + 3, short(tick), 9, "end", "#888")
    for i, (flood, name) in enumerate(FLOOD_NAMES.items()):
        middle = x + CLUSTER * (i + 0.5) + 6
        yield from bars(middle, base, scale, flood, lines, take)
        yield text(middle, base + 16, name, 11, "middle")
    yield rule(x, base, "#888")


def legend():
    x = LEFT
    for system, colour in COLOURS.items():
        yield f'<rect x="{x}" y="14" width="12" height="12" fill="{colour}"/>'
        yield text(x + 17, 24, system, 12)
        x += 40 + 7 * len(system)


def draw(lines):
    """The picture of a whole run, as text."""
    parts = list(legend())
    for i, about in enumerate(PANELS):
        parts += panel(LEFT + i * (PANEL_WIDTH + GAP), lines, *about)
    rate = lines[0]["rate"]
    parts.append(text(LEFT, HEIGHT - 14, "A flood of random keys without a row, beside"
                      f" {rate:,} lookups a second of rows that exist; nine in ten are cached."
                      " tests/bench/attack", 11, colour="#666"))
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
            f' width="{WIDTH}" height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n{body}\n</svg>\n')
