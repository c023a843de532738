//! What the kernel asks of chance, answered from a list.

use std::cell::RefCell;

use wakescope_core::random::Random;

use super::choice::Sleeper;
use crate::image::{BudgetId, CountId, CpuId, Image, LOCAL_TIMER, SourceId, TaskId};
use crate::kernel::{Environment, Sleep, Violation};
use crate::scenario::{Count, TaskPolicy};
use crate::trace::Transition;

/// The checker's [`Environment`]. Each question has a number of answers. Those that are given are used
/// first, then the first answer of each question, or a random one; all are noted. So the next list of
/// answers follows from the last, until all have been given.
#[derive(Clone, Debug)]
pub(super) struct Script<'i> {
    image: &'i Image,
    asked: RefCell<Asked>,
    /// Tasks whose sleep may have ended, at the beginning of the step.
    pub(super) sleepers: Vec<Sleeper>,
    /// Budgets that were used up somewhere then, so that their period may have ended.
    pub(super) used_up: Vec<BudgetId>,
    /// Whether the tick may be due.
    pub(super) ticks: bool,
    /// CPUs that were sent a reschedule interrupt: a bit for each.
    pub(super) sent: u64,
    pub(super) violation: Option<(Violation, CpuId)>,
    pub(super) seen: Seen,
    /// Everything that happens, if somebody wants to know.
    pub(super) log: Option<Vec<(CpuId, Transition)>>,
}

/// What the checker looks for among the transitions of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// A task has done a unit of its work, or responded.
    pub(super) work: Option<TaskId>,
    /// A lock is about to be dropped in a loop.
    pub(super) breaks_lock: bool,
}

#[derive(Clone, Debug, Default)]
struct Asked {
    /// The answers, and among how many each was.
    answers: Vec<(u8, u8)>,
    next: usize,
    random: Option<Random>,
}

impl<'i> Script<'i> {
    /// All questions that are not in the list get their first answer.
    pub(super) fn new(image: &'i Image) -> Self {
        Self {
            image,
            asked: RefCell::default(),
            sleepers: Vec::new(),
            used_up: Vec::new(),
            ticks: false,
            sent: 0,
            violation: None,
            seen: Seen::default(),
            log: None,
        }
    }

    /// They get a random one.
    pub(super) fn random(image: &'i Image, random: Random) -> Self {
        let script = Self::new(image);
        script.asked.borrow_mut().random = Some(random);
        script
    }

    /// Begins a step with these answers.
    pub(super) fn begin(&mut self, answers: &[u8]) {
        let asked = self.asked.get_mut();
        asked.answers.clear();
        asked.answers.extend(answers.iter().map(|&answer| (answer, u8::MAX)));
        self.rewind();
    }

    /// Begins the same step with the next list of answers; `false` if all have been given.
    pub(super) fn begin_next(&mut self) -> bool {
        let answers = &mut self.asked.get_mut().answers;
        while let Some((answer, among)) = answers.pop() {
            if answer + 1 < among {
                answers.push((answer + 1, among));
                self.rewind();
                return true;
            }
        }
        false
    }

    fn rewind(&mut self) {
        self.asked.get_mut().next = 0;
        self.sent = 0;
        self.violation = None;
        self.seen = Seen::default();
    }

    /// The answers that were given.
    pub(super) fn answers(&self) -> Box<[u8]> {
        let asked = self.asked.borrow();
        asked.answers[..asked.next].iter().map(|&(answer, _)| answer).collect()
    }

    /// A random number below `limit`, of the same sequence as random answers.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.asked.get_mut().random.as_mut().map_or(0, |random| random.below(limit))
    }

    /// One of so many answers: of more than fit into a byte, first which part of them, then which of that.
    fn ask(&self, among: usize) -> usize {
        const MOST: usize = u8::MAX as usize;
        if among < 2 {
            return 0;
        }
        if among > MOST {
            let before = MOST * self.ask(among.div_ceil(MOST));
            return before + self.ask(MOST.min(among - before));
        }
        let among = u8::try_from(among).unwrap_or(u8::MAX);
        let mut asked = self.asked.borrow_mut();
        let at = asked.next;
        asked.next += 1;
        let answer = match asked.answers.get(at) {
            Some(&(answer, _)) => answer.min(among - 1),
            None => match &mut asked.random {
                Some(random) => u8::try_from(random.below(among.into())).unwrap_or(0),
                None => 0,
            },
        };
        if let Some(place) = asked.answers.get_mut(at) {
            *place = (answer, among);
        } else {
            asked.answers.push((answer, among));
        }
        answer.into()
    }
}

