//! What the tracer does at a switch, where wakeups end.

use wakescope_core::units::MonoNs;
use wakescope_decode::{GivenUpAt, KernelTask, Payload, Switch, SwitchedFrom};
use wakescope_model::image::TaskId;

use super::cpu::RunTimes;
use super::places::{self, comm, pid, policy};
use super::wakeup::State;
use super::{Followed, Tracepoints};

/// The stack of a task that went to sleep by itself is taken only if the wakeup is so late, nanoseconds:
/// such a task hardly ever held the wakeup up.
const LONG_SINCE: u64 = 250_000;

impl Tracepoints<'_> {
    /// A CPU was switched.
    pub(super) fn switch(
        &mut self,
        number: usize,
        now: u64,
        (from, preempted): (Option<TaskId>, bool),
        to: Option<TaskId>,
    ) {
        if self.cpus[number].open == 0 {
            return;
        }
        match from.filter(|_| self.followed == Followed::Probes) {
            Some(from) if preempted => {
                let quota = self.quota(from);
                let wakeup = &mut self.wakeups[from.index()];
                if wakeup.state != State::Idle {
                    wakeup.begin_quota(quota, &self.cpus[number], now);
                }
            }
            Some(from) => self.switched_out(from, to),
            None => {}
        }
        let next = self.switched_from(to);
        let next = KernelTask {
            pid: next.pid,
            prio: next.prio,
            policy: next.policy,
            comm: comm(self.image.task_name(to)),
        };
        let throttled = self.cpus[number].holds_back(to.map(|_| next.prio));
        let payload = Payload::Switch(Switch { prev: self.switched_from(from), next, throttled });
        let cpu = &mut self.cpus[number];
        cpu.event(now, payload);
        cpu.keep_switch();
        // A softirq that is switched away from has the time of other tasks in it.
        cpu.softirq_entry = None;
        cpu.switched = now;
        if let Some(to) = to {
            self.switched_in(number, now, (from, preempted), to);
        }
    }

    /// A task as the scheduler's events have it, without its name.
    pub(super) fn switched_from(&self, task: Option<TaskId>) -> SwitchedFrom {
        SwitchedFrom {
            pid: pid(task),
            prio: task.map_or(120, |task| self.prios[task.index()]),
            policy: task.map_or(0, |task| policy(self.image.tasks[task.index()].policy)),
        }
    }

    fn switched_in(
        &mut self,
        number: usize,
        now: u64,
        (from, preempted): (Option<TaskId>, bool),
        to: TaskId,
    ) {
        let cpu = &self.cpus[number];
        let wakeup = &mut self.wakeups[to.index()];
        if wakeup.state != State::Idle {
            wakeup.end_quota(cpu, now);
        }
        if wakeup.state != State::Woken {
            return;
        }
        if self.followed == Followed::Threads
            && wakeup.preempted_before != self.preempted[to.index()]
        {
            // It was awake when it was woken, and had to give way since.
            return self.give_up(to);
        }
        wakeup.state = State::Running;
        wakeup.marks.switch_in = Some(MonoNs(now));
        wakeup.faults_before = wakeup.faults;
        wakeup.add_stolen(cpu.steal_ns(), now);
        wakeup.marks.sched_entry =
            Some(MonoNs(cpu.sched_entry)).filter(|entry| entry.0 >= wakeup.woken && entry.0 != 0);
        if let Some(from) = from {
            self.look_at_last(number, now, (from, preempted), to);
        }
        if self.followed == Followed::Threads {
            self.end(to, now);
        }
    }

    /// Who gave the CPU up, and where.
    fn look_at_last(
        &mut self,
        number: usize,
        now: u64,
        (from, preempted): (TaskId, bool),
        to: TaskId,
    ) {
        let cpu = &self.cpus[number];
        let wakeup = &mut self.wakeups[to.index()];
        let late_ns = now.saturating_sub(wakeup.expiry);
        if late_ns < self.keep_ns || (!preempted && late_ns < LONG_SINCE) {
            return;
        }
        let stack = match cpu.place.filter(|place| place.task == Some(from)) {
            Some(place) => places::switched_stack(self.image, &self.addresses, &place),
            None => Vec::new(),
        };
        // A task that was preempted still has the same stack when it goes on, so the tracer takes it then; not
        // of threads that it has not named, whose sleep it does not see.
        let given_up = GivenUpAt { pid: pid(Some(from)), stack, user_stack: Vec::new() };
        let is_later = preempted && self.followed == Followed::Probes;
        wakeup.given_up = Some((given_up, is_later));
    }

    fn switched_out(&mut self, task: TaskId, next: Option<TaskId>) {
        let wakeup = &mut self.wakeups[task.index()];
        if wakeup.state == State::Idle {
            return;
        }
        if let Some((given_up, true)) = &mut wakeup.given_up {
            if given_up.pid != pid(next) {
                given_up.stack.clear();
            }
        }
        self.answered(task);
    }

    /// Ends a wakeup if the probe has said that it has answered. Whether it has.
    pub(super) fn answered(&mut self, task: TaskId) -> bool {
        let wakeup = &self.wakeups[task.index()];
        let Some((_, response)) = wakeup.answer.filter(|&(due, _)| due == wakeup.marks.due.0)
        else {
            return false;
        };
        self.end(task, response);
        true
    }

    /// Ends a wakeup with this response.
    fn end(&mut self, task: TaskId, response: u64) {
        let number = self.wakeups[task.index()].cpu;
        self.cpus[number].open -= 1;
        let steal_after = self.cpus[number].steal_ns();
        let wakeup = &mut self.wakeups[task.index()];
        wakeup.marks.response = MonoNs(response);
        wakeup.steal_after = steal_after;
        wakeup.add_stolen(steal_after, response);
        wakeup.state = State::Idle;
        self.ended.push(wakeup.marks);
        if response.saturating_sub(wakeup.marks.due.0) >= self.keep_ns {
            let kernel_task = self.kernel_task(task);
            let wakeup = &mut self.wakeups[task.index()];
            self.late.push(wakeup.record(kernel_task, &self.cpus[number]));
        }
    }

    /// The task as the kernel describes it.
    pub(super) fn kernel_task(&self, task: TaskId) -> KernelTask {
        let image_task = &self.image.tasks[task.index()];
        KernelTask {
            pid: pid(Some(task)),
            prio: self.prios[task.index()],
            policy: policy(image_task.policy),
            comm: comm(&image_task.name),
        }
    }

    /// Who runs on the CPU of that number; nobody where it is idle.
    pub(super) fn runs_on(&self, number: usize) -> Option<KernelTask> {
        self.cpus[number].runs.map(|task| self.kernel_task(task))
    }

    /// How long each task has run on that CPU so far, which is known where threads of others are followed.
    pub(super) fn run_times(&self, number: usize, now: u64) -> Option<RunTimes> {
        let is_known = self.followed == Followed::Threads;
        is_known.then(|| self.cpus[number].run_times(self.runs_on(number), now))
    }

    /// Whether a wakeup of a probe that was due then has begun, and its end was not seen yet.
    pub fn is_open(&self, task: TaskId, due: u64) -> bool {
        let wakeup = &self.wakeups[task.index()];
        wakeup.state != State::Idle && wakeup.marks.due.0 == due
    }

    /// The end of a wakeup was not seen.
    pub(super) fn give_up(&mut self, task: TaskId) {
        let wakeup = &mut self.wakeups[task.index()];
        wakeup.state = State::Idle;
        self.cpus[wakeup.cpu].open -= 1;
        self.not_followed.push((task, wakeup.marks.due.0));
    }
}
