//! The limits of a file: what is just allowed, and what is just too much.

use super::super::limits;
use super::read;

const HEAD: &str = "schema = \"wakescope.scenario/1\"\nname = \"x\"\n";

/// A scenario whose only task runs these steps.
fn with_path(steps: &str) -> String {
    format!(
        "{HEAD}task = [{{ name = \"t\", path = \"p\" }}]\n[path]\np = [{{ user = \"1us\" }}, {steps}]\n"
    )
}

#[track_caller]
fn check(most: usize, text: impl Fn(usize) -> String, want: &str) {
    assert_eq!(read(&text(most)).err(), None, "{most} are allowed");
    let error = read(&text(most + 1)).expect_err("one more is not");
    assert!(error.contains(want), "{error}");
}

/// `steps` within so many of `around`.
fn nested(depth: usize, around: &str, steps: &str) -> String {
    format!("{}{steps}{}", format!("{{ {around}, do = [").repeat(depth), "] }".repeat(depth))
}

#[test]
fn steps_are_counted_where_they_are_called() {
    // The step of user code is one.
    check(
        limits::STEPS - 1,
        |count| with_path(&"\"work\",".repeat(count)),
        "found 10001 entries, expected at most 10000",
    );
    // 97 steps on their own, and 98 for each call.
    let helper = format!("q = [{}]", "\"work\",".repeat(97));
    let calls = |calls: usize| format!("{}{helper}", with_path(&"{ call = \"q\" },".repeat(calls)));
    check((limits::STEPS - 1 - 97) / 98, calls, "found more than 10000 steps of all paths");
}

#[test]
fn steps_lie_within_each_other_to_a_depth() {
    let deep = |depth| with_path(&nested(depth, "call = \"f\"", "\"work\""));
    check(limits::NESTED, deep, "expected at most 32");
    let loops = |depth| with_path(&nested(depth, "repeat = 2", "{ compute = \"1us\" }"));
    check(limits::NESTED_LOOPS, loops, "loops within loops, expected at most 4");
    // Paths that call each other, whichever is read first.
    for reversed in [false, true] {
        let chain = |depth: usize| {
            let path = |i: usize| format!("p{i} = [{{ call = \"p{}\" }}]\n", i + 1);
            let mut paths: Vec<String> = (1..depth).map(path).collect();
            paths.push(format!("p{depth} = [\"work\"]\n"));
            if reversed {
                paths.reverse();
            }
            format!("{}{}", with_path("{ call = \"p1\" }"), paths.concat())
        };
        check(limits::NESTED, chain, "steps within steps, expected at most 32");
        let loops = |depth: usize| {
            let inner = nested(depth - 2, "repeat = 2", "{ compute = \"1us\" }");
            let outer = nested(2, "repeat = 2", "{ call = \"q\" }");
            format!("{}q = [{inner}]\n", with_path(&outer))
        };
        check(limits::NESTED_LOOPS, loops, "loops within loops, expected at most 4");
    }
}

#[test]
fn the_deepest_steps_have_the_deepest_lengths() {
    let length = "\"1us\"";
    let mixture = |depth: usize| {
        let open = "{ mixture = [[1, ".repeat(depth);
        format!("{open}{{ uniform = [{length}, {length}] }}{}", "]] }".repeat(depth))
    };
    let compute = |depth| format!("{{ compute = {} }}", mixture(depth));
    // The library that reads TOML has a limit of its own, which is to be beyond ours.
    let deepest = nested(limits::NESTED, "call = \"f\"", &compute(limits::NESTED_MIXTURES));
    assert_eq!(read(&with_path(&deepest)).err(), None);
    let steps = |depth| with_path(&compute(depth));
    check(limits::NESTED_MIXTURES, steps, "mixtures within mixtures, expected at most 3");
}

#[test]
fn everything_is_counted() {
    let tasks = |count: usize| {
        let task = |i| format!("[[task]]\nname = \"t{i}\"\nperiod = \"1ms\"\n");
        format!("{HEAD}{}", (0..count).map(task).collect::<String>())
    };
    check(limits::TASKS, tasks, "task: found 257 entries, expected at most 256");
    let interrupts = |count: usize| {
        let interrupt = |i| {
            format!(
                "[[interrupt]]\nname = \"i{i}\"\npath = \"q\"\narrives = {{ poisson = \"1s\" }}\n"
            )
        };
        let all: String = (0..count).map(interrupt).collect();
        format!("{}q = []\n{all}", with_path(""))
    };
    check(limits::INTERRUPTS, interrupts, "interrupt: found 63 entries, expected at most 62");
    let paths = |count: usize| {
        let path = |i| format!("p{i} = []\n");
        format!("{}{}", with_path(""), (1..count).map(path).collect::<String>())
    };
    check(limits::PATHS, paths, "path: found 257 entries, expected at most 256");
    let states = |count: usize| {
        let state = |i| format!("{{ name = \"C{i}\", exit = \"1us\", residency = \"1us\" }},");
        let all: String = (0..count).map(state).collect();
        format!("{}[machine]\nidle_states = [{all}]", with_path(""))
    };
    check(limits::IDLE_STATES, states, "found 17 entries, expected at most 16");
    let times = |count: usize| {
        let times = "\"1s\",".repeat(count);
        format!(
            "{}q = []\n[[interrupt]]\nname = \"i\"\npath = \"q\"\narrives = {{ recorded = [{times}] }}",
            with_path("")
        )
    };
    check(limits::ARRIVALS, times, "found 10001 entries, expected at most 10000");
}

#[test]
fn names_and_files_have_a_length() {
    let named = |length: usize| {
        let name = "n".repeat(length);
        with_path(&format!("{{ spin_lock = \"{name}\" }}"))
    };
    check(limits::NAME, named, "expected a name of 1 to 64 printable ASCII characters");
    let path = |length: usize| format!("{}{} = []", with_path(""), "n".repeat(length));
    check(limits::NAME, path, "expected 1 to 64 printable ASCII characters");
    let about = |length: usize| format!("about = \"{}\"\n{}", "ä".repeat(length), with_path(""));
    check(limits::ABOUT, about, "expected a text of at most 1000 characters");
    let line =
        |length: usize| format!("published = [\"{}\"]\n{}", "ä".repeat(length), with_path(""));
    check(limits::PUBLISHED_LINE, line, "published[0]: found `");
    let lines =
        |count: usize| format!("published = [{}]\n{}", "\"5 ms\",".repeat(count), with_path(""));
    check(limits::PUBLISHED, lines, "found 101 entries, expected at most 100");
    for name in ["", "ä", "\\u001b[31m", "a\\nb"] {
        let error = read(&with_path(&format!("{{ spin_lock = \"{name}\" }}"))).expect_err(name);
        assert!(error.contains("printable ASCII"), "{error}");
    }
    let text = with_path("");
    let file = |length: usize| format!("{text}{}", "#".repeat(length - text.len()));
    check(limits::FILE, file, "found 1048577 bytes, expected at most 1048576");
}

#[test]
fn runs_draw_from_one_budget() {
    let lengths = |count: usize| {
        with_path(&"{ compute = { run = \"runs/large\", of = \"x\" } },".repeat(count))
    };
    // 90,000 buckets of 256 bytes each: five times that is below 128 MB.
    check(5, lengths, "more than 128 MB of memory for histogram buckets");
}
