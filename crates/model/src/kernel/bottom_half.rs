//! `local_bh_disable` and `local_bh_enable`.
//!
//! Two ways. Most models count in the preempt count, so that nothing else runs on the CPU until softirqs
//! are on again. RT counts in the task, which can be preempted meanwhile. To keep the promise that no two
//! such sections of a CPU run at once, it takes a sleeping lock of the CPU (`softirq_ctrl.lock`), and with
//! it a priority where somebody more urgent waits. Threads of interrupts and those of softirqs take it,
//! too. Whoever gives it back first executes the softirqs that were raised meanwhile, with its own
//! priority. Since 6.18 a kernel can be built without that lock (`CONFIG_PREEMPT_RT_NEEDS_BH_LOCK`): such
//! code then only stays on its CPU.

use std::mem::replace;

use super::{Environment, Frame, FrameKind, Kernel, SOFTIRQ_BITS, SOFTIRQ_UNIT, Violation};
use crate::image::{CpuId, Image, LockId, TaskId};

/// Twice as much as serving a softirq adds, so that the preempt count shows which of them it was.
const BH_UNIT: u32 = 2 * SOFTIRQ_UNIT;

/// How often a task may disable them: `softirq_count` looks at the same bits on RT, of a count in the task.
const MOST_SECTIONS: u32 = SOFTIRQ_BITS / BH_UNIT;

impl Kernel {
    pub(super) fn disable_softirqs(
        &mut self,
        image: &Image,
        cpu: CpuId,
        env: &mut impl Environment,
    ) {
        if !image.rules.softirqs_are_threads {
            self.raise_count(cpu, BH_UNIT, env);
            return self.advance(cpu);
        }
        let Some(task) = self.task_on_top(cpu) else { return self.advance(cpu) };
        if self.tasks[task.index()].bh_depth == 0 {
            self.task(task).is_bound = true;
            let lock = image.bh_locks.get(cpu.index()).filter(|_| self.is_preemptible(cpu));
            if lock.is_some_and(|&lock| !self.lock_or_sleep(cpu, lock, true, env)) {
                return;
            }
        }
        if u32::from(self.tasks[task.index()].bh_depth) >= MOST_SECTIONS {
            return env.violated(cpu, Violation::Overflow);
        }
        self.task(task).bh_depth += 1;
        self.cpu(cpu).bh_sections += 1;
        self.advance(cpu);
    }

    pub(super) fn enable_softirqs(
        &mut self,
        image: &Image,
        cpu: CpuId,
        env: &mut impl Environment,
    ) {
        if !image.rules.softirqs_are_threads {
            self.lower_count(cpu, BH_UNIT, env);
            return self.softirqs_after_enable(image, cpu, env);
        }
        let Some(task) = self.task_on_top(cpu) else { return };
        let depth = self.tasks[task.index()].bh_depth;
        if depth == 0 {
            return env.violated(cpu, Violation::Underflow);
        }
        if let Some(softirqs) = image.softirqs_of_tasks.filter(|_| depth == 1) {
            let are_raised = self.are_softirqs_raised(image, cpu);
            if are_raised && self.is_preemptible(cpu) {
                let runs = Frame::new(FrameKind::Task, softirqs);
                let after = replace(&mut self.task(task).frame, runs);
                self.task(task).after_softirqs = Some(Box::new(after));
                return;
            }
            if are_raised {
                self.wake_softirq_thread(image, cpu, env);
            }
        }
        self.leave_section(image, cpu, task, env);
    }

    /// No softirq is left that the task has begun to execute when it enabled them; or one is.
    pub(super) fn end_softirqs_of_task(
        &mut self,
        image: &Image,
        cpu: CpuId,
        begin: u32,
        env: &mut impl Environment,
    ) {
        if self.are_softirqs_raised(image, cpu) {
            return self.go_to(cpu, begin);
        }
        let Some(task) = self.task_on_top(cpu) else { return };
        if let Some(after) = self.task(task).after_softirqs.take() {
            self.task(task).frame = *after;
        }
        self.leave_section(image, cpu, task, env);
    }

    fn leave_section(
        &mut self,
        image: &Image,
        cpu: CpuId,
        task: TaskId,
        env: &mut impl Environment,
    ) {
        let sections = &mut self.cpu(cpu).bh_sections;
        *sections = sections.saturating_sub(1);
        let state = self.task(task);
        state.bh_depth -= 1;
        if state.bh_depth == 0 {
            state.is_bound = false;
            let is_owned = |lock: &&LockId| self.locks[lock.index()].owner == Some(task);
            if let Some(&lock) = image.bh_locks.get(cpu.index()).filter(is_owned) {
                self.unlock_and_wake(image, cpu, lock, env);
            }
        }
        self.preempt_if_enabled(image, cpu, env);
    }

    /// The task that runs, unless something is on top of it.
    fn task_on_top(&self, cpu: CpuId) -> Option<TaskId> {
        let state = &self.cpus[cpu.index()];
        state.current.filter(|_| state.frames.is_empty())
    }

    fn is_preemptible(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].count == 0 && !self.irqs_off(cpu)
    }

    /// Whether a softirq was raised that a scenario describes.
    fn are_softirqs_raised(&self, image: &Image, cpu: CpuId) -> bool {
        let raised = self.cpus[cpu.index()].softirqs;
        image
            .softirqs
            .iter()
            .enumerate()
            .any(|(number, code)| code.is_some() && raised & (1 << number) != 0)
    }
}
