//! How much of what attribution says is true.
//!
//! Shares of blame have lengths and no places, so lengths are compared: of each share as much is right as
//! there is time in the wakeup that truly has this cause and this culprit, and that no other share was
//! given. The rest of the share is wrong, unless it says `unexplained`.
//!
//! Of kernel code that held the wakeup up, a tracer sees stacks at few points. A function that was on one
//! of these, and ran in the same section, while most of the section's time went to another function,
//! is counted apart: the cause is right, and the place is one of the section.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use wakescope_attribution::{Decision, Rule};
use wakescope_core::explain::{Cause, Culprit, Evidence, Phase, Share};
use wakescope_model::Image;
use wakescope_model::image::StackId;

use crate::tracepoints::places;
use crate::truth::{Answer, Stretch, Truth, Who};

/// What came of comparing many wakeups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// All wakeups, late or not.
    pub wakeups: u64,
    /// Those that were late, followed, and explained.
    pub late: u64,
    /// Of these, whose largest share has the right cause and culprit.
    pub right: u64,
    /// Of these, whose largest share names the right section, but another function in it.
    pub elsewhere: u64,
    /// Of these, confident wrong answers: the largest share has a wrong cause or culprit, although an edge
    /// or a stack is said to prove it.
    pub wrong: u64,
    /// Of these, whose largest share is wrong, but is only a bound: the rest between two points that were
    /// seen.
    pub wrong_bound: u64,
    /// Of these, whose largest share is unexplained.
    pub unexplained: u64,
    /// The time of all late wakeups, classified in the same way.
    pub ns: Nanoseconds,
    /// Late wakeups that the tracer did not follow.
    pub not_followed: u64,
    /// Late wakeups that only one of tracer and witness has: a fault of the oracle.
    pub unmatched: u64,
    /// Truths that did not add up: a fault of the oracle.
    pub faults: u64,
    /// Scenarios that broke a rule of the kernel, and were left out.
    pub broken: u64,
    /// Confident wrong answers, by what was true and what was said.
    pub classes: BTreeMap<(Cause, Cause), Class>,
    /// Wrong bounds in the same way.
    pub bounds: BTreeMap<(Cause, Cause), Class>,
    /// Late wakeups that are unexplained in the main, by what was true.
    pub unknown: BTreeMap<Cause, Class>,
    /// How often each cause was said to be the largest share, and how right that was.
    pub said: BTreeMap<Cause, Said>,
    /// The same by the rule that decided, also that it cannot be known.
    pub rules: BTreeMap<Rule, Said>,
    /// All shares, by the rule that gave most of each.
    pub given: BTreeMap<Rule, Given>,
}

/// How often a cause was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// With the right culprit.
    pub right: u64,
    /// With another function of the right section.
    pub elsewhere: u64,
    /// Wrongly, as a bound.
    pub wrong_bound: u64,
    /// Wrongly and confidently.
    pub wrong: u64,
    /// It was mainly this, and the blame is unexplained, though the tracer had lost no event.
    pub unexplained: u64,
    /// The same where it had lost events.
    pub unexplained_by_loss: u64,
}

/// Time of late wakeups, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nanoseconds {
    /// Blamed on its cause and culprit.
    pub right: u64,
    /// Blamed on another function of the same section.
    pub elsewhere: u64,
    /// Blamed on something else.
    pub wrong: u64,
    /// Blamed on nothing.
    pub unexplained: u64,
}

/// What a rule gave, whether or not it was the largest share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Shares.
    pub shares: u64,
    /// Their time, nanoseconds.
    pub ns: u64,
    /// What of it was right, or blamed on another function of the section.
    pub right_ns: u64,
}

impl Given {
    fn add(&mut self, other: Self) {
        self.shares += other.shares;
        self.ns += other.ns;
        self.right_ns += other.right_ns;
    }
}

/// Wrong answers of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    /// How many.
    pub count: u64,
    /// The first: what repeats it, what was true, and what was said.
    pub example: String,
}

