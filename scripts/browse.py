"""Looks at pages of `wakescope report` in a headless Chromium, as somebody would who reads them.

    browse.py BROWSER ONE.html TWO.html RUN.json IMPORTED.html

ONE shows the run of the record RUN, TWO shows it and a shorter one, with limits. IMPORTED shows a
histogram of another program. Needs nothing but Python: the browser is spoken to in its DevTools
protocol, through a pipe.
"""

import base64
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

# Long enough for any machine; nothing waits for all of it unless the test fails.
PATIENCE_S = 60

# The pictures that a page has of a run of ours. An imported histogram does not say when its samples were taken.
KINDS = ("exceedance", "histogram", "course")


class Browser:
    """A browser with one page, and what it complained about."""

    def __init__(self, program, folder):
        to_read, to_write = os.pipe(), os.pipe()
        for end in (to_read[0], to_write[1]):
            os.set_inheritable(end, True)

        def wire():
            # The protocol has its pipes at 3 and 4; first out of the way, then into place.
            read, write = os.dup(to_read[0]), os.dup(to_write[1])
            high = [os.dup2(read, 63), os.dup2(write, 64)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read[0])
        os.close(to_write[1])
        self.out = os.fdopen(to_read[1], "wb", buffering=0)
        self.into = os.fdopen(to_write[0], "rb", buffering=0)
        self.rest = b""
        self.number = 0
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def read(self):
        while b"\0" not in self.rest:
            part = self.into.read(1 << 16)
            if not part:
                raise SystemExit("the browser is gone")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setTouchEmulationEnabled", enabled=width < 640)
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read())

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise SystemExit(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def complaints(self):
        bad = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled",
               "Page.javascriptDialogOpening")
        return [event for event in self.events if event.get("method") in bad]

    def point(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def tap(self, x, y):
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)


# The boxes of all pieces of text that are shown, with what is written there.
TEXTS = """(() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.data.trim() || node.parentElement.closest('script,style,title,desc')) continue;
    if (!node.parentElement.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const scroll = node.parentElement.closest('.scroll')?.getBoundingClientRect();
    for (const box of range.getClientRects()) {
      if (box.width < 1 || (scroll && (box.left >= scroll.right || box.right <= scroll.left))) continue;
      // A line's box is taller than what is written into it.
      const trim = box.height * 0.18;
      found.push([box.left, box.top + trim, box.right, box.bottom - trim, node.data.trim().slice(0, 40)]);
    }
  }
  return found;
})()"""


def overlaps(boxes):
    boxes = sorted(boxes, key=lambda box: box[1])
    for i, a in enumerate(boxes):
        for b in boxes[i + 1:]:
            if b[1] >= a[3]:
                break
            if min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1:
                yield a, b


def check(is_so, what):
    if not is_so:
        raise SystemExit(f"not so: {what}")


def check_layout(browser, page, width):
    boxes = browser.run(TEXTS)
    check(len(boxes) > 40, f"{page} at {width} has text: {len(boxes)} pieces")
    check(not list(overlaps(boxes)), f"no text of {page} lies over another at {width}: {list(overlaps(boxes))[:5]}")
    wide = browser.run("document.documentElement.scrollWidth")
    check(wide <= width, f"{page} fits into {width}, not {wide}")


# Where a value lies in the first picture: its x, and the middle of its field.
PLACE = """(value => {
  const svg = [...document.querySelectorAll('figure[data-picture=exceedance] svg')].find(s => s.getClientRects().length);
  svg.scrollIntoView({block: 'center'});
  const [left, top, right, bottom] = svg.dataset.box.split(' ').map(Number);
  const [, low, high] = svg.dataset.x.split(' ');
  const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
  const share = Math.log(value / low) / Math.log(high / low);
  return {x: box.left + (left + share * (right - left)) * scale, y: box.top + (top + bottom) / 2 * scale,
          left: box.left + left * scale, right: box.left + right * scale};
})(%s)"""

READOUT = "({...document.querySelector('figure[data-picture=exceedance] .readout').dataset})"


