//! The theory of fixed priorities as a second oracle: M. Joseph and P. Pandya, "Finding response
//! times in a real-time system", 1986.

use super::*;
use crate::scenario::{Arrivals, Interrupt, InterruptKind};

/// A task that is released by an interrupt each `period` and computes for `work`, microseconds.
type Periodic = (u64, u64);

/// The worst response time of whoever comes after all of `tasks`: the least time that is as long as
/// what they need in it.
fn worst_response(tasks: &[Periodic]) -> u64 {
    let mut response = tasks.iter().map(|(_, work)| work).sum();
    loop {
        let needs = |&(period, work): &Periodic| u64::div_ceil(response, period) * work;
        let needed = tasks.iter().map(needs).sum();
        if needed == response {
            return response;
        }
        response = needed;
    }
}

/// Those tasks, the first with the highest priority, and a probe below them. Nothing else takes time.
fn task_set(tasks: &[Periodic]) -> Scenario {
    let mut scenario = scenario(vec![Step::User(us(1_000))]);
    let free = Length::Fixed(0);
    scenario.costs = Costs {
        interrupt_entry: free.clone(),
        interrupt_exit: free.clone(),
        timer_function: free.clone(),
        tick: free.clone(),
        schedule: free.clone(),
        switch: free.clone(),
        return_to_user: free.clone(),
        ipi: free,
    };
    // No period shares a factor with it, so that it meets the others at all distances.
    scenario.tasks[0].does = Does::Probe { period_ps: 1_009_007_000, path: None };
    scenario.tasks[0].policy = TaskPolicy::Fifo(1);
    for (index, &(period, work)) in tasks.iter().enumerate() {
        let name = format!("task{index}");
        let released = format!("released{index}");
        let priority = 90 - u8::try_from(index).unwrap();
        scenario.tasks.push(ScenarioTask {
            name: name.clone(),
            policy: TaskPolicy::Fifo(priority),
            does: Does::Path(name.clone()),
            ..ScenarioTask::default()
        });
        scenario.interrupts.push(Interrupt {
            name: released.clone(),
            kind: InterruptKind::Unthreaded,
            arrivals: Some(Arrivals::Periodic(period * 1_000)),
            cpu: None,
            handler: released.clone(),
        });
        let steps = vec![Step::Wait(released.clone()), Step::User(us(work))];
        scenario.paths.push(Path { name, steps });
        scenario.paths.push(Path { name: released.clone(), steps: vec![Step::Wake(released)] });
    }
    scenario
}

#[test]
fn response_times_are_those_of_the_theory() {
    let sets: [&[Periodic]; 4] = [
        &[(20, 5)],
        &[(10, 3), (14, 5)],
        &[(30, 5), (50, 11), (70, 9)],
        &[(40, 10), (100, 20), (150, 30), (260, 25)],
    ];
    for tasks in sets {
        let want = worst_response(tasks) * 1_000;
        for rules in ["none", "full", "rt"] {
            let image = Image::new(&task_set(tasks), Rules::named(rules).unwrap()).unwrap();
            let mut worst = 0;
            for seed in 0..10 {
                let mut keep = |sample: Sample| worst = worst.max(sample.latency_ns());
                let mut simulation = Simulation::new(&image, seed, Unwatched(&mut keep));
                simulation.run_until(Until { samples: 1_000, ns: u64::MAX }).unwrap();
            }
            assert!(worst <= want, "{tasks:?} {rules}: {worst} is more than {want}");
            // The probe seldom expires in the very moment in which all others do.
            assert!(worst * 100 >= want * 90, "{tasks:?} {rules}: {worst}, not about {want}");
        }
    }
}