/// A wakeup's blame, compared with the truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// How its time was blamed.
    pub ns: Nanoseconds,
    /// The cause of its largest share.
    pub said: Cause,
    /// The rule that gave that; `None` if there is no share.
    pub rule: Option<Rule>,
    /// How right that is.
    pub first: Verdict,
    /// Of each share, the rule that gave most of it, and what was given.
    pub given: Vec<(Rule, Given)>,
    /// For each cause, how long it truly was, and how much of that was blamed rightly, nanoseconds.
    pub causes: Vec<(Cause, u64, u64)>,
    /// The truth and the shares, in words; empty where the answer is right.
    pub text: String,
}

/// How right an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Cause and culprit are right.
    Right,
    /// The cause is right, and the function one of the section.
    Elsewhere,
    /// It was mainly this, and this was said.
    Wrong(Cause, Cause),
    /// The same, as a bound.
    WrongBound(Cause, Cause),
    /// It says nothing where it was mainly this.
    Unexplained(Cause),
}

/// Compares the shares of a wakeup, the largest first, with its truth.
///
/// A share is right where it lies on time of which it says what is true. One that is only a bound may have been
/// placed anywhere in a longer time: it is also right about as much of what is left as was truly of its kind. So
/// are the others, up to the amount that was taken from them at an unknown time.
pub fn score(image: &Image, truth: &Truth, decisions: &[Decision]) -> Compared {
    let mut matching = Matching::new(image, truth, decisions);
    let is_right = |image: &Image, answers: &[Answer], share: &Share| {
        answers.iter().any(|&answer| is_answer(image, answer, share))
    };
    let is_first =
        |image: &Image, answers: &[Answer], share: &Share| is_answer(image, answers[0], share);
    let sections = matching.stacks_by_cause();
    let is_elsewhere = |image: &Image, answers: &[Answer], share: &Share| {
        let stacks = sections.get(&answers[0].0).into_iter().flatten();
        answers.iter().any(|answer| answer.0 == share.cause)
            && is_of_section(image, stacks.chain(&truth.places), share)
    };
    matching.take_in_time(is_right, |g| &mut g.right);
    matching.take_in_time(is_elsewhere, |g| &mut g.elsewhere);
    matching.take_anywhere(is_first, |g| &mut g.right);
    matching.take_anywhere(is_right, |g| &mut g.right);
    matching.take_anywhere(is_elsewhere, |g| &mut g.elsewhere);
    matching.compared()
}

/// Time with the same answers.
struct True<'a> {
    answers: &'a [Answer],
    all_ns: u64,
    /// What of it was not found in any share.
    ns: u64,
}

/// A share, and what of it was found to be true.
struct Matched<'s> {
    share: &'s Share,
    stretches: &'s [(u64, u64)],
    rule: Rule,
    left: u64,
    right: u64,
    elsewhere: u64,
}

struct Matching<'a> {
    image: &'a Image,
    truth: &'a Truth,
    truths: Vec<True<'a>>,
    given: Vec<Matched<'a>>,
    /// How much was taken from shares at an unknown time, and is not found elsewhere, nanoseconds.
    displaced_ns: u64,
}

