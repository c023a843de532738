//! Files that are refused, each with the place and the words.

use super::read;

/// A scenario that can be read, to be spoiled.
const GOOD: &str = r#"schema = "wakescope.scenario/1"
name = "x"
[machine]
cpus = 2
[costs]
tick = "1us"
[[task]]
name = "probe"
policy = "fifo:80"
period = "2048Hz"
[[task]]
name = "find"
cpu = 1
path = "find"
[[interrupt]]
name = "eth0"
arrives = { poisson = "1ms" }
path = "eth0_handler"
[path]
eth0_handler = [{ compute = "3us" }, { wake = "data" }]
find = [
  { spin_lock = "dcache_lock" },
  { repeat = 9, do = [{ compute = "1us" }, { lock_break = "dcache_lock", every = 3 }] },
  { spin_unlock = "dcache_lock" },
  { wait = "data" },
]
"#;

#[test]
fn the_scenario_to_be_spoiled_is_good() {
    assert!(read(GOOD).is_ok(), "{:?}", read(GOOD));
}

/// Replaces a part of the good scenario: the error, without the file's name.
#[track_caller]
fn spoiled(part: &str, by: &str) -> String {
    assert_eq!(GOOD.matches(part).count(), 1, "{part}");
    let error = read(&GOOD.replace(part, by)).expect_err(by);
    error.strip_prefix("x.toml:").unwrap().to_owned()
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (part, by, want) in [
        (
            "[costs]",
            "[kernel]\nbh_lock = 1\n[costs]",
            "6:11: kernel.bh_lock: found the number 1, expected true or false",
        ),
        (
            "[costs]",
            "[kernel]\nrt_runtime = \"950ms\"\nrt_period = \"950ms\"\n[costs]",
            "6:14: kernel.rt_runtime: found `950ms`, expected off, or less than rt_period",
        ),
        (
            "[costs]",
            "[kernel]\nfair_server = true\n[costs]",
            "6:15: kernel.fair_server: found it without `rt_runtime`, expected that, too",
        ),
        (
            "[costs]",
            "[[group]]\nname = \"batch\"\nquota = \"999us\"\n[costs]",
            "7:9: group[0].quota: found `999us`, expected a quota of at least 1 ms",
        ),
        (
            "[costs]",
            "[[group]]\nname = \"batch\"\nquota = \"1s\"\nperiod = \"2s\"\n[costs]",
            "8:10: group[0].period: found `2s`, expected a period of 1 ms to 1 s",
        ),
        (
            "cpu = 1",
            "group = \"batch\"",
            "13:9: task[1].group: found `batch`, expected the name of a group",
        ),
        (
            "cpus = 2",
            "cpus = 2\ncpu = 1",
            "5:1: machine: found the key `cpu`, expected `cpus` or another of a machine: cpus, tick, idle_states",
        ),
        (
            "cpus = 2",
            "cpus = 0",
            "4:8: machine.cpus: found the number 0, expected a number of CPUs: 1 to 64",
        ),
        (
            "cpus = 2",
            "cpus = \"2\"",
            "4:8: machine.cpus: found `2`, expected a number of CPUs: 1 to 64",
        ),
        (
            "cpus = 2",
            "tick = \"250\"",
            "4:8: machine.tick: found `250`, expected off, or a frequency of 1 to 10000 Hz, as in \"250Hz\"",
        ),
        (
            "cpus = 2",
            "cpus = 1",
            "13:7: task[1].cpu: found the number 1, expected a CPU of the machine: 0 to 0",
        ),
        (
            "tick = \"1us\"",
            "tick = \"1\"",
            "6:8: costs.tick: `1` has no unit; write 1us, 1ms or 1s",
        ),
        (
            "tick = \"1us\"",
            "tick = 1",
            "6:8: costs.tick: found the number 1, expected a length, as in \"3us\" or { uniform = [\"1us\", \"5us\"] }",
        ),
        (
            "tick = \"1us\"",
            "tick = \"0.5ns\"",
            "6:8: costs.tick: found `0.5ns`, expected whole nanoseconds",
        ),
        (
            "tick = \"1us\"",
            "tick = \"0.00000001us\"",
            "6:8: costs.tick: found `0.00000001us`, expected whole picoseconds",
        ),
        (
            "tick = \"1us\"",
            "tick = \"61min\"",
            "6:8: costs.tick: found `61min`, expected at most an hour",
        ),
        (
            "tick = \"1us\"",
            "tick = { exponential = \"0s\" }",
            "6:24: costs.tick.exponential: found `0s`, expected more than no time",
        ),
        (
            "tick = \"1us\"",
            "tick = { uniform = [\"2us\", \"1us\"] }",
            "6:28: costs.tick.uniform[1]: found `1us`, expected at least as long as the least",
        ),
        (
            "tick = \"1us\"",
            "tick = { uniform = [\"2us\"] }",
            "6:20: costs.tick.uniform: found a list, expected the least and the most, as in [\"1us\", \"5us\"]",
        ),
        (
            "tick = \"1us\"",
            "tick = { mixture = [] }",
            "6:20: costs.tick.mixture: found a list, expected at least one part",
        ),
        (
            "tick = \"1us\"",
            "tick = { mixture = [[0.0, \"1us\"]] }",
            "6:22: costs.tick.mixture[0][0]: found the number 0.0, expected a weight: above 0, at most 1000000000",
        ),
        (
            "tick = \"1us\"",
            "tick = { pareto = { least = \"1us\", shape = nan, most = \"1ms\" } }",
            "6:44: costs.tick.pareto.shape: found the number NaN, expected the shape: above 0, at most 100",
        ),
        (
            "tick = \"1us\"",
            "tick = { histogram = [[\"1us\", \"3us\", 1], [\"2us\", \"4us\", 1]] }",
            "6:22: costs.tick.histogram: found a bucket from 2000 to 4000 ns after one to 3000 ns, expected them in order, within an hour",
        ),
        (
            "tick = \"1us\"",
            "tick = { run = \"runs/none\", of = \"wakeup_latency\" }",
            "6:16: costs.tick.run: there is no run runs/none with wakeup_latency",
        ),
        (
            "tick = \"1us\"",
            "tick = { run = \"runs/good\" }",
            "6:8: costs.tick: found no `of`, expected one in a length, as in \"3us\" or { uniform = [\"1us\", \"5us\"] }",
        ),
        (
            "tick = \"1us\"",
            "tick = { run = \"runs/backwards\", of = \"x\" }",
            "6:16: costs.tick.run: found a bucket from 3 to 2 ns after one to 0 ns, expected them in order, within an hour",
        ),
        (
            "\"fifo:80\"",
            "\"fifo:100\"",
            "9:10: task[0].policy: found `fifo:100`, expected a policy: other, other:-20 to other:19, fifo:1 to fifo:99, rr:1 to rr:99, or deadline:1ms",
        ),
        (
            "\"2048Hz\"",
            "\"0Hz\"",
            "10:10: task[0].period: `Hz` is not a unit of time; use ns, us, ms, s, min, h or d",
        ),
        (
            "\"2048Hz\"",
            "\"999ns\"",
            "10:10: task[0].period: found `999ns`, expected a period of at least 1 µs",
        ),
        ("name = \"probe\"\n", "", "7:1: task[0]: found no `name`, expected one in a task"),
        ("name = \"probe\"", "name = \"find\"", "12:8: task[1].name: found a second task `find`"),
        (
            "name = \"probe\"",
            "name = \"abcdefghijklmnop\"",
            "8:8: task[0].name: found `abcdefghijklmnop`, expected a name of 1 to 15 printable ASCII characters",
        ),
        (
            "name = \"probe\"",
            "nam = \"probe\"",
            "8:1: task[0]: found the key `nam`, expected `name` or another of a task: name, policy, cpu, group, period, path",
        ),
        (
            "period = \"2048Hz\"",
            "",
            "7:1: task[0]: found neither `period` nor `path`, expected the period of a probe or a task's path",
        ),
        (
            "period = \"2048Hz\"",
            "period = \"1ms\"\npath = \"find\"",
            "11:8: task[0].path: found `spin_lock` in the path of a probe, expected no step that sleeps, and no lock",
        ),
        (
            "path = \"find\"",
            "path = \"fnd\"",
            "14:8: task[1].path: found `fnd`, expected the name of a path; the nearest is `find`",
        ),
        (
            "path = \"eth0_handler\"",
            "path = \"find\"",
            "18:8: interrupt[0].path: found `wait` in the path of an interrupt's handler, expected it only in paths of tasks",
        ),
        (
            "arrives = { poisson = \"1ms\" }",
            "",
            "15:1: interrupt[0]: found no `arrives`, expected one, or a block until `eth0`: it never comes",
        ),
        (
            "arrives = { poisson = \"1ms\" }",
            "arrives = { periodic = \"60Hz\" }",
            "17:24: interrupt[0].arrives.periodic: found `60Hz`, expected a whole number of nanoseconds from one to the next",
        ),
        (
            "arrives = { poisson = \"1ms\" }",
            "arrives = { poisson = \"0s\" }",
            "17:23: interrupt[0].arrives.poisson: found `0s`, expected more than no time",
        ),
        (
            "arrives = { poisson = \"1ms\" }",
            "arrives = { recorded = [\"2s\", \"1s\"] }",
            "17:31: interrupt[0].arrives.recorded[1]: found `1s`, expected a time that is not before the last",
        ),
        (
            "arrives = { poisson = \"1ms\" }",
            "arrives = {}",
            "17:11: interrupt[0].arrives: found 0 keys, expected one in arrivals, as in { periodic = \"100Hz\" } or { poisson = \"1ms\" }",
        ),
        (
            "arrives = { poisson = \"1ms\" }",
            "kind = \"softirq:3\"\narrives = { poisson = \"1ms\" }",
            "15:1: interrupt[0]: found `arrives` or `cpu`, expected neither: a softirq runs when and where raise_softirq says",
        ),
        (
            "arrives = { poisson = \"1ms\" }",
            "kind = \"softirq:net\"",
            "17:8: interrupt[0].kind: found `softirq:net`, expected a kind: device, unthreaded, nmi, steal, or softirq:NAME, as in softirq:net_rx",
        ),
        (
            "{ compute = \"3us\" }",
            "{ compte = \"3us\" }",
            "20:17: path.eth0_handler[0]: found the key `compte`, expected a step; the nearest is `compute`",
        ),
        (
            "{ compute = \"3us\" }",
            "\"cond_reshed\"",
            "20:17: path.eth0_handler[0]: found `cond_reshed`, expected a step; the nearest is `cond_resched`",
        ),
        (
            "{ compute = \"3us\" }",
            "\"compute\"",
            "20:17: path.eth0_handler[0]: found `compute` alone, expected { compute = … }",
        ),
        (
            "{ compute = \"3us\" }",
            "{ work = 1 }",
            "20:17: path.eth0_handler[0]: found `work` with a value, expected \"work\" alone",
        ),
        (
            "{ compute = \"3us\" }",
            "{}",
            "20:17: path.eth0_handler[0]: found a table without keys, expected a step",
        ),
        (
            "{ compute = \"3us\" }",
            "7",
            "20:17: path.eth0_handler[0]: found the number 7, expected a step, as in \"cond_resched\" or { compute = \"3us\" }",
        ),
        (
            "{ compute = \"3us\" }",
            "{ compute = \"3us\", user = \"1us\" }",
            "20:36: path.eth0_handler[0]: found the key `user`, expected only `compute` in the step `compute`",
        ),
        (
            "{ compute = \"3us\" }",
            "{ repeat = 3 }",
            "20:17: path.eth0_handler[0]: found no `do`, expected one in the step `repeat`",
        ),
        (
            "{ compute = \"3us\" }",
            "{ call = \"finds\" }",
            "20:26: path.eth0_handler[0].call: found `finds`, expected the name of a path, or `do` with the steps of a function; the nearest path is `find`",
        ),
        (
            "{ compute = \"3us\" }",
            "{ call = \"eth0_handler\" }",
            "20:26: path.eth0_handler[0].call: found a call of `eth0_handler` within itself",
        ),
        (
            "{ compute = \"3us\" }",
            "{ raise_softirq = \"net_rx\" }",
            "20:35: path.eth0_handler[0].raise_softirq: found `net_rx`, expected an interrupt of kind softirq:net_rx",
        ),
        (
            "{ compute = \"3us\" }",
            "{ repeat = [3, 2], do = [] }",
            "20:32: path.eth0_handler[0].repeat[1]: found the number 2, expected a number of rounds: 3 to 1000000000",
        ),
        (
            "{ compute = \"3us\" }",
            "{ repeat = 10_001, do = [\"rcu_read_lock\"] }",
            "18:8: interrupt[0].path: found a loop of 10001 rounds without time passing, expected at most 10000",
        ),
        (
            "every = 3",
            "every = 0",
            "23:82: path.find[1].do[1].every: found the number 0, expected a number of iterations: 1 to 1000000000",
        ),
        (
            "{ compute = \"1us\" }, { lock_break",
            "{ call = \"f\", do = [{ lock_break = \"dcache_lock\" }] }, { lock_break",
            "23:58: path.find[1].do[0].do[0].lock_break: found a lock break, expected a loop around it in its function",
        ),
        (
            "{ spin_unlock = \"dcache_lock\" }",
            "{ spin_unlock = \"dcache\" }",
            "24:19: path.find[2].spin_unlock: found `dcache`, expected a lock that a step takes; the nearest is `dcache_lock`",
        ),
        (
            "{ spin_unlock = \"dcache_lock\" }",
            "{ mutex_unlock = \"dcache_lock\" }",
            "24:20: path.find[2].mutex_unlock: found `dcache_lock` as a lock of mutex_lock, expected one of spin_lock",
        ),
        (
            "{ spin_unlock = \"dcache_lock\" }",
            "{ mutex_lock = \"dcache_lock\" }",
            "24:18: path.find[2].mutex_lock: found `dcache_lock` as a lock of mutex_lock, expected one of spin_lock",
        ),
        (
            "{ wait = \"data\" }",
            "{ wait = \"date\" }",
            "25:12: path.find[3].wait: found `date`, expected an event that a step wakes; the nearest is `data`",
        ),
        (
            "{ wait = \"data\" }",
            "{ block = \"1ms\", interrupt = \"eth1\" }",
            "25:32: path.find[3].interrupt: found `eth1`, expected an interrupt of a device; the nearest is `eth0`",
        ),
        (
            "\"wakescope.scenario/1\"",
            "\"wakescope.scenario/2\"",
            "1:10: schema: found `wakescope.scenario/2`, expected \"wakescope.scenario/1\"",
        ),
        (
            "[machine]",
            "machine.tick = \"off\"\n[other]",
            "3:9: found a name with dots, expected a key alone, or a table in square brackets",
        ),
        ("cpus = 2", "cpus = 1979-05-27", "4:8: found a date, which no key of a scenario holds"),
        ("cpus = 2", "cpus = 2\ncpus = 3", "5:1: duplicate key `cpus` in table `machine`"),
        ("[costs]", "[costs", "5:7: invalid table header: expected `.`, `]`"),
    ] {
        assert_eq!(spoiled(part, by), want, "{by}");
    }
}

