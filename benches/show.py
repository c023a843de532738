"""What showing and comparing stored runs costs, beside the scripts that people use for it today."""

import json
import random
import struct
import tempfile
from pathlib import Path

import figures
from figures import spread
from lab import rounds_of
from running import execute

RUNS_OF_A_PAGE = 20
RUNS_OF_A_COMPARISON = 1_000
EPISODES = 20_000
PATIENCE_S = 120

# `report` refuses a format that does not match the ending of its file.
ENDINGS = {"cyclictest": ".txt", "cyclictest-json": ".json"}

# As in countless scripts beside cyclictest: percentiles of each run from its JSON.
STATISTICS = """
import json, math, sys
for path in sys.argv[1:]:
    run = json.load(open(path))
    counts = {}
    for thread in run["thread"].values():
        for bucket, count in thread["histogram"].items():
            counts[int(bucket)] = counts.get(int(bucket), 0) + count
    total, seen, found = sum(counts.values()), 0, {}
    for bucket in sorted(counts):
        seen += counts[bucket]
        for nines in (0.5, 0.99, 0.999):
            if seen >= nines * total:
                found.setdefault(nines, bucket)
    maximum = max(thread["max"] for thread in run["thread"].values())
    print(path, total, found.get(0.5), found.get(0.99), found.get(0.999), maximum)
"""

# The test that is used for want of a better one, of `figures` of runs, half of them new.
T_TEST = """
half = len(figures) // 2
a, b = figures[:half], figures[half:]
mean = lambda values: sum(values) / len(values)
spread = lambda values: sum((value - mean(values)) ** 2 for value in values) / (len(values) - 1)
error = math.sqrt(spread(a) / len(a) + spread(b) / len(b)) or 1.0
print("t =", (mean(b) - mean(a)) / error)
"""

# The same statistics, and then that test.
PAIRED_OFF = STATISTICS.replace(
    "    print(path", "    figures.append(math.log(max(found[0.999], 1)))\n    0 and print(path"
).replace("for path in sys.argv[1:]:", "figures = []\nfor path in sys.argv[1:]:", 1) + T_TEST

# The same of wakescope's own records.
OF_RECORDS = """
import json, math, sys
figures = []
for folder in sys.argv[1:]:
    run = json.load(open(folder + "/run.json"))
    counts = {}
    for thread in run["threads"]:
        for _lower, upper, count in thread["expiries"]["histogram"]:
            counts[upper] = counts.get(upper, 0) + count
    total, seen = sum(counts.values()), 0
    for upper in sorted(counts):
        seen += counts[upper]
        if seen >= 0.999 * total:
            figures.append(math.log(upper))
            break
""" + T_TEST


def plot_script(out, histograms):
    """A picture as the farms have it: counts over microseconds, on log scales."""
    lines = ["set terminal pngcairo size 1280,720", f"set output '{out}'", "set logscale xy"]
    series = ", ".join(f"'{path}' using 1:2 with steps title '{path.stem}'" for path in histograms)
    return "\n".join([*lines, f"plot {series}"]) + "\n"


class Stored:
    """Runs that were measured for this, as wakescope keeps them and as cyclictest does."""

    def __init__(self, folder, binary, quick):
        self.folder, self.binary = Path(folder), binary
        self.runs = [self.measured(number, quick) for number in range(4)]

    def measured(self, number, quick):
        out = self.folder / f"measured-{number}"
        length = ["--duration", "300ms" if quick else "2s"]
        command = [self.binary, "measure", "--interval", "200us", *length, "--warmup", "0s", "--out", str(out)]
        execute(command, PATIENCE_S)
        return out

    def many(self, count):
        """So many runs, each in a folder of its own: those measured, with names of their own."""
        records = [json.loads((run / "run.json").read_text()) for run in self.runs]
        runs = []
        for number in range(count):
            run = self.folder / f"{count}" / f"{number:04}"
            run.mkdir(parents=True)
            record = {**records[number % len(records)], "id": f"copy-{number}"}
            (run / "run.json").write_text(json.dumps(record, separators=(",", ":")))
            runs.append(run)
        return runs

    def exported(self, runs, kind):
        """The same for programs that read cyclictest's results."""
        files = []
        for run in runs:
            file = run / f"{kind}{ENDINGS[kind]}"
            execute([self.binary, "report", str(run), "--format", kind, "-o", str(file)], PATIENCE_S)
            files.append(file)
        return files


