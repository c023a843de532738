"""The arithmetic of the benchmark: what is read from other programs' output, and computed.

Nothing here runs a program, so that all of it can be tested (test_figures.py).
"""

import math
import re
import statistics
from pathlib import Path


def cyclictest_histogram(text):
    """Counts by value, of all threads together, and the samples beyond the last row.

    Takes both layouts: all rows, or (from version 2.7 on) those that are not empty.
    """
    counts, beyond = {}, 0
    for line in text.splitlines():
        if re.fullmatch(r"\d+ \d+(\t\d+)*\s*", line):
            value, *threads = (int(word) for word in line.split())
            counts[value] = counts.get(value, 0) + sum(threads)
        elif line.startswith("# Histogram Overflows:"):
            beyond = sum(int(word) for word in line.split(":")[1].split())
    return {value: count for value, count in counts.items() if count}, beyond


def cyclictest_minimum(text):
    """The least of all threads' minima, in the unit that the histogram has."""
    found = re.search(r"^# Min Latencies:((?: \d+)+)", text, re.MULTILINE)
    return min(int(word) for word in found[1].split())


def wakeups(text):
    """Wakeups by the summary lines (`C: 1234`) of cyclictest and jitterdebugger, all threads.

    jitterdebugger redraws its lines; the last state of each thread counts.
    """
    last = dict(re.findall(r"T: *(\d+) .*? C: *(\d+)", text))
    if not last:
        raise ValueError("there is no line with a count of wakeups")
    return sum(int(count) for count in last.values())


def oslat_gaps(text):
    """Gaps of 1 µs and more by the rows of oslat's histogram, all CPUs. A row `002 (us):` counts those from 1 µs
    up to 2 µs."""
    rows = re.findall(r"^ *(\d+) \(us\):\s+([\d ]+)", text, re.MULTILINE)
    if not rows:
        raise ValueError("there is no histogram of gaps")
    return sum(int(count) for edge, counts in rows if int(edge) > 1 for count in counts.split())


def quantile_of_counts(counts, share, beyond=0):
    """The value that `share` of the samples are not above, of `counts` by value with `beyond`
    samples above all; None if it is one of those."""
    rank = max(1, math.ceil((sum(counts.values()) + beyond) * share))
    seen = 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= rank:
            return value
    return None


def median_of_counts(counts, beyond=0):
    return quantile_of_counts(counts, 0.5, beyond)


def buckets_as_counts(histogram):
    """A run's `[[lower_ns, upper_ns, count], …]` as counts by lower edge."""
    return {lower: count for lower, _upper, count in histogram}


def woken_us(run):
    """Samples, minimum and mean, µs, of a run's first thread; the mean takes each sample as the middle of its bucket."""
    woken = run["threads"][0]["woken"]
    total_ns = sum((lower + upper - 1) / 2 * count for lower, upper, count in woken["histogram"])
    return woken["count"], woken["min_ns"] / 1000, total_ns / woken["count"] / 1000


def rt_tests_us(report):
    """The same of the JSON of a program of rt-tests with a sender and a receiver."""
    thread = report["thread"]["0"]
    return thread["sender"]["samples"], thread["receiver"]["min"], thread["receiver"]["avg"]


def callgrind_totals(text):
    """Instructions of one thread's callgrind file, and its sleeps.

    A sleep is a call of the C library's clock_nanosleep, or of its syscall(), which programs use
    that want the system call and nothing around it.
    """
    total = int(re.search(r"^totals: (\d+)", text, re.MULTILINE)[1])
    # A name is written once, as `cfn=(12) name`; after that its number stands for it.
    numbers = set(re.findall(r"fn=(\(\d+\)) (?:clock_nanosleep|syscall)(?:@.*)?$", text, re.MULTILINE))
    calls = 0
    for number, count in re.findall(r"^cfn=(\(\d+\)).*\ncalls=(\d+)", text, re.MULTILINE):
        if number in numbers:
            calls += int(count)
    return total, calls


def upper_edges_as_counts(histogram):
    """A run's histogram as counts by the largest value that each bucket may hold."""
    return {upper - 1: count for _lower, upper, count in histogram}


def bogo_rate(text):
    """Bogo operations per second of real time of one stressor, from `stress-ng --metrics-brief`; None if it tells none."""
    found = re.search(r"metrc: \[\d+\] [\w-]+ +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+) +[\d.]+$", text, re.MULTILINE)
    return float(found[1]) if found else None