impl<'a> Matching<'a> {
    fn new(image: &'a Image, truth: &'a Truth, decisions: &'a [Decision]) -> Self {
        let mut truths: BTreeMap<&[Answer], u64> = BTreeMap::new();
        for stretch in &truth.stretches {
            *truths.entry(&stretch.answers).or_default() += stretch.ns;
        }
        let group = |(answers, ns)| True { answers, all_ns: ns, ns };
        let mut truths: Vec<True> = truths.into_iter().map(group).collect();
        // What has fewer right answers chooses first.
        truths.sort_by_key(|truth| truth.answers.len());
        let given = |Decision { share, rule, stretches }: &'a Decision| {
            let (left, rule) = (share.ns, *rule);
            Matched { share, stretches, rule, left, right: 0, elsewhere: 0 }
        };
        let amounts = decisions.iter().filter(|d| matches!(d.rule, Rule::StealClock | Rule::Quota));
        let displaced_ns = amounts.map(|decision| decision.share.ns).sum();
        Self { image, truth, truths, given: decisions.iter().map(given).collect(), displaced_ns }
    }

    /// The stacks that were there in this wakeup, for each cause.
    fn stacks_by_cause(&self) -> BTreeMap<Cause, BTreeSet<StackId>> {
        let mut stacks: BTreeMap<Cause, BTreeSet<StackId>> = BTreeMap::new();
        for &answer in self.truths.iter().flat_map(|truth| truth.answers) {
            if let Some(stack) = stack(answer) {
                stacks.entry(answer.0).or_default().insert(stack);
            }
        }
        stacks
    }

    /// Gives shares the time that they lie on and are right about, unless they have it.
    fn take_in_time(
        &mut self,
        is_right: impl Fn(&Image, &[Answer], &Share) -> bool,
        count: impl for<'g> Fn(&'g mut Matched<'a>) -> &'g mut u64,
    ) {
        for truth in &mut self.truths {
            for given in &mut self.given {
                if truth.ns == 0
                    || given.left == 0
                    || !is_right(self.image, truth.answers, given.share)
                {
                    continue;
                }
                let of_it = self.truth.stretches.iter().filter(|s| s.answers == truth.answers);
                let both: u64 = of_it.map(|stretch| overlap(stretch, given.stretches)).sum();
                let both = both.min(truth.ns).min(given.left);
                truth.ns -= both;
                given.left -= both;
                *count(given) += both;
            }
        }
    }

    /// Gives shares time that they are right about wherever it lies: bounds as much as is left, the others as
    /// much as was displaced.
    fn take_anywhere(
        &mut self,
        is_right: impl Fn(&Image, &[Answer], &Share) -> bool,
        count: impl for<'g> Fn(&'g mut Matched<'a>) -> &'g mut u64,
    ) {
        for truth in &mut self.truths {
            for given in &mut self.given {
                let is_bound = given.share.evidence == Evidence::Bound;
                let most_ns = if is_bound { u64::MAX } else { self.displaced_ns };
                let both = truth.ns.min(given.left).min(most_ns);
                if both > 0 && is_right(self.image, truth.answers, given.share) {
                    truth.ns -= both;
                    given.left -= both;
                    *count(given) += both;
                    if !is_bound {
                        self.displaced_ns -= both;
                    }
                }
            }
        }
    }

    fn compared(&self) -> Compared {
        let mut ns = Nanoseconds::default();
        for given in &self.given {
            ns.right += given.right;
            ns.elsewhere += given.elsewhere;
            match given.share.cause {
                Cause::Unexplained => ns.unexplained += given.left,
                _ => ns.wrong += given.left,
            }
        }
        let first = self.first();
        let text = match first {
            Verdict::Right | Verdict::Elsewhere => String::new(),
            Verdict::Wrong(..) | Verdict::WrongBound(..) | Verdict::Unexplained(_) => self.text(),
        };
        let said = self.given.first().map_or(Cause::Unexplained, |given| given.share.cause);
        let cause = |truth: &True| (truth.answers[0].0, truth.all_ns, truth.all_ns - truth.ns);
        let rule = self.given.first().map(|given| given.rule);
        let causes = self.truths.iter().map(cause).collect();
        let given = self.given.iter().map(|matched| {
            let (ns, right_ns) = (matched.share.ns, matched.right + matched.elsewhere);
            (matched.rule, Given { shares: 1, ns, right_ns })
        });
        Compared { ns, said, rule, first, given: given.collect(), causes, text }
    }

    fn first(&self) -> Verdict {
        // What is left of the truth is what was not said.
        let rest = self.truths.iter().max_by_key(|truth| truth.ns);
        let true_cause = rest.map_or(Cause::Unexplained, |truth| truth.answers[0].0);
        match self.given.first() {
            None => Verdict::Right,
            Some(given) if given.share.cause == Cause::Unexplained => {
                Verdict::Unexplained(true_cause)
            }
            Some(given) if given.right * 2 >= given.share.ns => Verdict::Right,
            Some(given) if (given.right + given.elsewhere) * 2 >= given.share.ns => {
                Verdict::Elsewhere
            }
            Some(given) if given.share.evidence == Evidence::Bound => {
                Verdict::WrongBound(true_cause, given.share.cause)
            }
            Some(given) => Verdict::Wrong(true_cause, given.share.cause),
        }
    }

    fn text(&self) -> String {
        let Truth { due, response, moves, stretches, .. } = self.truth;
        let late = response - due;
        let mut text = format!("due at {due} ns, {late} ns late, moved {moves} times\n");
        for stretch in joined(stretches) {
            let names: Vec<String> = stretch
                .answers
                .iter()
                .map(|&(cause, who)| format!("{cause} {}", name_of(self.image, who)))
                .collect();
            let from = stretch.from - due;
            let _ = writeln!(text, "  true {from:>9} +{:>8} {}", stretch.ns, names.join(" | "));
        }
        for given in &self.given {
            let Share { cause, ns, .. } = given.share;
            let (name, rule) = (culprit_name(given.share), given.rule);
            let _ =
                writeln!(text, "  said {ns:>8} {cause} {name} by {rule:?} (right {})", given.right);
        }
        text
    }
}

