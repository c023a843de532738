"""What simulating kernels costs: beside SimSo on a set of periodic tasks, beside SPIN on all orders of events."""

import json
import re
import tempfile
from pathlib import Path

import figures
from figures import spread
from lab import rounds_of
from running import execute

# Where `scripts/setup bench` installs SimSo.
PYTHON = "target/simso/bin/python"
HERE = Path(__file__).parent / "model"
PATIENCE_S = 900

# ms, by falling priority: period and work. No period is a multiple of another, so that releases meet at all distances.
TASKS = [(4.001, 1), (6.003, 2), (12.007, 3)]
# The task below them, which is measured: it has nothing to do but to respond.
PROBE_MS = 20.011
NOTHING_MS = 0.001

MODELS_OF_2002 = ["none", "voluntary", "full", "both"]


def worst_response_ms():
    """By the theory of fixed priorities (Joseph and Pandya, 1986), of a task below all of them."""
    response = sum(work for _, work in TASKS)
    while (needed := sum(-(-response // period) * work for period, work in TASKS)) != response:
        response = needed
    return response


def task_set():
    """The tasks as a scenario: an interrupt releases each, and no step of the kernel takes time."""
    free = "interrupt_entry interrupt_exit timer_function tick schedule switch return_to_user ipi".split()
    lines = ['schema = "wakescope.scenario/1"', 'name = "tasks"', 'about = "periodic tasks"', "[machine]", "cpus = 1"]
    lines += ["[costs]", *(f'{cost} = "0ns"' for cost in free)]
    lines += ["[[task]]", 'name = "probe"', 'policy = "fifo:1"', f'period = "{round(PROBE_MS * 1000)}us"']
    paths = []
    for number, (period, work) in enumerate(TASKS):
        lines += ["[[task]]", f'name = "task{number}"', f'policy = "fifo:{90 - number}"', f'path = "task{number}"']
        lines += ["[[interrupt]]", f'name = "release{number}"', 'kind = "unthreaded"', f'path = "release{number}"']
        lines += [f'arrives = {{ periodic = "{round(period * 1000)}us" }}']
        paths += [f'release{number} = [{{ wake = "release{number}" }}]']
        paths += [f'task{number} = [{{ wait = "release{number}" }}, {{ user = "{work}ms" }}, "work"]']
    return "\n".join([*lines, "[path]", *paths]) + "\n"


def run_of(folder, rules):
    (record,) = Path(folder, rules).glob("*/run.json")
    return json.loads(record.read_text())


def simso(plan, binary):
    """Jobs of periodic tasks per second of CPU time."""
    # As long as each takes to say something, and not longer: both are linear in it.
    samples, seconds = (5_000, 20) if plan.quick else (500_000, 60)

    def ours():
        with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
            scenario, out = Path(folder, "tasks.toml"), Path(folder, "runs")
            scenario.write_text(task_set())
            length = ["--samples", str(samples), "--preempt", "full", "--jobs", "1", "--no-explain"]
            result = execute([binary, "model", "run", str(scenario), *length, "--out", str(out)], PATIENCE_S)
            run = run_of(out, "full")
            (woken,) = (thread["woken"] for thread in run["threads"])
            jobs = woken["count"] + sum(load["work"] for load in run["load"])
            return jobs, woken["max_ns"] / 1e6, result

    def theirs():
        tasks = [*TASKS, (PROBE_MS, NOTHING_MS)]
        command = [PYTHON, str(HERE / "tasks.py"), str(seconds), *(f"{period}:{work}" for period, work in tasks)]
        result = execute(command, PATIENCE_S)
        lines = [line.split() for line in result.output.split("\n") if line.startswith("task")]
        return sum(int(jobs) for _, jobs, _ in lines), float(lines[-1][2]), result

    results = rounds_of(plan.rounds, {"wakescope model run": ours, "SimSo": theirs})
    rates = {name: [jobs / r.cpu_s for jobs, _, r in of] for name, of in results.items()}
    rows = []
    for name, of in results.items():
        ratio = spread(figures.ratios(rates["wakescope model run"], rates[name])) if name == "SimSo" else ""
        jobs, worst, _ = of[0]
        peak = spread([r.peak_kib / 1024 for _, _, r in of])
        rows.append([name, f"{jobs:,}", spread(rates[name]), ratio, f"{worst:.3f}", peak])
    head = (
        "### Periodic tasks of fixed priority\n\n"
        "Four tasks on one CPU, three of which preempt the fourth; whole processes. A job is one release of a task. "
        "SimSo is a Python program that also keeps every event for its diagrams, so its memory grows with the time "
        "that is simulated; wakescope executes the interrupt, the wakeup and the scheduler of each job. The longest "
        f"response of the fourth task is {worst_response_ms():g} ms by theory, and its own {NOTHING_MS * 1000:g} µs of work in SimSo.\n\n"
    )
    return head + figures.table(
        ["", "jobs", "jobs per second of CPU time", "wakescope is × of it", "longest response, ms", "peak MiB"], rows
    )


def catface(tasks, protected):
    """The scenario catface with so many tasks in place of two."""
    before, after = ('"preempt_disable", ', ', "preempt_enable"') if protected else ("", "")
    change = f'{before}{{ per_cpu = "catface", do = [{{ compute = "10us" }}] }}{after}'
    lines = ['schema = "wakescope.scenario/1"', 'name = "catface"', 'about = "catface"', "[machine]", "cpus = 1"]
    lines += ["[[task]]", 'name = "low"', 'path = "low"']
    for number in range(1, tasks):
        lines += ["[[task]]", f'name = "high{number}"', f'policy = "fifo:{number}"', 'path = "high"']
    low = f'{{ compute = "5us" }}, {change}, {{ compute = "5us" }}'
    high = f'{{ block = "1ms" }}, {change}'
    lines += ["[path]", f'low = [{{ call = "sys_low", do = [{low}] }}]', f'high = [{{ call = "sys_high", do = [{high}] }}]']
    return "\n".join(lines) + "\n"


def of_wakescope(text):
    """The states that were searched, and whether the rule of the scenario holds in them."""
    if found := re.search(r"every rule holds in all ([\d,]+) states", text):
        return found[1], "holds"
    if "a variable of the CPU was seen half-changed" in text:
        return "until the first", "broken"
    raise SystemExit(f"bench: wakescope has another verdict than was expected: {text[:300]}")


def of_pan(text):
    """The same of SPIN's program, which states the rule as an assertion."""
    errors = re.search(r"errors: (\d+)", text)
    states = re.search(r"(\d+) states, stored", text)
    if not errors or not states or "max search depth too small" in text:
        raise SystemExit("bench: SPIN did not search to the end")
    if int(errors[1]) == 0:
        return f"{int(states[1]):,}", "holds"
    if "assertion violated" in text:
        return "until the first", "broken"
    raise SystemExit(f"bench: SPIN found another error than was expected: {text[:300]}")


def spin(plan, binary):
    """All orders of events."""
    rows = []
    for tasks, protected in [(2, False), (2, True), (5 if plan.quick else 6, True)]:
        with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
            scenario = Path(folder, "catface.toml")
            scenario.write_text(catface(tasks, protected))
            check = f"{binary} model check {scenario} --preempt full; test $? -le 1"
            define = f"-DN={tasks} {'-DPROTECTED' if protected else ''}"
            make = f"cd {folder} && spin {define} -a {HERE.resolve()}/catface.pml && gcc -O2 -DSAFETY -o pan pan.c"
            shell = lambda script: (lambda: execute(["sh", "-c", script], PATIENCE_S))
            commands = {
                "wakescope model check": shell(check),
                "spin and gcc": shell(make),
                "pan": shell(f"cd {folder} && ./pan -m100000"),
            }
            results = rounds_of(1, {"spin and gcc": commands["spin and gcc"]})
            # `pan` is there from the first round on, in whatever order they come.
            results = rounds_of(plan.rounds, commands)
        ours = [r.cpu_s for r in results["wakescope model check"]]
        pan = [r.cpu_s for r in results["pan"]]
        make = [r.cpu_s for r in results["spin and gcc"]]
        states, verdict = of_wakescope(results["wakescope model check"][0].output)
        their_states, their_verdict = of_pan(results["pan"][0].output)
        if verdict != their_verdict:
            raise SystemExit(f"bench: {tasks} tasks: wakescope says {verdict}, SPIN {their_verdict}")
        whole = [a + b for a, b in zip(make, pan)]
        rows.append([
            f"{tasks} tasks, {'protected' if protected else 'unprotected'}",
            verdict,
            states,
            spread([1e3 * s for s in ours]),
            their_states,
            spread([1e3 * s for s in pan]),
            spread([1e3 * s for s in whole]),
            spread(figures.ratios(ours, pan)),
        ])
    head = (
        "### All orders of events\n\n"
        "`catface` under full preemption, and the same with more tasks, each of a priority of its own. SPIN's program, "
        "`benches/model/catface.pml`, was written for this one scenario: it has no interrupts that nest, no scheduler "
        "that takes steps, no run queues, and so fewer states. ms of CPU time, whole processes; `pan` is the search "
        "alone, the sum is with `spin -a` and `gcc -O2` before it.\n\n"
    )
    columns = ["", "verdict", "states", "wakescope", "states, SPIN", "pan", "all of SPIN", "wakescope is × of pan"]
    return head + figures.table(columns, rows)


def speeds(text):
    """Of each preemption model: millions of operations per second of CPU time, and operations per wakeup."""
    rows = re.findall(r"^(\w+) +([\d.]+) million operations a second of CPU time, .* ([\d.]+) operations a sample", text, re.M)
    return {rules: (float(speed), float(each)) for rules, speed, each in rows}


def events(plan, binary):
    """How many operations of the simulated kernel one CPU executes in a second."""
    example = Path(binary).parent / "examples" / "speed"
    samples = "50000" if plan.quick else "2000000"
    once = lambda: speeds(execute([str(example), "williams", samples], PATIENCE_S).output)
    of = rounds_of(plan.rounds, {"operations of williams": once})["operations of williams"]
    if len(of[0]) < len(MODELS_OF_2002):
        raise SystemExit(f"bench: {example} says nothing of all models")
    rows = [
        [rules, spread([round_[rules][0] for round_ in of]), f"{each:.1f}"] for rules, (_, each) in of[0].items()
    ]
    head = (
        "### Operations of the simulated kernel\n\n"
        "`williams` on one CPU of this machine, without a tracer. An operation is one step of a path, of an "
        "interrupt or of the scheduler.\n\n"
    )
    return head + figures.table(["preemption", "million operations per second of CPU time", "operations per wakeup"], rows)


def williams(plan, binary):
    """How fast, and in how much memory, a scenario is simulated."""
    few, many = (20_000, 50_000) if plan.quick else (500_000, 5_000_000)
    rows = []
    for samples, explains in [(few, True), (few, False), (many, False)]:
        name = f"{samples:,}"

        def once(samples=samples, explains=explains):
            with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
                how = ["--preempt", ",".join(MODELS_OF_2002), "--samples", str(samples), "--out", folder]
                how += [] if explains else ["--no-explain"]
                return execute([binary, "model", "run", "williams", *how], PATIENCE_S)

        of = rounds_of(min(plan.rounds, 3), {f"williams, {name}": once})[f"williams, {name}"]
        rate = [len(MODELS_OF_2002) * samples / r.cpu_s / 1e6 for r in of]
        rows.append([
            f"{len(MODELS_OF_2002)} × {name}{', explained' if explains else ''}",
            spread([r.cpu_s for r in of]),
            spread([r.wall_s for r in of]),
            spread(rate),
            spread([r.peak_kib / 1024 for r in of]),
        ])
    head = (
        "### The four kernels of 2002\n\n"
        "`model run williams` under `none`, `voluntary`, `full` and `both`, one seed each, on all CPUs. "
        "Explained: simulated a second time, with a tracer that watches.\n\n"
    )
    return head + figures.table(["wakeups", "CPU time, s", "elapsed, s", "million wakeups per second of CPU time", "peak MiB"], rows)


PARTS = {"model-williams": williams, "model-events": events, "model-simso": simso, "model-spin": spin}


def results_of(names, plan, binary):
    """All that is to be measured, as Markdown."""
    return [PARTS[name](plan, binary) for name in names]