impl Environment for Script<'_> {
    fn count(&mut self, count: CountId) -> u32 {
        match self.image.counts[count.index()] {
            Count::Fixed(count) => count,
            Count::Uniform(least, most) => {
                let more = self.ask(most.saturating_sub(least) as usize + 1);
                least + u32::try_from(more).unwrap_or(0)
            }
        }
    }

    fn observe(&mut self, cpu: CpuId, what: Transition) {
        match what {
            Transition::Work(task) | Transition::Response(task) => self.seen.work = Some(task),
            Transition::LockBroken(_) => self.seen.breaks_lock = true,
            _ => {}
        }
        if let Some(log) = &mut self.log {
            log.push((cpu, what));
        }
    }

    fn first_of_fair(&mut self, _cpu: CpuId, ready: &[TaskId]) -> usize {
        self.ask(ready.len())
    }

    fn fair_preempts(&mut self, _on: CpuId, _running: TaskId, _woken: TaskId) -> bool {
        self.ask(2) == 1
    }

    fn is_earlier(&self, _one: TaskId, _other: TaskId) -> bool {
        self.ask(2) == 1
    }

    fn sleep(&mut self, _cpu: CpuId, _task: TaskId, _how: Sleep) -> bool {
        true
    }

    fn next_sleeper(&mut self, cpu: CpuId, source: SourceId) -> Option<TaskId> {
        let reports = |&(_, on, by): &Sleeper| by == source && (on == cpu || by != LOCAL_TIMER);
        let candidates: Vec<usize> =
            (0..self.sleepers.len()).filter(|&at| reports(&self.sleepers[at])).collect();
        let answer = self.ask(candidates.len() + 1);
        let at = *candidates.get(answer.checked_sub(1)?)?;
        Some(self.sleepers.remove(at).0)
    }

    fn take_tick(&mut self, _cpu: CpuId) -> bool {
        self.ticks && self.ask(2) == 1
    }

    fn has_used_its_slice(&mut self, _cpu: CpuId, task: TaskId, others_wait: bool) -> bool {
        match self.image.tasks[task.index()].policy {
            TaskPolicy::Other(_) | TaskPolicy::RoundRobin(_) => others_wait && self.ask(2) == 1,
            TaskPolicy::Fifo(_) | TaskPolicy::Deadline(_) => false,
        }
    }

    fn is_used_up(&mut self, _cpu: CpuId, _budget: BudgetId, _runs: bool) -> bool {
        self.ask(2) == 1
    }

    fn next_period(&mut self, _cpu: CpuId) -> Option<BudgetId> {
        let answer = self.ask(self.used_up.len() + 1);
        let at = answer.checked_sub(1)?;
        Some(self.used_up.remove(at))
    }

    fn is_refilled(&mut self, _cpu: CpuId, _budget: BudgetId) -> bool {
        true
    }

    fn send_reschedule(&mut self, cpu: CpuId) {
        self.sent |= 1 << cpu.0;
    }

    fn granted(&mut self, _cpu: CpuId) {}

    fn violated(&mut self, cpu: CpuId, what: Violation) {
        self.violation.get_or_insert((what, cpu));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rules, Scenario};

    #[test]
    fn every_count_that_a_loop_may_have_is_an_answer_of_its_own() {
        let mut image = Image::new(&Scenario::default(), Rules::ALL[0]).unwrap();
        for (least, most) in [(0, 0), (0, 1), (0, 2), (3, 9), (1, 255), (0, 255), (2, 70_000)] {
            image.counts = vec![Count::Uniform(least, most)];
            let mut script = Script::new(&image);
            script.begin(&[]);
            let mut counts = Vec::new();
            loop {
                counts.push(script.count(CountId(0)));
                let answers = script.answers();
                if !script.begin_next() {
                    break;
                }
                // The answers repeat it.
                let mut again = Script::new(&image);
                again.begin(&answers);
                assert_eq!(again.count(CountId(0)), *counts.last().unwrap(), "{answers:?}");
            }
            assert_eq!(counts, (least..=most).collect::<Vec<_>>());
        }
    }
}
