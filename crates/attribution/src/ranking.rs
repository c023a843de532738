//! Late time by tasks or code, whatever the cause.

use crate::abridged::Abridged;
use crate::balance::Balance;
use crate::late::Late;
use crate::net_of_steal::Lateness::Whole;
use crate::rank::{Part, rank_subjects};
use wakescope_core::episodes::Attributed;
use wakescope_core::explain::{By, Ranking, Share};
use wakescope_core::run::Run;

/// The time of wakeups by subjects: of each its lateness, nanoseconds, and its shares. `complete`: they
/// are all late wakeups of a run.
pub fn rank_by<'s>(
    by: By,
    wakeups: impl IntoIterator<Item = (u64, &'s [Share])>,
    complete: bool,
) -> Ranking {
    let parts: Vec<_> =
        wakeups.into_iter().map(|(late_ns, blame)| Part::by(by, late_ns, blame)).collect();
    let wakeups = parts.len() as u64;
    Ranking { by, wakeups, complete, rows: rank_subjects(parts) }
}

/// The ranking that a stored `run` can be given: its own, if it was measured with the same question, or
/// that of the late wakeups that its record lists, with what is known of them.
pub fn rank_stored_by(run: &Run, by: By) -> Ranking {
    let own = run.ranking.as_ref().filter(|own| own.by == by && own.complete);
    if let Some(own) = own {
        return own.clone();
    }
    let (above_ns, late) = run.explanation.as_ref().map_or((0, 0), |e| (e.above_ns, e.late));
    let listed = run.worst.iter().filter(|episode| episode.wakeup_latency_ns >= above_ns);
    let listed: Vec<_> = listed.map(|e| (e.wakeup_latency_ns, e.blame.as_slice())).collect();
    let complete = listed.len() as u64 == late;
    rank_by(by, listed, complete)
}