def check_values(browser, record):
    """What the pointer shows is what the record holds."""
    buckets = record["threads"][0]["expiries"]["histogram"]
    check(len(record["threads"]) == 1, "the record has one thread")
    count = sum(bucket[2] for bucket in buckets)
    # Far apart, so that a pixel tells one from its neighbours.
    for lower, upper, samples in buckets[-2:]:
        place = browser.run(PLACE % ((lower * upper) ** 0.5))
        browser.point("mouseMoved", place["x"], place["y"])
        shown = browser.run(READOUT)
        later = sum(bucket[2] for bucket in buckets if bucket[0] >= upper)
        want = {"lower": str(lower), "upper": str(upper), "count": str(samples), "later": str(later)}
        check({key: shown.get(key) for key in want} == want, f"the pointer shows {want}: {shown}")
    # And from bucket to bucket with the keyboard, through all of them.
    browser.run("document.querySelector('figure[data-picture=exceedance]').focus()")
    last = browser.run(READOUT)
    for lower, upper, samples in reversed(buckets[-40:-1]):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft", code="ArrowLeft")
        shown = browser.run(READOUT)
        check((shown["lower"], shown["count"]) == (str(lower), str(samples)), f"← from {last} to {lower}: {shown}")
        last = shown
    text = browser.run("document.querySelector('figure[data-picture=exceedance] .readout').textContent")
    check(f"{count:,}" in text, f"the count is told: {text}")


# The edges and the count of each row of the table of bands, as it writes them.
BANDS = """[...document.querySelectorAll('details')].filter(d => d.querySelector('summary').textContent === 'The bands as a table')
  .flatMap(d => [...d.querySelectorAll('tbody tr')].map(row => [...row.children].map(cell => cell.textContent)))"""

NS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def check_bands(browser, page):
    """The script's bands are those of the page's own table, which writes three digits of an edge."""
    bands, rows = browser.run(RUNS)[0]["histogram"], browser.run(BANDS)
    check(len(bands) == len(rows) > 1, f"{page} has {len(rows)} rows of bands: {bands}")
    for band, (edges, count) in zip(bands, rows):
        check(f"{band['count']:,}" == count, f"{edges} has {count}: {band}")
        for edge, text in zip((band["lower"], band["upper"]), edges.split(" to ")):
            number, unit = text.split(" ")
            written = float(number) * NS[unit]
            check(abs(written - edge) <= edge / 150, f"{edges} is {band}")


PATHS = "[...document.querySelectorAll('figure[data-picture=exceedance] path.l')].map(p => p.getAttribute('d')).join()"

# Where the field of a picture lies on the screen, and in the picture.
FIELD = """(kind => {
  const svg = [...document.querySelectorAll(`figure[data-picture=${kind}] svg`)].find(s => s.getClientRects().length);
  svg.scrollIntoView({block: 'center'});
  const [left, top, right, bottom] = svg.dataset.box.split(' ').map(Number);
  const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
  return {left, top, right, bottom, scale, x: box.left, y: box.top, across: svg.dataset.x, up: svg.dataset.y,
          shares: svg.dataset.shares !== undefined};
})('%s')"""

# The curves of a picture that are shown: which run's, their path, and where their dot is.
CURVES = """(kind => {
  const svg = [...document.querySelectorAll(`figure[data-picture=${kind}] svg`)].find(s => s.getClientRects().length);
  const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
  return [...svg.querySelectorAll('g.series')].map(group => {
    const dot = [...group.children].find(c => !c.matches('path.l, text') && c.getClientRects().length);
    const at = dot?.getBoundingClientRect();
    return {run: +group.dataset.run, path: group.querySelector('path.l').getAttribute('d'),
            dot: at ? (at.left + at.width / 2 - box.left) * scale : null};
  });
})('%s')"""

# What the page's script knows of each run: the record's buckets, and what is drawn of them.
RUNS = """JSON.parse(document.getElementById('data').textContent).runs.map(run => {
  run.buckets = curves.unpacked(run);
  const all = kind => curves.items(kind, run);
  return {count: run.count, max: run.max, exceedance: run.buckets, histogram: all('histogram'), course: all('course')};
})"""


def level_at(kind, run, value, shares):
    """How high a curve must be at a value: None where there is none. By looking at every bucket."""
    if kind == "exceedance":
        if value >= run["max"]:
            return None
        later = sum(b["count"] for i, b in enumerate(run[kind]) if b["upper"] > value or i + 1 == len(run[kind]))
        return later / run["count"]
    for item in run[kind]:
        if item["lower"] <= value < item["upper"]:
            if kind == "course":
                return item["max"]
            return item["count"] / run["count"] if shares else item["count"]
    return None


