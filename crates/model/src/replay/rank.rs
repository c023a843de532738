//! What to break up next: the functions behind the latest wakeup, and what is left without them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Breaks, Course, Cut, Section, Wait, cuts};

/// What a replay is made of.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// What the CPU did.
    pub course: &'a Course,
    /// Its sections, in order of their beginnings.
    pub sections: &'a [Section],
    /// Moments at which a task is in a function and could give up the CPU, in order.
    pub mentions: &'a [Mention],
}

/// A task is in a function, with interrupts on and a preempt count of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mention {
    /// When, ns.
    pub at_ns: u64,
    /// The function's number.
    pub function: u32,
}

/// A step: what is broken, in addition to what was before. `F` is what functions are known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<F> {
    /// Functions. Without any of them, the latest wakeup is hardly earlier.
    pub functions: Vec<F>,
    /// How late the latest wakeup is before, ns.
    pub before_ns: u64,
    /// How late the latest wakeup is with it, ns.
    pub after_ns: u64,
}

/// The latest wakeup that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest<F> {
    /// How late it is, ns.
    pub ns: u64,
    /// What is behind it and can still be broken.
    pub functions: Vec<F>,
}

/// Wakeups of which what is behind them is broken for one step, at most. Where several are about as late, what
/// is behind one of them alone gains nothing.
const MOST_WAKEUPS: usize = 3;

/// At most `most` steps. Each breaks what is behind the latest wakeup that is left, as `latest` finds it where some
/// functions are broken, and goes on so until that gains more than `error_percent`, which a replay may be off by. It
/// ends where nothing that could be broken is left, or nothing gains anything.
pub fn ranking<F: Clone + Ord>(
    most: usize,
    error_percent: u64,
    latest: &dyn Fn(&BTreeSet<F>) -> Option<Latest<F>>,
) -> Vec<Step<F>> {
    let mut broken = BTreeSet::new();
    let mut steps = Vec::new();
    let mut left = latest(&broken);
    while let Some(before) = left.take().filter(|_| steps.len() < most) {
        let Some((functions, after)) = step(&broken, &before, error_percent, latest) else { break };
        broken.extend(functions.iter().cloned());
        steps.push(Step { functions, before_ns: before.ns, after_ns: ns(after.as_ref()) });
        left = after;
    }
    steps
}

/// What gains something beside what is broken already, and the latest wakeup that is left then.
fn step<F: Clone + Ord>(
    broken: &BTreeSet<F>,
    before: &Latest<F>,
    error_percent: u64,
    latest: &dyn Fn(&BTreeSet<F>) -> Option<Latest<F>>,
) -> Option<(Vec<F>, Option<Latest<F>>)> {
    if before.functions.is_empty() {
        return None;
    }
    let with = |parts: &[Vec<F>]| latest(&broken.iter().cloned().chain(parts.concat()).collect());
    let no_gain_ns = before.ns.saturating_mul(error_percent) / 100;
    // What is behind the latest wakeup, and behind what is the latest then.
    let mut parts = vec![before.functions.clone()];
    let mut after = with(&parts);
    while ns(after.as_ref()).saturating_add(no_gain_ns) >= before.ns {
        let more = after?.functions;
        if parts.len() >= MOST_WAKEUPS || more.is_empty() {
            return None;
        }
        parts.push(more);
        after = with(&parts);
    }
    // The last one gained something. What was broken before it may have been in vain.
    for part in (0..parts.len() - 1).rev() {
        let fewer = [&parts[..part], &parts[part + 1..]].concat();
        let left = with(&fewer);
        if ns(left.as_ref()) <= ns(after.as_ref()).saturating_add(no_gain_ns) {
            (parts, after) = (fewer, left);
        }
    }
    Some((parts.concat(), after))
}

/// How late it is; 0 if nobody is.
fn ns<F>(latest: Option<&Latest<F>>) -> u64 {
    latest.map_or(0, |latest| latest.ns)
}