/// The ranking of all late wakeups of a run that is being accounted for.
pub(crate) fn rank_all_by(
    by: By,
    late: &[&Attributed],
    abridged: &Abridged,
    above_ns: u64,
    balance: &Balance,
) -> Ranking {
    let kept = late.iter().map(|account| Part::by(by, account.ns(Whole), &account.blame));
    let parts = kept.chain(abridged.parts_by_subject(above_ns)).chain(balance.parts());
    Ranking { by, wakeups: balance.late, complete: true, rows: rank_subjects(parts) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::function;
    use wakescope_core::explain::{
        Cause, Culprit, Explanation, Function, NamedTask, Policy, Subject, Within,
    };
    use wakescope_core::run::Episode;

    fn task(comm: &str, pid: u32) -> NamedTask {
        NamedTask { comm: comm.into(), pid: Some(pid), ..NamedTask::default() }
    }

    fn share(cause: Cause, culprit: Culprit, ran: Option<NamedTask>, ns: u64) -> Share {
        let within = Within { task: ran, ..Within::default() };
        Share { cause, culprit, within, ns, ..Share::default() }
    }

    /// Two wakeups, of which `rm` held up both: in two threads, by its code and by the kernel's.
    fn late() -> Vec<Vec<Share>> {
        use Cause::{EqualOrLowerTask, Irq, NoPreemptionPoint, PreemptOff, Throttled, Unexplained};
        let module = Function { name: "f".into(), module: Some("ext4".into()) };
        vec![
            vec![
                share(NoPreemptionPoint, function("f"), Some(task("rm", 7)), 40),
                share(EqualOrLowerTask, Culprit::Task(task("rm", 8)), None, 30),
                share(Irq, Culprit::interrupt("eth0"), None, 20),
                share(Unexplained, Culprit::None, Some(task("rm", 7)), 10),
            ],
            vec![
                share(PreemptOff, Culprit::Function(module), Some(task("rm", 7)), 50),
                share(PreemptOff, function("f"), Some(task("sh", 9)), 15),
                share(NoPreemptionPoint, function("f"), None, 5),
                share(Throttled, Culprit::Task(task("probe", 1)), None, 30),
            ],
        ]
    }

    fn text_of(subject: &Subject) -> String {
        match subject {
            Subject::Function(f) => format!("{} {}", f.name, f.module.as_deref().unwrap_or("-")),
            Subject::Module { name } => name.clone().unwrap_or_else(|| "kernel".into()),
            Subject::Task(task) => {
                assert_eq!(task.policy, Policy::Other);
                format!("{} {}", task.comm, task.pid.map_or("-".into(), |pid| pid.to_string()))
            }
            Subject::Cause { cause } => format!("({cause})"),
            Subject::Others => "others".into(),
        }
    }

    #[track_caller]
    fn check(by: By, want: &[&str]) {
        let late = late();
        let ranking = rank_by(by, late.iter().map(|blame| (100, blame.as_slice())), true);
        assert_eq!((ranking.by, ranking.wakeups, ranking.complete), (by, 2, true));
        let line = |row: &wakescope_core::explain::RankingRow| {
            format!("{}: {} {} {}", text_of(&row.subject), row.episodes, row.total_ns, row.worst_ns)
        };
        assert_eq!(ranking.rows.iter().map(line).collect::<Vec<_>>(), want);
        let shares: f64 = ranking.rows.iter().map(|row| row.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    }

    #[test]
    fn time_is_that_of_who_ran_whatever_the_cause() {
        let rest = ["(throttled): 1 30 30", "(irq): 1 20 20"];
        let with = |own: &[&'static str]| -> Vec<&'static str> { own.to_vec() };
        check(
            By::Pid,
            &with(&[
                "rm 7: 2 90 50",
                "rm 8: 1 30 30",
                rest[0],
                rest[1],
                "sh 9: 1 15 15",
                "(no_preemption_point): 1 5 5",
                "(unexplained): 1 10 10",
            ]),
        );
        check(
            By::Task,
            &with(&[
                "rm -: 2 120 70",
                rest[0],
                rest[1],
                "sh -: 1 15 15",
                "(no_preemption_point): 1 5 5",
                "(unexplained): 1 10 10",
            ]),
        );
        check(
            By::Function,
            &with(&[
                "f -: 2 60 40",
                "f ext4: 1 50 50",
                "(equal_or_lower_task): 1 30 30",
                rest[0],
                rest[1],
                "(unexplained): 1 10 10",
            ]),
        );
        check(
            By::Module,
            &with(&[
                "kernel: 2 60 40",
                "ext4: 1 50 50",
                "(equal_or_lower_task): 1 30 30",
                rest[0],
                rest[1],
                "(unexplained): 1 10 10",
            ]),
        );
    }

    #[test]
    fn a_stored_run_has_its_own_ranking_or_that_of_the_worst() {
        let episode = |blame: &Vec<Share>| Episode {
            wakeup_latency_ns: 100,
            blame: blame.clone(),
            ..Episode::default()
        };
        let mut run = Run { worst: late().iter().map(episode).collect(), ..Run::default() };
        // One that was not late, and one without an explanation.
        run.worst.push(Episode { wakeup_latency_ns: 49, ..Episode::default() });
        run.worst.push(Episode { wakeup_latency_ns: 50, ..Episode::default() });
        run.explanation = Some(Explanation { above_ns: 50, late: 3, ..Explanation::default() });
        let all = rank_stored_by(&run, By::Task);
        assert_eq!((all.wakeups, all.complete), (3, true));
        assert_eq!(all.rows.last().map(|row| row.total_ns), Some(60));
        run.explanation = Some(Explanation { above_ns: 50, late: 4, ..Explanation::default() });
        let some = rank_stored_by(&run, By::Task);
        assert_eq!((some.wakeups, some.complete), (3, false));
        run.ranking = Some(Ranking { wakeups: 4, complete: true, ..some.clone() });
        assert_eq!(rank_stored_by(&run, By::Task).wakeups, 4);
        assert_eq!(rank_stored_by(&run, By::Pid).wakeups, 3);
        run.ranking = Some(Ranking { wakeups: 2, ..some });
        assert_eq!(rank_stored_by(&run, By::Task).wakeups, 3);
    }
}