def levels_of(path):
    """The level lines of a path of M, H and V, as (from, to, y)."""
    x = y = 0.0
    found = []
    for letter, numbers in re.findall(r"([MHV])([-\d. ]+)", path):
        values = [float(number) for number in numbers.split()]
        if letter == "M":
            x, y = values
        elif letter == "V":
            y = values[0]
        else:
            found.append((x, values[0], y))
            x = values[0]
    return found


def place(axis, value, start, end):
    scale, low, high = axis
    share = math.log(max(value, low) / low) / math.log(high / low) if scale == "log" else (value - low) / (high - low)
    return start + min(max(share, 0), 1) * (end - start)


def value_at(axis, at, start, end):
    scale, low, high = axis
    share = (at - start) / (end - start)
    return low * (high / low) ** share if scale == "log" else low + share * (high - low)


def axis_of(text):
    scale, low, high = text.split(" ")
    return scale, float(low), float(high)


def edges_of(kind, run):
    """Where a curve changes."""
    if kind == "exceedance":
        return [bucket["upper"] for bucket in run[kind]] + [run["max"]]
    return [edge for item in run[kind] for edge in (item["lower"], item["upper"])]


def check_window(browser, kind, runs, what):
    """What is drawn in the window of a picture is what the record says, from edge to edge."""
    field = browser.run(FIELD % kind)
    left, right, top, bottom = (field[key] for key in ("left", "right", "top", "bottom"))
    window = browser.run(f"document.querySelector('figure[data-picture={kind}]').dataset.window")
    across, up = axis_of(field["across"]), axis_of(field["up"])
    across = (across[0], *map(float, window.split(" ")))
    if kind != "course":
        check_limits(browser, kind, across, field)
    for curve in browser.run(CURVES % kind):
        run = runs[curve["run"]]
        drawn = levels_of(curve["path"])
        edges = [place(across, edge, left, right) for edge in edges_of(kind, run)]
        steps = 200
        for i in range(steps + 1):
            at = left + (right - left) * i / steps
            # Inside by a hair: at an edge, the window's own.
            at = min(max(at, left + 0.06), right - 0.06)
            if any(abs(edge - at) < 1.2 for edge in edges):
                continue
            level = level_at(kind, run, value_at(across, at, left, right), field["shares"])
            heights = [y for start, end, y in drawn if start - 0.06 <= at <= end + 0.06]
            here = f"{what}: {kind} of run {curve['run']} at {(at - left) / (right - left):.3f} of {across}"
            if level is None:
                check(not heights, f"{here} has no curve: {heights}")
                continue
            want = place(up, level, bottom, top)
            check(any(abs(y - want) < 0.11 for y in heights), f"{here} is {want:.1f} high: {heights}")
        largest = run["max"]
        if kind == "course":
            worst = max(run[kind], key=lambda slot: slot["max"] if slot["max"] is not None else -1)
            largest = (worst["lower"] + worst["upper"]) / 2
        is_inside = across[1] <= largest <= across[2]
        dot = curve["dot"]
        check((dot is not None) == is_inside, f"{what}: the dot of run {curve['run']} in {kind}: {dot}")
        if is_inside:
            want = place(across, largest, left, right)
            check(abs(dot - want) < 1.5, f"{what}: the dot of run {curve['run']} in {kind} is at {want}: {dot}")


LIMITS = """(kind => {
  const svg = [...document.querySelectorAll(`figure[data-picture=${kind}] svg`)].find(s => s.getClientRects().length);
  const limits = JSON.parse(document.getElementById('data').textContent).limits;
  return {limits, drawn: [...svg.querySelectorAll('.limits path')].map(p => p.getAttribute('d'))};
})('%s')"""


def check_limits(browser, kind, across, field):
    """Limits that lie in the window are drawn where they lie."""
    found = browser.run(LIMITS % kind)
    at = [float(d[1:].split(" ")[0]) for d in found["drawn"] if "V" in d]
    inside = [limit["at"] for limit in found["limits"] if across[1] <= limit["at"] <= across[2]]
    want = sorted(place(across, limit, field["left"], field["right"]) for limit in inside)
    check(len(at) == len(want) and all(abs(a - b) < 0.1 for a, b in zip(sorted(at), want)),
          f"limits of {kind} in {across} are at {want}: {at}")


