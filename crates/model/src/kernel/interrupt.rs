//! Interrupts and softirqs.

use super::frame::{After, Round};
use super::{
    Environment, Frame, FrameKind, HARDIRQ_UNIT, Kernel, NMI_UNIT, NeedResched, SOFTIRQ_UNIT, Stage,
};
use crate::image::{CpuId, Image, Op, SourceId, SourceKind};
use crate::trace::Transition;

/// After so many rounds in a row, softirqs are left to their thread: MAX_SOFTIRQ_RESTART.
const MOST_ROUNDS: u8 = 10;

/// All fields of the preempt count that say that the CPU is in an interrupt or has softirqs off.
const NO_SOFTIRQS: u32 = 0x00ff_ff00;

impl Kernel {
    /// An interrupt arrives at a CPU. Whether it is taken at once, so that what takes time there is to
    /// be interrupted by [`Self::pause`].
    pub fn raise(
        &mut self,
        image: &Image,
        cpu: CpuId,
        source: SourceId,
        env: &mut impl Environment,
    ) -> bool {
        self.cpu(cpu).pending |= 1 << source.0;
        env.observe(cpu, Transition::Raised(source));
        self.takes(image, cpu, source)
    }

    /// The first interrupt that waits and can be taken.
    pub(super) fn next_interrupt(&self, image: &Image, cpu: CpuId) -> Option<SourceId> {
        let mut pending = self.cpus[cpu.index()].pending;
        while pending != 0 {
            let number = pending.trailing_zeros();
            let source = SourceId(u16::try_from(number).unwrap_or(0));
            if self.takes(image, cpu, source) {
                return Some(source);
            }
            pending &= pending - 1;
        }
        None
    }

    pub(super) fn take(
        &mut self,
        image: &Image,
        cpu: CpuId,
        source: SourceId,
        env: &mut impl Environment,
    ) {
        let was_idle = self.top(cpu).is_none();
        self.cpu(cpu).pending &= !(1 << source.0);
        if env.wants_places() {
            env.place(cpu, self.running(image, cpu));
        }
        env.observe(cpu, Transition::Taken(source));
        let kind = image.sources[source.index()].kind;
        self.cpu(cpu).count += unit(kind);
        let mut frame =
            Frame::new(FrameKind::Interrupt(source), image.sources[source.index()].code);
        if was_idle && kind != SourceKind::Steal {
            frame.stage = Stage::LeavingIdle;
        }
        self.push(cpu, frame);
    }

    /// The interrupt on top comes to another stage.
    pub(super) fn enter_stage(
        &mut self,
        cpu: CpuId,
        stage: Stage,
        what: Transition,
        env: &mut impl Environment,
    ) {
        if let Some(top) = self.top_mut(cpu) {
            top.stage = stage;
        }
        env.observe(cpu, what);
    }

    pub(super) fn leave_interrupt(
        &mut self,
        image: &Image,
        cpu: CpuId,
        source: SourceId,
        env: &mut impl Environment,
    ) {
        let kind = image.sources[source.index()].kind;
        let state = self.cpu(cpu);
        state.frames.pop();
        state.count -= unit(kind);
        env.observe(cpu, Transition::Returned(source));
        // Neither returns through the kernel's own way out.
        if matches!(kind, SourceKind::Nmi | SourceKind::Steal) {
            return;
        }
        if self.begin_softirqs(image, cpu, After::Interrupt, env) {
            return;
        }
        self.return_from_interrupt(image, cpu, env);
    }

    /// The last point of an interrupt: whether the scheduler is called before what was interrupted
    /// goes on.
    fn return_from_interrupt(&mut self, image: &Image, cpu: CpuId, env: &mut impl Environment) {
        let state = &self.cpus[cpu.index()];
        let need = state.need_resched;
        // An idle CPU looks for itself.
        if need == NeedResched::No || !state.frames.is_empty() || state.current.is_none() {
            return;
        }
        let is_user = matches!(self.top(cpu).and_then(|top| top.op(image)), Some(Op::User(_)));
        let may_leave_kernel = image.rules.interrupt_return_schedules
            && need == NeedResched::Now
            && state.count == 0
            && !self.irqs_off(cpu);
        if is_user || may_leave_kernel {
            self.enter_scheduler(cpu, true, env);
        }
    }

    /// Begins with the first softirq that was raised, if they may run. Whether one has begun.
    fn begin_softirqs(
        &mut self,
        image: &Image,
        cpu: CpuId,
        after: After,
        env: &mut impl Environment,
    ) -> bool {
        let state = &self.cpus[cpu.index()];
        if state.softirqs == 0 || state.count & NO_SOFTIRQS != 0 {
            return false;
        }
        if image.rules.softirqs_are_threads {
            // Who has them off runs them once it enables them.
            if state.bh_sections == 0 {
                self.wake_softirq_thread(image, cpu, env);
            }
            return false;
        }
        self.cpu(cpu).count += SOFTIRQ_UNIT;
        self.begin_round(image, cpu, 1, after, env)
    }