#[test]
fn no_task_loops_without_time() {
    let text = |steps: &str| {
        format!(
            "schema = \"wakescope.scenario/1\"\nname = \"x\"\ntask = [{{ name = \"t\", path = \"p\" }}]\n\
             path = {{ p = [{steps}] }}"
        )
    };
    for endless in [
        "",
        "\"work\", \"schedule\"",
        "{ compute = \"0s\" }",
        "{ wake = \"a\" }, { mutex_lock = \"m\" }, { mutex_unlock = \"m\" }",
        "{ repeat = [0, 0], do = [{ user = \"1us\" }] }",
        "{ call = \"f\", do = [{ compute = { uniform = [\"0s\", \"0s\"] } }] }",
        "{ compute = { mixture = [[1, \"0s\"]] } }",
        "{ compute = { histogram = [[\"0ns\", \"1ns\", 1]] } }",
    ] {
        let error = read(&text(endless)).expect_err(endless);
        assert!(
            error.contains("x.toml:3:30: task[0].path: found an endless loop without time"),
            "{error}"
        );
    }
    for passes in [
        "{ user = \"1ns\" }",
        "{ call = \"f\", do = [{ repeat = [0, 1], do = [{ compute = \"1ns\" }] }] }",
        "{ block = \"1ns\" }",
        "{ page_fault = { exponential = \"1ns\" } }",
        "{ wake = \"a\" }, { wait = \"a\" }",
        "{ compute = { mixture = [[9, \"0s\"], [0.1, \"1ns\"]] } }",
    ] {
        assert_eq!(read(&text(passes)).err(), None);
    }
}

#[test]
fn a_hostile_text_is_cut_in_messages() {
    let long = "x".repeat(100_000);
    let spoils = [
        ("\"fifo:80\"", format!("\"{long}\"")),
        ("cpus = 2", format!("{long} = 2")),
        ("tick = \"1us\"", format!("tick = \"1{long}\"")),
        ("{ compute = \"3us\" }", format!("\"{long}\"")),
        ("eth0_handler = [{ compute = \"3us\" }", format!("eth0_handler = []\n{long} = [")),
    ];
    for (part, by) in spoils {
        let error = spoiled(part, &by);
        assert!(error.len() < 600, "{} bytes", error.len());
    }
}
