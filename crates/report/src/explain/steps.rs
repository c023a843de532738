//! Steps of a timeline in words.

use wakescope_core::explain::{Interrupted, NamedTask, Step, StepEvent, StepMode};
use wakescope_core::units::{SpanNs, grouped};

use super::phrases::{softirq_name, task, task_with_policy};

/// What an interrupt is called whose entry, which alone has the name, was not seen.
const NAMELESS: &str = "interrupt";

/// What happened: `timer expiry; rm[412] running in the kernel`. It is not cleaned.
pub(crate) fn step(of: &Step) -> String {
    let is_own = of.depth == 0;
    match &of.event {
        StepEvent::TimerExpiry { cpu, interrupted } => {
            with_state(format!("timer expiry{}", on_cpu(*cpu)), interrupted.as_ref())
        }
        StepEvent::NotAsleep { task: of, interrupted } => {
            with_state(format!("due before {} slept", task(of)), interrupted.as_ref())
        }
        StepEvent::MadeReady { by, cpu, in_interrupt, interrupted } => {
            with_state(made_ready(by.as_ref(), *cpu, *in_interrupt), interrupted.as_ref())
        }
        StepEvent::Interrupt { name } if is_own => format!("{} taken", or_nameless(name.as_ref())),
        StepEvent::Interrupt { name: Some(name) } => format!("interrupt {name}"),
        StepEvent::Interrupt { name: None } => NAMELESS.into(),
        StepEvent::InterruptExit { .. } if is_own => "handler returns".into(),
        StepEvent::InterruptExit { name } => format!("{} returns", or_nameless(name.as_ref())),
        StepEvent::Timer { name, count: 0..=1 } => timer_function(name).into(),
        StepEvent::Timer { name, count } => {
            format!("{} of {} timers", timer_function(name), grouped((*count).into()))
        }
        StepEvent::Softirq { name } => softirq_name(name),
        StepEvent::SoftirqExit { name } => format!("{} ends", softirq_name(name)),
        StepEvent::Nmi { name, ns } => match name.as_str() {
            "" => format!("NMI ends after {}", SpanNs(*ns)),
            name => format!("NMI {name} ends after {}", SpanNs(*ns)),
        },
        StepEvent::Tracer { ns } => format!("tracer ends after {}", SpanNs(*ns)),
        StepEvent::Switch { to, .. } if is_own => format!("switch to {}", task(to)),
        StepEvent::Switch { to, .. } if to.is_idle() => "CPU goes idle".into(),
        StepEvent::Switch { to, .. } => format!("switch to {}", task_with_policy(to)),
        StepEvent::Moved { cpu, to } if to.is_idle() => {
            format!("moved to CPU {cpu}, which is idle")
        }
        StepEvent::Moved { cpu, to } => {
            format!("moved to CPU {cpu}; {} running there", task_with_policy(to))
        }
        StepEvent::SchedEntry => "scheduler entered".into(),
        StepEvent::LockWait => "waits for a lock".into(),
        StepEvent::LockAcquired => "acquires the lock".into(),
        StepEvent::Runs { task: of, page_faults } => {
            format!("{} runs{}", task(of), faults(*page_faults))
        }
        StepEvent::Missing { count: 1 } => "1 event is missing below".into(),
        StepEvent::Missing { count } => format!("{} events are missing below", grouped(*count)),
        StepEvent::LeftOut { count } => format!("… and {count} more"),
        StepEvent::Unknown => "an event that this version does not know".into(),
    }
}

/// Where the kernel hides its symbols, functions have no names.
fn timer_function(name: &str) -> &str {
    if name.is_empty() { "timer function" } else { name }
}

fn or_nameless(name: Option<&String>) -> &str {
    name.map_or(NAMELESS, String::as_str)
}

fn on_cpu(cpu: Option<u32>) -> String {
    cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default()
}

fn made_ready(by: Option<&NamedTask>, cpu: Option<u32>, in_interrupt: bool) -> String {
    let by = match (by, in_interrupt) {
        (Some(by), true) => format!(" by an interrupt of {}", task(by)),
        (Some(by), false) => format!(" by {}", task(by)),
        (None, true) => " by an interrupt".into(),
        (None, false) => String::new(),
    };
    format!("made ready{by}{}", on_cpu(cpu))
}

fn with_state(stimulus: String, interrupted: Option<&Interrupted>) -> String {
    match interrupted {
        Some(interrupted) => format!("{stimulus}; {}", state(interrupted)),
        None => stimulus,
    }
}

/// What the CPU was at.
fn state(interrupted: &Interrupted) -> String {
    let Interrupted { mode, task: of, idle_state, softirq } = interrupted;
    let softirq = softirq.as_ref().map(|name| format!(", {}", softirq_name(name)));
    let state = match (mode, idle_state) {
        (StepMode::User, _) => format!("{} running", task(of)),
        (StepMode::Kernel, _) => format!("{} running in the kernel", task(of)),
        (StepMode::Idle, None) => "CPU idle".into(),
        (StepMode::Idle, Some(name)) => format!("CPU idle in {name}"),
    };
    state + &softirq.unwrap_or_default()
}