def beside(plan, commands):
    """Rows `program | ms | ratio` of commands that are run in turn; the first is ours."""
    timed = {name: (lambda command=command: execute(command, PATIENCE_S).wall_s * 1e3) for name, command in commands.items()}
    results = rounds_of(plan.rounds, timed)
    ours = next(iter(results.values()))
    rows = []
    for name, theirs in results.items():
        rows.append([name, spread(theirs), "" if theirs is ours else spread(figures.ratios(ours, theirs))])
    return figures.table(["", "ms", "wakescope is × of it"], rows)


def report(plan, stored):
    run = stored.runs[0]
    (exported,) = stored.exported([run], "cyclictest-json")
    head = "### A run as text\n\nRead and shown, whole processes. The script gives three percentiles and the maximum.\n\n"
    return head + beside(
        plan,
        {
            "wakescope report": [stored.binary, "report", str(run)],
            "Python script": ["python3", "-c", STATISTICS, str(exported)],
        },
    )


def page(plan, stored):
    runs = stored.many(RUNS_OF_A_PAGE)
    histograms = stored.exported(runs, "cyclictest")
    html, png, script = (stored.folder / name for name in ("page.html", "plot.png", "plot.gnuplot"))
    script.write_text(plot_script(png, histograms))
    text = beside(
        plan,
        {
            "wakescope report --format html": [stored.binary, "report", *map(str, runs), "--format", "html", "-o", str(html)],
            "gnuplot": ["gnuplot", str(script)],
        },
    )
    size = f"The page has {html.stat().st_size / 1024:,.0f} KiB, with every figure in it; gnuplot's picture, one of the page's, {png.stat().st_size / 1024:,.0f} KiB."
    return f"### A page of {RUNS_OF_A_PAGE} runs\n\n{text}\n\n{size}"


def compare(plan, stored):
    runs = stored.many(RUNS_OF_A_COMPARISON)
    exported = stored.exported(runs, "cyclictest-json")
    half = RUNS_OF_A_COMPARISON // 2
    ours = [stored.binary, "compare", *map(str, runs[:half]), "--against", *map(str, runs[half:])]
    # Copies of the same runs do not differ; whatever the verdict is, it is no failure.
    ours = ["sh", "-c", '"$@" >/dev/null; test $? -ne 2', "sh", *ours]
    what = "The scripts read p99.9 of each, and take a t-test of their logarithms: of the same run folders, and of cyclictest's JSON of these runs, which has less in it."
    return f"### Comparing {RUNS_OF_A_COMPARISON:,} runs\n\n{what}\n\n" + beside(
        plan,
        {
            "wakescope compare": ours,
            "Python script, the same run folders": ["python3", "-c", OF_RECORDS, *map(str, runs)],
            "Python script, cyclictest's JSON": ["python3", "-c", PAIRED_OFF, *map(str, exported)],
        },
    )


# Percentiles of raw samples, as in the scripts that people keep beside these programs.
OF_VERBOSE = """{ counts[$3]++; total++ }
END { for (value in counts) print value, counts[value], total }"""

OF_RAW = """
import struct, sys
counts = {}
with open(sys.argv[1], "rb") as samples:
    while block := samples.read(28 << 12):
        for _cpu, _seconds, _nanoseconds, value in struct.iter_unpack("<IqqQ", block):
            counts[value] = counts.get(value, 0) + 1
print(len(counts), sum(counts.values()))
"""


