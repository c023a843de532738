//! Where programs were that held up wakeups.

use std::fs;
use std::process::Command;

use wakescope_core::explain::{Cause, Culprit, Frame};

use crate::a_cpu;
use crate::common::bench::{Running, Test, skip};
use crate::common::following::{can_follow, explained};

/// Comes before the probe, and burns a few ms at a time in a function of its own.
const SPINNER: &str = "\
#include <sched.h>
#include <time.h>
volatile long turns;
__attribute__((noinline)) void burn(long count)
{
	while (count--)
		turns++;
}
__attribute__((noinline)) void burn_in_turns(void)
{
	burn(2000000);
	turns++;
}
int main(void)
{
	struct sched_param urgent = { .sched_priority = 95 };
	struct timespec pause = { 0, 10000000 };
	if (sched_setscheduler(0, SCHED_FIFO, &urgent))
		return 1;
	for (;;) {
		nanosleep(&pause, 0);
		burn_in_turns();
	}
}
";

#[test]
fn a_task_that_comes_first_is_shown_with_where_its_program_was() {
    let name = "a_task_that_comes_first_is_shown_with_where_its_program_was";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("explain-program");
    let spinner = test.dir.join("spinner");
    fs::write(test.dir.join("spinner.c"), SPINNER).unwrap();
    let built = Command::new("cc")
        // Each function with a frame of its own, by which stacks are walked.
        .args(["-O0", "-fno-omit-frame-pointer", "-o"])
        .arg(&spinner)
        .arg(test.dir.join("spinner.c"))
        .output();
    match built {
        Ok(ended) if ended.status.success() => {}
        _ => return skip(name, "no program can be compiled with cc"),
    }
    let cpu = a_cpu();
    let mut taskset = Command::new("taskset");
    taskset.args(["-c", &cpu]).arg(&spinner).current_dir(&test.dir);
    let mut spinning = Running::start(&mut taskset);
    // On a busy machine a run may have no stack that was taken while the spinner spun.
    for round in 0..5 {
        let (stacks, text) = spinner_stacks(&test, &cpu, &format!("run-{round}"));
        if spinning.has_ended() {
            return skip(name, "no real-time task may run here beside the probe");
        }
        if stacks.iter().any(|stack| burns(stack)) {
            assert!(text.contains("user stack: burn+0x"), "{text}");
            return;
        }
        assert!(round < 4, "{stacks:?}\n{text}");
    }
}

/// The spinner's stacks in the explanation of a run, and that as text.
fn spinner_stacks(test: &Test, cpu: &str, out: &str) -> (Vec<Vec<Frame>>, String) {
    let args = ["--duration", "2s", "--cpus", cpu, "--above", "500us", "--worst", "50"];
    let (run, text) = explained(test, &[&args[..], &["--episodes", "50", "--out", out]].concat());
    let shares = run.worst.iter().flat_map(|episode| &episode.blame);
    let of_spinner = shares.filter(|share| {
        let is_spinner = matches!(&share.culprit, Culprit::Task(task) if task.comm == "spinner");
        share.cause == Cause::HigherPriorityTask && is_spinner
    });
    (of_spinner.map(|share| share.user_stack.clone()).collect(), text)
}

fn burns(stack: &[Frame]) -> bool {
    let calls = ["burn", "burn_in_turns", "main"];
    let is_call = |(frame, call): (&Frame, &str)| frame.function.as_deref() == Some(call);
    stack.len() >= 3 && stack.iter().zip(calls).all(is_call)
}
