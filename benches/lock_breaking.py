"""The arithmetic of lock breaking: what a long loop under a lock gets done, and how late it makes wakeups.

Nothing here runs a program, so that all of it can be tested (test_lock_breaking.py).
"""

import math
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """Of a run: turns of the loop per virtual ms of its sections, those of them that were no
    repetition, and how late the latest wakeup was."""

    turns_per_ms: float
    work_per_ms: float
    max_ns: int
    missed: int
    sections: int

    def is_livelock(self):
        """Less than a hundredth of what the loop runs is new. The rest is what it makes again."""
        return self.work_per_ms < 0.01 * self.turns_per_ms


def figures(run, log):
    """Of those sections that lie in the time of the measurement: the loop also runs before it."""
    begin, end = run["origin_ns"], run["origin_ns"] + run["duration_ns"]
    lines = [[int(word) for word in line.split()] for line in log.splitlines()]
    inside = [line for line in lines if begin <= line[1] and line[2] <= end]
    if not inside:
        raise ValueError("no section lies in the time of the measurement")
    ms = sum(line[2] - line[1] for line in inside) / 1e6
    turns, work = (sum(line[at] for line in inside) / ms for at in (3, 4))
    missed = sum(thread["missed"] for thread in run["threads"])
    return Figures(turns, work, run["summary"]["max_ns"], missed, len(inside))


def every(load):
    """Turns from one look at need_resched to the next; infinity for a loop without one."""
    found = re.fullmatch(r"disturb-loop-[a-z-]+?(?:-every-(\d+))?-\d+m?[su]s?", load)
    return int(found[1] or 100) if found else math.inf


def shown_every(turns):
    return "never" if turns == math.inf else f"{turns:,}"


def shown_work(one):
    """New turns per virtual ms; bold where there is hardly any."""
    return f"**{one.work_per_ms:,.0f}**" if one.is_livelock() else f"{one.work_per_ms:,.0f}"


# Those of the tool's own pictures.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]
FONT = "'Noto Sans','Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif"

# A panel in units of the picture, and the decades of its vertical axis, ns.
WIDTH, HEIGHT, LEFT, TOP = 420, 300, 62, 52
LEAST_NS, MOST_NS = 1e3, 1e8


def text(at, words, more=""):
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" font-size="12" fill="#1f2328"{more}>{words}</text>'


def panel(origin, title, curves, most):
    """Latency over work, a curve a model: `curves` maps it to {every: Figures}."""
    x = lambda work: origin + LEFT + (WIDTH - LEFT - 20) * work / most
    y = lambda ns: TOP + HEIGHT * (1 - math.log(ns / LEAST_NS) / math.log(MOST_NS / LEAST_NS))
    parts = [text((origin + LEFT, TOP - 12), title, ' font-weight="bold"')]
    for decade, name in enumerate(["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"]):
        height = y(LEAST_NS * 10**decade)
        parts.append(f'<path d="M{x(0):.1f} {height:.1f}H{x(most):.1f}" stroke="#d8dce1"/>')
        parts.append(text((x(0) - 6, height + 4), name, ' text-anchor="end"'))
    for share in range(0, 5):
        work = most * share / 4
        parts.append(f'<path d="M{x(work):.1f} {TOP}V{TOP + HEIGHT}" stroke="#eef0f2"/>')
        parts.append(text((x(work), TOP + HEIGHT + 18), f"{work:,.0f}", ' text-anchor="middle"'))
    for at, (model, points) in enumerate(curves.items()):
        colour = COLOURS[at % len(COLOURS)]
        places = [(x(one.work_per_ms), y(one.max_ns), turns) for turns, one in sorted(points.items())]
        line = "L".join(f"{left:.1f} {top:.1f}" for left, top, _ in places)
        parts.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for left, top, turns in places:
            what = f"<title>{model}, N {shown_every(turns)}</title>"
            parts.append(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3.5" fill="{colour}">{what}</circle>')
    return parts + labels(places)


def labels(places):
    """Writes N beside the points of a curve, from the latest wakeup on, as far as there is room."""
    parts, last = [], -math.inf
    for left, top, turns in sorted(places, key=lambda place: place[1]):
        if top - last >= 13:
            name = "never" if turns == math.inf else f"N {shown_every(turns)}"
            parts.append(text((left + 7, top + 4), name, ' fill-opacity="0.8"'))
            last = top
    return parts


def picture(panels):
    """Panels side by side as an SVG; `panels` are (title, curves)."""
    most = max(one.work_per_ms for _, curves in panels for points in curves.values() for one in points.values())
    most = math.ceil(most / 4_000) * 4_000
    width, height = WIDTH * len(panels) + 20, TOP + HEIGHT + 76
    title = "Latest wakeup over what the loop gets done, by how often it looks whether to break its lock"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{title}" font-family="{FONT}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text((12, 20), title),
    ]
    for at, (name, curves) in enumerate(panels):
        parts += panel(at * WIDTH, name, curves, most)
    parts.append(text((LEFT, TOP + HEIGHT + 40), "across: turns of work per virtual ms of the loop; up: virtual time"))
    for at, model in enumerate(panels[0][1]):
        left = LEFT + 150 * at
        parts.append(f'<circle cx="{left + 4}" cy="{height - 16}" r="4" fill="{COLOURS[at % len(COLOURS)]}"/>')
        parts.append(text((left + 14, height - 12), model))
    return "\n".join([*parts, "</svg>"]) + "\n"