def drag(browser, field, start, end):
    """Drags from one share of a field's width to another."""
    y = field["y"] + (field["top"] + field["bottom"]) / 2 * field["scale"]
    at = [field["x"] + (field["left"] + share * (field["right"] - field["left"])) * field["scale"] for share in (start, end)]
    browser.point("mousePressed", at[0], y, button="left", clickCount=1)
    browser.point("mouseMoved", at[1], y, button="left", buttons=1)
    browser.point("mouseReleased", at[1], y, button="left", clickCount=1)


def check_windows(browser, seed, kinds=KINDS):
    """Whatever part is looked at, each curve goes on to its edges."""
    draw = random.Random(seed)
    runs = browser.run(RUNS)
    for kind in kinds:
        # The one that was found wrong, then any, and some within these.
        shares = [[(0.3, 0.6)]] + [
            [sorted((draw.random(), draw.random())) for _ in range(draw.choice((1, 1, 2)))] for _ in range(6)]
        for windows in shares:
            for start, end in windows:
                drag(browser, browser.run(FIELD % kind), start, max(end, start + 0.02))
            check_window(browser, kind, runs, f"dragged {windows}, seed {seed}")
            browser.run(f"document.querySelector('figure[data-picture={kind}] .help button').click()")


def check_zoom(browser):
    before = browser.run(PATHS)
    drag(browser, browser.run(FIELD % "exceedance"), 1 / 3, 2 / 3)
    zoomed = browser.run(PATHS)
    check(zoomed != before and "NaN" not in zoomed, "dragging zooms")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="+", text="+")
    browser.run("document.querySelector('figure[data-picture=exceedance] .help button').click()")
    check(browser.run(PATHS) == before, "and all of it can be had back")


# What a picture tells of the place that was pointed at, and where.
TOLD = """(kind => {
  const told = document.querySelector(`figure[data-picture=${kind}] .readout`), box = told.getBoundingClientRect();
  return {text: told.textContent, left: box.left, right: box.right, top: box.top, bottom: box.bottom,
          shown: getComputedStyle(told).visibility !== 'hidden', ...told.dataset};
})('%s')"""


def check_readout(browser, width):
    """Values are shown where somebody points, also with a finger, and in every zoom."""
    runs = browser.run(RUNS)
    for kind in KINDS:
        for is_zoomed in (False, True):
            field = browser.run(FIELD % kind)
            if is_zoomed:
                drag(browser, field, 0.3, 0.6)
                browser.point("mouseMoved", 1, 1)
            window = browser.run(f"document.querySelector('figure[data-picture={kind}]').dataset.window")
            across = axis_of(field["across"])
            if window:
                across = (across[0], *map(float, window.split(" ")))
            for i in range(1, 20):
                at = field["left"] + (field["right"] - field["left"]) * i / 20
                x = field["x"] + at * field["scale"]
                y = field["y"] + (field["top"] + (i % 5 + 1) / 6 * (field["bottom"] - field["top"])) * field["scale"]
                if width < 640:
                    browser.tap(x, y)
                else:
                    browser.point("mouseMoved", x, y)
                told = browser.run(TOLD % kind)
                here = f"{kind} at {i}/20 of {across}, {width} wide"
                value = value_at(across, at, field["left"], field["right"])
                if not told["shown"]:
                    nothing = all(
                        value >= (run[kind][-1]["upper"] if run[kind] else 0) or level_at(kind, run, value, False) is None
                        for run in runs)
                    check(nothing, f"{here} shows values")
                    continue
                check(told["left"] >= 0 and told["right"] <= width and told["top"] >= 0 and told["bottom"] <= 900,
                      f"{here}: values are on the screen: {told}")
                apart = max(told["left"] - x, x - told["right"], told["top"] - y, y - told["bottom"])
                check(0 < apart <= 40, f"{here}: values are beside {x:.0f} {y:.0f}, and do not cover it: {told}")
                check_told(kind, runs, told, (across, value, field), here)
            if is_zoomed:
                browser.run(f"document.querySelector('figure[data-picture={kind}] .help button').click()")