impl Recorded<'_> {
    /// Where sections let go, and where functions ask whether somebody else is to run.
    pub(super) fn cuts(&self, breaks: &Breaks) -> Vec<Cut> {
        let mut all = cuts(self.sections, breaks);
        let mut last: BTreeMap<u32, u64> = breaks.functions.keys().map(|&id| (id, 0)).collect();
        for mention in self.mentions {
            let Some(&every) = breaks.functions.get(&mention.function) else { continue };
            let last = last.entry(mention.function).or_default();
            if mention.at_ns.saturating_sub(*last) >= every {
                *last = mention.at_ns;
                all.push(Cut { at_ns: mention.at_ns, irqs: false, preempt: false, back_ns: None });
            }
        }
        all.sort_by_key(|cut| cut.at_ns);
        all
    }

    /// What is behind the wait of a wakeup that is due at the beginning of `part`: what keeps the CPU for longer than
    /// `every_ns`, and is not broken up so often yet.
    pub fn behind(&self, part: &Wait, every_ns: u64, breaks: &Breaks) -> Vec<u32> {
        let wait_ns = part.longest.map_or(0, |wait| wait.ns);
        self.keeping(part.from_ns, part.from_ns.saturating_add(wait_ns), every_ns, breaks)
    }

    /// What keeps the CPU for longer than `every_ns` between two times, and is not broken up so often yet.
    pub(super) fn keeping(
        &self,
        from_ns: u64,
        to_ns: u64,
        every_ns: u64,
        breaks: &Breaks,
    ) -> Vec<u32> {
        let mut functions: Vec<u32> = Vec::new();
        let mut add = |id: u32| {
            let is_broken = breaks.functions.get(&id).is_some_and(|own_ns| *own_ns <= every_ns);
            if !is_broken && !functions.contains(&id) {
                functions.push(id);
            }
        };
        let ahead = self.sections.partition_point(|section| section.from_ns < to_ns);
        let times = from_ns..to_ns;
        let mut section_ns = 0;
        for section in &self.sections[..ahead] {
            let ns = section.ns_in(&times);
            if ns <= every_ns {
                continue;
            }
            section_ns = section_ns.max(ns);
            // What comes into it is named by itself.
            if section.own_ns_in(times.clone()) > every_ns {
                section.owner.into_iter().for_each(&mut add);
            }
        }
        // The rest of the wait, where the CPU could be given up if somebody asked.
        if section_ns < (to_ns - from_ns) / 2 {
            self.asking_most_often(from_ns, to_ns).into_iter().for_each(&mut add);
        }
        functions
    }

    /// The function that leaves the shortest of all times in which nobody could ask.
    fn asking_most_often(&self, from_ns: u64, to_ns: u64) -> Option<u32> {
        let begin = self.mentions.partition_point(|mention| mention.at_ns <= from_ns);
        let end = self.mentions.partition_point(|mention| mention.at_ns < to_ns);
        let mut gaps: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for mention in &self.mentions[begin..end] {
            let (last, gap) = gaps.entry(mention.function).or_insert((from_ns, 0));
            *gap = (*gap).max(mention.at_ns - *last);
            *last = mention.at_ns;
        }
        let gap_of = |(last, gap): (u64, u64)| gap.max(to_ns - last);
        gaps.into_iter().min_by_key(|&(_, of)| gap_of(of)).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::section::tests::{nested, of as section};
    use super::*;
    use crate::replay::{At, Point, Stretch, waits};
    use crate::rules::Rules;

    /// What goes on in a kernel from one time to the next: `i` interrupts off, `p` preemption off, `k`
    /// neither, `u` a program.
    fn course(parts: &[(char, u64)]) -> Course {
        let mut course = Course::default();
        for &(what, length) in parts {
            course.stretches.push(Stretch {
                from_ns: course.end_ns,
                irqs_off: what == 'i',
                preempt_off: matches!(what, 'i' | 'p'),
                at: if what == 'u' { At::User } else { At::Kernel },
                task: 1,
                point: if what == 'u' { Point::Looks } else { Point::None },
                counts: true,
                is_own: false,
            });
            course.end_ns += length;
        }
        course
    }

    /// Without a way: who waits longest is latest; of two, the first.
    fn steps(recorded: &Recorded<'_>, rules: &Rules, every_ns: u64, most: usize) -> Vec<Step<u32>> {
        let latest = |broken: &BTreeSet<u32>| {
            let functions = broken.iter().map(|&id| (id, every_ns)).collect();
            let breaks = Breaks { functions, ..Breaks::default() };
            let parts = waits(recorded.course, rules, &recorded.cuts(&breaks));
            let known = parts.iter().filter(|part| part.counts);
            let known = known.filter_map(|part| Some((part, part.longest?.ns)));
            let (part, ns) = known.rev().max_by_key(|(_, ns)| *ns)?;
            Some(Latest { ns, functions: recorded.behind(part, every_ns, &breaks) })
        };
        ranking(most, 1, &latest)
    }

    #[test]
    fn the_longest_wait_is_broken_first_and_what_it_takes_is_named_together() {
        let course = course(&[('k', 100), ('i', 600), ('p', 50), ('u', 100), ('p', 90), ('u', 60)]);
        let sections =
            [section(true, 100, 700, 1), section(false, 100, 750, 2), section(false, 850, 940, 3)];
        let recorded = Recorded { course: &course, sections: &sections, mentions: &[] };
        let full = Rules::named("full").unwrap();
        let steps_of = |every_ns| steps(&recorded, &full, every_ns, 5);
        let step = |functions: &[u32], before_ns, after_ns| Step {
            functions: functions.into(),
            before_ns,
            after_ns,
        };
        assert_eq!(steps_of(20), [step(&[1, 2], 650, 90), step(&[3], 90, 20)]);
        // Nobody is behind the rest.
        assert_eq!(steps_of(700), []);
    }

    #[test]
    fn a_softirq_that_came_into_a_section_is_named_and_not_whose_section_it_is() {
        // 6.1, full, launch: a softirq took 28.6 of 32.6 us of a section of `copy_page_range`, which lets go of its lock
        // by itself; without it none lasted longer than 3.8 us.
        let course = course(&[('k', 100), ('p', 32_600), ('k', 100)]);
        let softirq = section(false, 3_600, 32_200, 2);
        let sections = nested(section(false, 100, 32_700, 1), softirq);
        let recorded = Recorded { course: &course, sections: &sections, mentions: &[] };
        let full = Rules::named("full").unwrap();
        let steps = steps(&recorded, &full, 10_000, 5);
        // The rest of the section comes behind what the softirq is allowed.
        let after_ns = 3_500 + 10_000 + 500;
        assert_eq!(steps, [Step { functions: vec![2], before_ns: 32_600, after_ns }]);
    }

    #[test]
    fn what_is_behind_wakeups_that_are_about_as_late_is_one_step() {
        // Functions, and how late a wakeup is until all of them are broken. 0 cannot be.
        let ranked = |wakeups: &[(&[u32], u64)]| {
            let latest = |broken: &BTreeSet<u32>| {
                let whole = |of: &&(&[u32], u64)| !of.0.iter().all(|id| broken.contains(id));
                let (of, ns) = wakeups.iter().filter(whole).max_by_key(|(_, ns)| *ns)?;
                let left = of.iter().copied().filter(|id| *id > 0 && !broken.contains(id));
                // One at a time, as where the next is seen only if the first lets go.
                Some(Latest { ns: *ns, functions: left.take(1).collect() })
            };
            let steps = ranking(3, 1, &latest).into_iter();
            steps.map(|step| (step.functions, step.before_ns, step.after_ns)).collect::<Vec<_>>()
        };
        let rest: (&[u32], u64) = (&[0], 10);
        for (wakeups, want) in [
            // Two that are as late, to 1 %.
            (&[(&[1][..], 500), (&[2], 495), rest][..], vec![(vec![1, 2], 500, 10)]),
            (&[(&[1], 500), (&[2], 494)], vec![(vec![1], 500, 494), (vec![2], 494, 0)]),
            // One that two functions hold up.
            (&[(&[1, 2], 500), (&[3], 50)], vec![(vec![1, 2], 500, 50), (vec![3], 50, 0)]),
            // More than three, of which nobody can say what gains something.
            (&[(&[1], 500), (&[2], 499), (&[3], 498), (&[4], 497)], vec![]),
            // Nothing that could be broken is behind the next.
            (&[(&[1], 500), (&[0], 494)], vec![(vec![1], 500, 494)]),
            (&[(&[1], 500), (&[0], 495)], vec![]),
            (&[rest], vec![]),
        ] {
            assert_eq!(ranked(wakeups), want, "{wakeups:?}");
        }
    }

    #[test]
    fn what_was_broken_in_vain_is_in_no_step() {
        // The first function is named, and the second one helps alone.
        let latest = |broken: &BTreeSet<u32>| {
            let ns = if broken.contains(&2) { 100 } else { 500 };
            let next = if broken.contains(&1) { 2 } else { 1 };
            Some(Latest { ns, functions: if ns == 500 { vec![next] } else { vec![] } })
        };
        let step = Step { functions: vec![2], before_ns: 500, after_ns: 100 };
        assert_eq!(ranking(3, 1, &latest), [step]);
    }

    #[test]
    fn without_preemption_a_function_that_asks_is_proposed() {
        let course = course(&[('u', 100), ('k', 600), ('u', 100)]);
        let mention = |at_ns, function| Mention { at_ns, function };
        let mentions = [mention(150, 5), mention(300, 5), mention(350, 6), mention(500, 5)];
        let recorded = Recorded { course: &course, sections: &[], mentions: &mentions };
        let none = Rules::named("none").unwrap();
        let steps = steps(&recorded, &none, 20, 1);
        assert_eq!(steps, [Step { functions: vec![5], before_ns: 600, after_ns: 200 }]);
    }
}