def machine_counts(stat):
    """Context switches and interrupts since the machine started, from the text of /proc/stat."""
    return {name: int(re.search(rf"^{name} (\d+)", stat, re.MULTILINE)[1]) for name in ("ctxt", "intr")}


def slope(low, high):
    """What one more sample costs, from two `(samples, cost)`: what does not grow falls out."""
    return (high[1] - low[1]) / (high[0] - low[0])


def significant(value):
    """Three significant digits."""
    if value == 0:
        return "0"
    digits = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:,.{max(0, 3 - max(digits, 1))}f}"


def spread(values):
    """The median, and the least and largest if there are several: `1.02 (0.98–1.07)`."""
    middle = significant(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({significant(min(values))}–{significant(max(values))})"


def ratios(ours, theirs):
    """Ratio for each round: what disturbs one program of a round mostly disturbs the other."""
    return [a / b for a, b in zip(ours, theirs)]


def differences(ours, theirs):
    """The same for differences."""
    return [a - b for a, b in zip(ours, theirs)]


def losses(alone, disturbed):
    """Percent of throughput that is lost, round by round, where the same work took these seconds."""
    return [100 * (1 - a / b) for a, b in zip(alone, disturbed)]


def shares(ours, theirs):
    """What part of their loss ours is, round by round; none where they lose nothing."""
    return [max(a, 0) / b for a, b in zip(ours, theirs) if b > 0]


def hackbench_seconds(text):
    return float(re.search(r"^Time: ([\d.]+)", text, re.MULTILINE)[1])


def is_tracing_handle(target):
    """Whether what a process holds under this name is an event or a program of the kernel's."""
    return target.startswith("anon_inode:") and re.search(r"bpf[-_](prog|link)|perf_event", target) is not None


def program_number(fdinfo):
    """The number of the BPF program that a file descriptor stands for, by its /proc/PID/fdinfo."""
    found = re.search(r"^prog_id:\s*(\d+)$", fdinfo, re.MULTILINE)
    # A link to a program names it, too.
    return int(found[1]) if found and "link_type" not in fdinfo else None


def locked_bytes(fdinfo):
    """What the kernel keeps for the BPF map that a file descriptor stands for, by its /proc/PID/fdinfo."""
    return int(re.search(r"^memlock:\s*(\d+)$", fdinfo, re.MULTILINE)[1])


def resident_kib(status):
    """Resident memory by the text of /proc/PID/status; None of a process that has ended."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) if found else None


def early_and_late(readings):
    """The reading after a fifth of them, and the last one."""
    if not readings:
        raise ValueError("there is no reading")
    return readings[len(readings) // 5], readings[-1]


def table(head, rows):
    """A Markdown table; the first column left, the others right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def put_between(page, begin, end, text):
    """`page` with `text` instead of what stands between the lines `begin` and `end`."""
    before, rest = page.split(begin, 1)
    _old, after = rest.split(end, 1)
    return f"{before}{begin}\n{text}\n{end}{after}"


def put_into(path, name, text):
    """Puts `text` between the marks of this name on the page at `path`, an empty line before and behind it."""
    path = Path(path)
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    path.write_text(put_between(path.read_text(), begin, end, "\n" + text + "\n"))


def with_rows(page, head, rows, named_by):
    """`page` with these rows of a table with this head instead of those whose first `named_by` cells are the same,
    and the rows that it has nowhere, or in several places: those are left as they are."""
    cells_of = lambda line: [cell.strip() for cell in line.strip("|").split("|")]
    is_line = lambda line: line.startswith("|") and line.endswith("|")
    lines = page.split("\n")
    places, is_in = {}, False
    for number, line in enumerate(lines):
        # A table begins with its head, and ends with the first line that is none of a table.
        is_in = is_line(line) and (is_in or cells_of(line) == list(head))
        if is_in:
            places.setdefault(tuple(cells_of(line)[:named_by]), []).append(number)
    not_put = []
    for row in rows:
        row = list(map(str, row))
        found = places.get(tuple(row[:named_by]), [])
        if len(found) == 1:
            lines[found[0]] = "| " + " | ".join(row) + " |"
        else:
            not_put.append((row, len(found)))
    return "\n".join(lines), not_put