def write_samples(folder, samples):
    """Raw samples as jitterdebugger stores them and as `cyclictest -v` prints them."""
    chance = random.Random(1)
    raw, verbose = folder / "samples.raw", folder / "verbose.txt"
    values = [chance.randint(5, 60) if chance.random() < 0.999 else chance.randint(100, 3_000) for _ in range(100_000)]
    with open(raw, "wb") as packed, open(verbose, "w") as text:
        for start in range(0, samples, len(values)):
            block, lines = bytearray(), []
            for number, value in enumerate(values[: samples - start], start):
                at_ns = 5_000_000_000 + number * 250_000
                block += struct.pack("<IqqQ", number & 3, *divmod(at_ns, 10**9), value)
                lines.append(f"{number & 3:8}:{number >> 2:8}:{value:8}\n")
            packed.write(block)
            text.write("".join(lines))
    return raw, verbose


def imports(plan, stored):
    """Raw samples into a run, with samples per second and memory."""
    samples = 1_000_000 if plan.quick else 20_000_000
    raw, verbose = write_samples(stored.folder, samples)
    commands = {
        "wakescope, jitterdebugger's raw samples": [stored.binary, "report", str(raw)],
        "Python script, the same": ["python3", "-c", OF_RAW, str(raw)],
        "wakescope, cyclictest -v": [stored.binary, "report", str(verbose)],
        "awk, the same": ["awk", "-F:", OF_VERBOSE, str(verbose)],
    }
    runs = {name: (lambda command=command: execute(command, 10 * PATIENCE_S)) for name, command in commands.items()}
    results = rounds_of(plan.rounds, runs)
    rows = []
    for name, of in results.items():
        per_second = [samples / r.wall_s / 1e6 for r in of]
        per_cpu_second = [samples / r.cpu_s / 1e6 for r in of]
        rows.append([name, spread(per_second), spread(per_cpu_second), spread([r.peak_kib / 1024 for r in of])])
    head = f"### Raw samples\n\n{samples:,} samples read and shown, whole processes; the aim is 20 million per second, in constant memory.\n\n"
    return head + figures.table(["", "million per second", "per second of CPU time", "peak MiB"], rows)


# The episodes of the corpus, again and again, beside a script that only reads them.
OF_EPISODES = """
import json, sys
causes = {}
for line in open(sys.argv[1]):
    for share in json.loads(line).get("blame", []):
        causes[share["cause"]] = causes.get(share["cause"], 0) + share["ns"]
print(causes)
"""

# What the record of a run has to say that was explained; its causes do not matter for the time.
EXPLANATION = {
    **dict.fromkeys(["above_ns", "wakeups", "not_followed", "late", "explained", "records", "lost_records"], 0),
    "above": "p99.9",
    "seen_with": [],
    "not_seen": [],
}


def of_run(lines, run, count):
    """So many episodes of `lines` and the heads between them, again and again, as those of one run."""
    while True:
        for line in lines:
            if line.startswith('{"schema"'):
                # A head is known by its first bytes.
                yield json.dumps({**json.loads(line), "run": run}, separators=(",", ":"))
                continue
            if count == 0:
                return
            count -= 1
            yield line


def explain_anew(plan, stored):
    """Episodes of a stored run, attributed anew."""
    corpus = Path(__file__).parent.parent / "crates/attribution/corpus"
    lines = [line for file in sorted(corpus.glob("*.jsonl")) for line in file.read_text().splitlines()]
    folder = stored.folder / "explained"
    folder.mkdir()
    record = json.loads((stored.runs[0] / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**record, "explanation": EXPLANATION}))
    count = 2_000 if plan.quick else EPISODES
    text = "".join(line + "\n" for line in of_run(lines, record["id"], count))
    file = folder / "episodes.jsonl"
    file.write_text(text)
    title = f"### Attributing {count:,} episodes anew\n\n{len(text) / 1e6:,.0f} MB of episodes, read, attributed by the rules and shown. The script only reads them and adds up the recorded shares.\n\n"
    return title + beside(
        plan,
        {
            "wakescope explain RUN": [stored.binary, "explain", str(folder)],
            "Python script": ["python3", "-c", OF_EPISODES, str(file)],
        },
    )


PARTS = {"show-anew": explain_anew, "show-report": report, "show-page": page, "show-compare": compare, "show-import": imports}


def results_of(names, plan, binary):
    """All that is to be measured, as Markdown."""
    with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
        stored = Stored(folder, binary, plan.quick)
        return [PARTS[name](plan, stored) for name in names]