impl Score {
    /// Counts a wakeup that came in the run of this seed and model. `lost`: whether the tracer had lost
    /// events of it.
    pub fn add(&mut self, one: Compared, lost: bool, seed: u64, model: &str) {
        self.late += 1;
        self.ns.add(one.ns);
        add_each(&mut self.given, one.given, Given::add);
        let of = match one.first {
            Verdict::Unexplained(was) => self.said.entry(was).or_default(),
            _ => self.said.entry(one.said).or_default(),
        };
        of.count(one.first, lost);
        if let Some(rule) = one.rule {
            self.rules.entry(rule).or_default().count(one.first, lost);
        }
        let class = match one.first {
            Verdict::Right => {
                self.right += 1;
                return;
            }
            Verdict::Elsewhere => {
                self.elsewhere += 1;
                return;
            }
            Verdict::Wrong(was, said) => {
                self.wrong += 1;
                self.classes.entry((was, said)).or_default()
            }
            Verdict::WrongBound(was, said) => {
                self.wrong_bound += 1;
                self.bounds.entry((was, said)).or_default()
            }
            Verdict::Unexplained(was) => {
                self.unexplained += 1;
                self.unknown.entry(was).or_default()
            }
        };
        class.count += 1;
        if class.example.is_empty() {
            class.example = format!("seed {seed}, {model}: {}", one.text);
        }
    }

    /// Adds another score.
    pub fn merge(&mut self, other: Self) {
        self.wakeups += other.wakeups;
        self.late += other.late;
        self.right += other.right;
        self.elsewhere += other.elsewhere;
        self.wrong += other.wrong;
        self.wrong_bound += other.wrong_bound;
        self.unexplained += other.unexplained;
        self.ns.add(other.ns);
        self.not_followed += other.not_followed;
        self.unmatched += other.unmatched;
        self.faults += other.faults;
        self.broken += other.broken;
        add_each(&mut self.classes, other.classes, Class::add);
        add_each(&mut self.bounds, other.bounds, Class::add);
        add_each(&mut self.unknown, other.unknown, Class::add);
        add_each(&mut self.said, other.said, Said::add);
        add_each(&mut self.rules, other.rules, Said::add);
        add_each(&mut self.given, other.given, Given::add);
    }
}

/// Adds each of `others` to what has the same key.
fn add_each<K: Ord, V: Default>(
    all: &mut BTreeMap<K, V>,
    others: impl IntoIterator<Item = (K, V)>,
    add: fn(&mut V, V),
) {
    for (key, other) in others {
        add(all.entry(key).or_default(), other);
    }
}

impl Said {
    /// All of these.
    pub fn decided(&self) -> u64 {
        let Self { right, elsewhere, wrong_bound, wrong, unexplained, unexplained_by_loss } = self;
        right + elsewhere + wrong_bound + wrong + unexplained + unexplained_by_loss
    }

    /// Counts an answer. `lost`: whether the tracer had lost events of the wakeup.
    fn count(&mut self, verdict: Verdict, lost: bool) {
        *match verdict {
            Verdict::Right => &mut self.right,
            Verdict::Elsewhere => &mut self.elsewhere,
            Verdict::Wrong(..) => &mut self.wrong,
            Verdict::WrongBound(..) => &mut self.wrong_bound,
            Verdict::Unexplained(_) if lost => &mut self.unexplained_by_loss,
            Verdict::Unexplained(_) => &mut self.unexplained,
        } += 1;
    }

