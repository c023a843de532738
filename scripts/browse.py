"""Looks at pages of `wakescope report` in a headless Chromium, as somebody would who reads them.

    browse.py BROWSER ONE.html TWO.html RUN.json

ONE shows the run of the record RUN, TWO shows it and another. Needs nothing but Python: the
browser is spoken to in its DevTools protocol, through a pipe.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile

# Long enough for any machine; nothing waits for all of it unless the test fails.
PATIENCE_S = 60


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


PATHS = "[...document.querySelectorAll('figure[data-picture=exceedance] path.l')].map(p => p.getAttribute('d')).join()"


def check_zoom(browser):
    before = browser.run(PATHS)
    place = browser.run(PLACE % 10000)
    third = (place["right"] - place["left"]) / 3
    browser.point("mousePressed", place["left"] + third, place["y"], button="left", clickCount=1)
    browser.point("mouseMoved", place["left"] + 2 * third, place["y"], button="left", buttons=1)
    browser.point("mouseReleased", place["left"] + 2 * third, place["y"], button="left", clickCount=1)
    zoomed = browser.run(PATHS)
    check(zoomed != before and "NaN" not in zoomed, "dragging zooms")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="+", text="+")
    browser.run("document.querySelector('figure[data-picture=exceedance] .readout button').click()")
    check(browser.run(PATHS) == before, "and all of it can be had back")


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
    program, one, two, run = sys.argv[1:5]
    with open(run, encoding="utf-8") as file:
        record = json.load(file)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            for page in (one, two):
                for width in (1280, 400):
                    browser.open(page, width)
                    check_layout(browser, page, width)
                    if page == one:
                        check_values(browser, record)
                    else:
                        check_legend(browser)
                    check_zoom(browser)
                    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
                    check_layout(browser, page + ", unfolded,", width)
                    check(not browser.complaints(), f"no complaint: {browser.complaints()}")
                pdf = base64.b64decode(browser.call("Page.printToPDF")["data"])
                check(pdf.startswith(b"%PDF") and len(pdf) > 10_000, f"{page} prints")
        finally:
            browser.close()
    print("pages work")


if __name__ == "__main__":
    main()