    /// All that were raised are to run, whatever they raise.
    fn begin_round(
        &mut self,
        image: &Image,
        cpu: CpuId,
        count: u8,
        after: After,
        env: &mut impl Environment,
    ) -> bool {
        let left = std::mem::take(&mut self.cpu(cpu).softirqs);
        self.next_softirq(image, cpu, Round { left, count }, after, env)
    }

    fn next_softirq(
        &mut self,
        image: &Image,
        cpu: CpuId,
        mut round: Round,
        after: After,
        env: &mut impl Environment,
    ) -> bool {
        while round.left != 0 {
            let number = u8::try_from(round.left.trailing_zeros()).unwrap_or(0);
            round.left &= round.left - 1;
            // Nothing is there to do for one that no scenario describes.
            let code = image.softirqs.get(usize::from(number)).copied().flatten();
            if let Some(code) = code {
                env.observe(cpu, Transition::SoftirqBegin(number));
                self.push(cpu, Frame::new(FrameKind::Softirq { number, round, after }, code));
                return true;
            }
        }
        self.end_round(image, cpu, round, after, env)
    }

    /// Those that were raised meanwhile run in another round, unless somebody is to run or there were too many:
    /// then they are left to their thread (`handle_softirqs`, kernel/softirq.c, 6.18). The time after which the
    /// kernel begins no other round, 2 ms of its clock, is left out.
    fn end_round(
        &mut self,
        image: &Image,
        cpu: CpuId,
        round: Round,
        after: After,
        env: &mut impl Environment,
    ) -> bool {
        let state = &self.cpus[cpu.index()];
        if state.softirqs != 0 {
            if round.count < MOST_ROUNDS && state.need_resched != NeedResched::Now {
                return self.begin_round(image, cpu, round.count + 1, after, env);
            }
            self.wake_softirq_thread(image, cpu, env);
        }
        self.leave_softirqs(image, cpu, after, env);
        false
    }

    pub(super) fn end_softirq(
        &mut self,
        image: &Image,
        cpu: CpuId,
        number: u8,
        round: Round,
        after: After,
        env: &mut impl Environment,
    ) {
        self.cpu(cpu).frames.pop();
        env.observe(cpu, Transition::SoftirqEnd(number));
        self.next_softirq(image, cpu, round, after, env);
    }

    /// No softirq runs any more.
    fn leave_softirqs(
        &mut self,
        image: &Image,
        cpu: CpuId,
        after: After,
        env: &mut impl Environment,
    ) {
        self.lower_count(cpu, SOFTIRQ_UNIT, env);
        match after {
            After::Interrupt => self.return_from_interrupt(image, cpu, env),
            After::BhEnable | After::Thread => self.preempt_if_enabled(image, cpu, env),
        }
    }

    pub(super) fn softirqs_after_enable(
        &mut self,
        image: &Image,
        cpu: CpuId,
        env: &mut impl Environment,
    ) {
        if !self.begin_softirqs(image, cpu, After::BhEnable, env) {
            self.preempt_if_enabled(image, cpu, env);
        }
    }

    pub(super) fn run_softirqs_in_thread(
        &mut self,
        image: &Image,
        cpu: CpuId,
        env: &mut impl Environment,
    ) {
        self.begin_softirqs(image, cpu, After::Thread, env);
    }

    pub(super) fn wake_softirq_thread(
        &mut self,
        image: &Image,
        cpu: CpuId,
        env: &mut impl Environment,
    ) {
        self.announce(image, cpu, image.softirq_work[cpu.index()], env);
    }

    /// The tick: whoever was to be preempted at leisure is preempted now. Then it sees to who has used up the
    /// time that is due to it, so that the lazy flag of that one waits for the next tick (`sched_tick`,
    /// kernel/sched/core.c, 6.18).
    pub(super) fn tick(&mut self, image: &Image, cpu: CpuId, env: &mut impl Environment) {
        let Some(task) = self.cpus[cpu.index()].current else { return };
        if self.cpus[cpu.index()].need_resched == NeedResched::Lazy {
            self.set_need(cpu, cpu, NeedResched::Now, env);
        }
        self.charge(image, cpu, task, true, env);
        if !self.may_run(image, cpu, task) {
            self.set_need(cpu, cpu, NeedResched::Now, env);
        }
        let others_wait = self.somebody_waits(image, cpu);
        let used_up = env.has_used_its_slice(cpu, task, others_wait) && others_wait;
        if used_up {
            let need = self.need_for(image, task);
            self.set_need(cpu, cpu, need, env);
            self.task(task).frame.rotates = true;
        }
    }
}

/// What an interrupt adds to the preempt count.
fn unit(kind: SourceKind) -> u32 {
    match kind {
        SourceKind::Steal => 0,
        SourceKind::Nmi => NMI_UNIT + HARDIRQ_UNIT,
        _ => HARDIRQ_UNIT,
    }
}