    fn add(&mut self, other: Self) {
        self.right += other.right;
        self.elsewhere += other.elsewhere;
        self.wrong_bound += other.wrong_bound;
        self.wrong += other.wrong;
        self.unexplained += other.unexplained;
        self.unexplained_by_loss += other.unexplained_by_loss;
    }
}

impl Class {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        if self.example.is_empty() {
            self.example = other.example;
        }
    }
}

impl Nanoseconds {
    fn add(&mut self, other: Self) {
        self.right += other.right;
        self.elsewhere += other.elsewhere;
        self.wrong += other.wrong;
        self.unexplained += other.unexplained;
    }
}

/// How much of `stretch` these cover, nanoseconds. They are in order of time.
fn overlap(stretch: &Stretch, covers: &[(u64, u64)]) -> u64 {
    let (from, to) = (stretch.from, stretch.from + stretch.ns);
    let first = covers.partition_point(|cover| cover.1 <= from);
    let inside = covers[first..].iter().take_while(|cover| cover.0 < to);
    inside.map(|cover| cover.1.min(to) - cover.0.max(from)).sum()
}

/// What all stacks of tasks begin with.
const COMMON: [&str; 2] = ["do_syscall_64", "kthread"];

/// Stretches with the same answers that follow each other as one.
fn joined(stretches: &[Stretch]) -> Vec<Stretch> {
    let mut joined: Vec<Stretch> = Vec::new();
    for stretch in stretches {
        match joined.last_mut().filter(|last| last.answers == stretch.answers) {
            Some(last) => last.ns += stretch.ns,
            None => joined.push(stretch.clone()),
        }
    }
    joined
}

/// Whether a share says this.
fn is_answer(image: &Image, (cause, who): Answer, share: &Share) -> bool {
    if share.cause != cause {
        return false;
    }
    match (who, &share.culprit) {
        (Who::Any, _) => true,
        (Who::Delivery, _) => share.phase == Some(Phase::Delivery),
        (Who::Function(stack), Culprit::Function(function)) => {
            let functions = &image.stacks[stack.index()];
            COMMON.contains(&function.name.as_str())
                || functions.iter().any(|f| image.functions[f.index()] == function.name)
        }
        (Who::Scheduler(_), Culprit::Function(_)) => true,
        // Where their events were lost it is known how long they took, and not which of them did.
        (Who::Source(_) | Who::Timer(_) | Who::Softirq(_), Culprit::None) => share.phase.is_none(),
        // Of a task that was only switched away from, the kernel's events have no name.
        (Who::Task(task), Culprit::Task(known)) if known.comm.is_empty() => {
            known.pid == Some(places::pid(Some(task)))
        }
        (who, culprit) => name_of(image, who) == culprit.name(),
    }
}

fn is_of_section<'s>(
    image: &Image,
    stacks: impl Iterator<Item = &'s StackId>,
    share: &Share,
) -> bool {
    let Culprit::Function(function) = &share.culprit else { return false };
    let mut functions = stacks.flat_map(|stack| &image.stacks[stack.index()]);
    functions.any(|f| image.functions[f.index()] == function.name)
}

fn stack((_, who): Answer) -> Option<StackId> {
    match who {
        Who::Function(stack) | Who::Scheduler(stack) => Some(stack),
        _ => None,
    }
}

fn name_of(image: &Image, who: Who) -> String {
    let innermost = |stack: StackId| {
        let function = image.stacks[stack.index()].last();
        function.map_or("", |function| &image.functions[function.index()]).to_owned()
    };
    match who {
        Who::Any => String::new(),
        Who::Delivery => "delivery".into(),
        Who::Task(task) => image.task_name(Some(task)).chars().take(15).collect(),
        Who::Source(source) => image.sources[source.index()].name.clone(),
        Who::Timer(stack) => innermost(stack),
        Who::Softirq(number) => wakescope_core::softirq::softirq_name(number),
        Who::Function(stack) => innermost(stack),
        Who::Scheduler(stack) => format!("__schedule of {}", innermost(stack)),
    }
}

fn culprit_name(share: &Share) -> String {
    match share.phase {
        Some(phase) => format!("{phase:?}"),
        None => share.culprit.name().to_owned(),
    }
}