fn faults(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => " after a page fault".into(),
        _ => format!(" after {} page faults", grouped(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::runs::named_task;
    use wakescope_core::explain::Policy;

    #[track_caller]
    fn check(depth: u32, event: StepEvent, want: &str) {
        assert_eq!(step(&Step { at_ns: 7, depth, event }), want);
    }

    fn name(name: &str) -> Option<String> {
        Some(name.into())
    }

    #[test]
    fn the_beginning_says_what_the_cpu_was_at() {
        let kernel = |softirq| {
            let (mode, task) = (StepMode::Kernel, named_task("logger", 231));
            Some(Interrupted { mode, task, softirq, idle_state: None })
        };
        let expiry = |cpu, interrupted| StepEvent::TimerExpiry { cpu, interrupted };
        let in_kernel = "timer expiry; logger[231] running in the kernel";
        check(0, expiry(None, kernel(None)), in_kernel);
        check(0, expiry(None, kernel(name("NET_RX"))), &format!("{in_kernel}, softirq NET_RX"));
        check(0, expiry(Some(3), None), "timer expiry on CPU 3");
        let user = Interrupted { mode: StepMode::User, ..kernel(None).unwrap() };
        check(0, expiry(None, Some(user)), "timer expiry; logger[231] running");
        let idle = |idle_state| Some(Interrupted { idle_state, ..Interrupted::default() });
        check(0, expiry(None, idle(None)), "timer expiry; CPU idle");
        check(0, expiry(None, idle(name("C6"))), "timer expiry; CPU idle in C6");
        let task = named_task("probe", 9);
        check(0, StepEvent::NotAsleep { task, interrupted: None }, "due before probe[9] slept");
    }

    #[test]
    fn who_made_the_task_ready_is_told() {
        let writer = || Some(named_task("writer", 5));
        for (by, cpu, in_interrupt, want) in [
            (None, None, false, "made ready"),
            (writer(), None, false, "made ready by writer[5]"),
            (writer(), Some(1), true, "made ready by an interrupt of writer[5] on CPU 1"),
            (None, Some(1), true, "made ready by an interrupt on CPU 1"),
        ] {
            check(0, StepEvent::MadeReady { by, cpu, in_interrupt, interrupted: None }, want);
        }
    }

    #[test]
    fn the_wakeup_s_own_steps_have_words_of_their_own() {
        let interrupt = |of: &str| StepEvent::Interrupt { name: name(of) };
        check(0, interrupt("local_timer"), "local_timer taken");
        check(0, StepEvent::Interrupt { name: None }, "interrupt taken");
        check(0, StepEvent::InterruptExit { name: name("local_timer") }, "handler returns");
        check(2, interrupt("eth0"), "interrupt eth0");
        check(2, StepEvent::Interrupt { name: None }, "interrupt");
        check(2, StepEvent::InterruptExit { name: name("eth0") }, "eth0 returns");
        check(2, StepEvent::InterruptExit { name: None }, "interrupt returns");
        let fifo = |comm: &str, pid| NamedTask {
            policy: Policy::Fifo,
            priority: Some(95),
            ..named_task(comm, pid)
        };
        let switch = |to| StepEvent::Switch { from: None, to };
        check(1, switch(fifo("spin", 7)), "switch to spin[7] fifo 95");
        check(0, switch(fifo("wakescope", 400)), "switch to wakescope[400]");
        check(1, switch(named_task("swapper", 0)), "CPU goes idle");
        let runs = |page_faults| StepEvent::Runs { task: fifo("wakescope", 400), page_faults };
        check(0, runs(0), "wakescope[400] runs");
        check(0, runs(1), "wakescope[400] runs after a page fault");
        check(0, runs(2_000), "wakescope[400] runs after 2,000 page faults");
    }

    #[test]
    fn what_happens_meanwhile_is_named() {
        let timer = |count| StepEvent::Timer { name: "hrtimer_wakeup".into(), count };
        check(1, timer(1), "hrtimer_wakeup");
        check(1, timer(1_200), "hrtimer_wakeup of 1,200 timers");
        check(1, StepEvent::Timer { name: String::new(), count: 2 }, "timer function of 2 timers");
        check(1, StepEvent::Nmi { name: String::new(), ns: 1_500 }, "NMI ends after 1.50 µs");
        check(1, StepEvent::Softirq { name: "RCU".into() }, "softirq RCU");
        check(1, StepEvent::SoftirqExit { name: "12".into() }, "softirq 12 ends");
        let nmi = StepEvent::Nmi { name: "watchdog".into(), ns: 1_500 };
        check(1, nmi, "NMI watchdog ends after 1.50 µs");
        check(1, StepEvent::Tracer { ns: 40_000 }, "tracer ends after 40.0 µs");
        let moved_to = |to| StepEvent::Moved { cpu: 3, to };
        check(1, moved_to(named_task("rm", 7)), "moved to CPU 3; rm[7] other running there");
        check(1, moved_to(named_task("swapper", 0)), "moved to CPU 3, which is idle");
        check(0, StepEvent::SchedEntry, "scheduler entered");
        check(1, StepEvent::LockWait, "waits for a lock");
        check(1, StepEvent::LockAcquired, "acquires the lock");
        check(0, StepEvent::Missing { count: 1 }, "1 event is missing below");
        check(0, StepEvent::Missing { count: 1_200 }, "1,200 events are missing below");
        check(1, StepEvent::LeftOut { count: 967 }, "… and 967 more");
    }
}