def check_told(kind, runs, told, at, here):
    """What is told is true: of the record's bucket, or of the gap that the place lies in."""
    (across, value, field), run = at, runs[int(told["run"])]
    lower, upper = float(told["lower"]), float(told["upper"])
    reach = 8.5 / (field["right"] - field["left"])
    if across[0] == "log":
        least, most = (value * (across[2] / across[1]) ** share for share in (-reach, reach))
    else:
        least, most = (value + (across[2] - across[1]) * share for share in (-reach, reach))
    check(lower <= most and upper >= least, f"{here}: {lower} to {upper} is what lies there")
    check(lower < across[2] and upper > across[1], f"{here}: {lower} to {upper} lies in the window")
    inside = [item for item in run[kind] if item["lower"] < upper and item["upper"] > lower]
    if kind == "course":
        check(told.get("max") == str(inside[0]["max"]), f"{here}: {inside} is told: {told}")
        return
    check(int(told["count"]) == sum(item["count"] for item in inside), f"{here}: {inside} is told: {told}")
    if "(100 %" in told["text"]:
        some = told["later"] if kind == "exceedance" else told["count"]
        check(int(some) == run["count"], f"{here}: 100 % is all: {told}")
    if kind == "exceedance":
        later = sum(item["count"] for item in run[kind] if item["lower"] >= upper)
        check(told["later"] == str(later), f"{here}: {later} are later: {told}")


# Whether a table that matters is cut.
CUT = """[...document.querySelectorAll('.scroll')].filter(s => s.querySelector('.key') && s.scrollWidth > s.clientWidth).length"""


def check_key_tables(browser, page, width):
    check(browser.run("document.querySelectorAll('.key').length") > 0, f"{page} has tables that matter")
    check(browser.run(CUT) == 0, f"all of them are seen at {width}")
    if width < 640:
        named = browser.run("[...document.querySelectorAll('.key td[data-of]')].map(c => "
                            "[c.dataset.of, getComputedStyle(c, '::before').content])")
        check(all(of in content for of, content in named), f"each figure says what it is: {named}")


def pages_of(browser):
    """How many sheets of paper the page takes."""
    return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(browser.call("Page.printToPDF")["data"])))


OPEN = "document.querySelectorAll('details').forEach(d => d.open = true)"


def check_print(browser, page):
    """What is folded is on paper: by style, and where the browser does not know that one, by script."""
    browser.open(page, 1280)
    closed = "document.querySelectorAll('details:not([open])').length"
    folded = browser.run(closed)
    check(folded > 0, f"{page} has folded parts")
    unaided = "[...document.styleSheets].forEach(s => [...s.cssRules].forEach(r => { if (r.media?.mediaText === 'print') " \
        "[...r.cssRules].forEach((inner, i) => { if (inner.cssText.includes('details-content')) r.deleteRule(i); }) }))"
    browser.run(unaided)
    by_script = pages_of(browser)
    check(browser.run(closed) == folded, "and they are folded again afterwards")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page, 1280)
    by_style = pages_of(browser)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    browser.open(page, 1280)
    browser.run(OPEN)
    opened = pages_of(browser)
    check(by_script == opened, f"the script unfolds for paper: {by_script} sheets of {opened}")
    check(by_style == opened, f"and so does the style: {by_style} sheets of {opened}")


# A style of its own: to checkVisibility, a group that is not displayed can be visible.
SHOWN = """[...document.querySelectorAll('g.series[data-run="1"]')].filter(
  g => g.closest('svg').getClientRects().length && getComputedStyle(g).display !== 'none').length"""


def check_legend(browser):
    before = browser.run(SHOWN)
    check(before > 1, "the second run has its curves")
    button = "document.querySelector('.legend button[data-run=\"1\"]')"
    browser.run(button + ".click()")
    check(browser.run(SHOWN) == 0, "the legend switches them off")
    check(browser.run(button + ".getAttribute('aria-pressed')") == "false", "and says so")
    browser.run(button + ".click()")
    check(browser.run(SHOWN) == before, "and on")


def main():
    program, one, two, run, imported = sys.argv[1:6]
    with open(run, encoding="utf-8") as file:
        record = json.load(file)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            for page in (one, two):
                for width in (1280, 400):
                    browser.open(page, width)
                    check_layout(browser, page, width)
                    check_key_tables(browser, page, width)
                    if page == one:
                        check_values(browser, record)
                        check_bands(browser, page)
                    else:
                        check_legend(browser)
                    check_zoom(browser)
                    check_windows(browser, width)
                    check_readout(browser, width)
                    browser.run(OPEN)
                    check_layout(browser, page + ", unfolded,", width)
                    check(not browser.complaints(), f"no complaint: {browser.complaints()}")
                check_print(browser, page)
            browser.open(imported, 1280)
            check_bands(browser, imported)
            check_windows(browser, 1, KINDS[:2])
            check(not browser.complaints(), f"no complaint: {browser.complaints()}")
        finally:
            browser.close()
    print("pages work")


if __name__ == "__main__":
    main()
