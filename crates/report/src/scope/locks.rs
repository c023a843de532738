//! Locks as a table, held longest first, and those that were held while the latest wakeups waited.

use std::fmt::Write;

use wakescope_core::scope::locks::{
    Doubts, EpisodeLocks, LockInEpisode, LockKind, LockRow, Locks, NotSeen,
};
use wakescope_core::units::{SpanNs, counted, grouped};

use super::{NAME, figures, figures_width, name as name_of_section, place};
use crate::style::{Style, clean};
use crate::table::columns;

/// Locks of a wakeup that are shown.
const OF_EPISODE: usize = 3;

pub(crate) fn name(kind: LockKind) -> &'static str {
    match kind {
        LockKind::Spin => "spin lock",
        LockKind::Read => "rwlock, reading",
        LockKind::Write => "rwlock, writing",
        LockKind::Mutex => "mutex",
        LockKind::RwsemRead => "rwsem, reading",
        LockKind::RwsemWrite => "rwsem, writing",
        LockKind::RtSpin => "spin lock of PREEMPT_RT",
        LockKind::RtRead => "rwlock of PREEMPT_RT, reading",
        LockKind::RtWrite => "rwlock of PREEMPT_RT, writing",
        LockKind::RtMutex => "rt_mutex",
        LockKind::Semaphore => "semaphore",
    }
}

/// Both tables: locks that spin, and locks that sleep.
pub(super) fn tables(locks: &Locks, most: usize, style: Style) -> String {
    let mut out = table(locks, true, most, style);
    let _ = write!(out, "\n{}", table(locks, false, most, style));
    out
}

fn table(locks: &Locks, spins: bool, most: usize, style: Style) -> String {
    let all = rows(locks, spins);
    let mut out = format!("{}\n", style.strong(&format!(" {}", title(&all, spins))));
    if all.is_empty() {
        return out;
    }
    let head = ["longest", "p99", "count", "total"].map(String::from).to_vec();
    let shown = all.iter().take(most);
    let figures: Vec<Vec<String>> =
        [head].into_iter().chain(shown.map(|row| figures(&row.held))).collect();
    let laid_out = columns(&figures, false);
    let mut lines = laid_out.lines();
    if let Some(head) = lines.next() {
        let _ = writeln!(out, "{}", style.faint(&format!("{head}  taken in … released in")));
    }
    let width = figures_width(&laid_out);
    for (line, row) in lines.zip(&all) {
        let _ = writeln!(out, "{line:<width$}  {}", place(&row.taken));
        let _ = writeln!(out, "{:width$}  … {}", "", place(&row.released));
        let _ = writeln!(out, "{:width$}  {}", "", identity(row));
        for more in [within(row), waited(row)].into_iter().flatten() {
            let _ = writeln!(out, "{:width$}  {more}", "");
        }
    }
    if let Some(more @ 1..) = all.len().checked_sub(most) {
        let hidden = format!(" {}: --rows N, --json", counted(more as u64, "more row"));
        let _ = writeln!(out, "{}", style.faint(&hidden));
    }
    out
}

pub(super) fn rows(locks: &Locks, spins: bool) -> Vec<&LockRow> {
    locks.rows.iter().filter(|row| row.kind.spins() == spins).collect()
}

/// `locks that spin: held 3 times, 3.03 µs in all`
pub(super) fn title(all: &[&LockRow], spins: bool) -> String {
    let count = all.iter().fold(0_u64, |sum, row| sum.saturating_add(row.held.count));
    let total = all.iter().fold(0_u64, |sum, row| sum.saturating_add(row.held.sum_ns));
    let what = if spins { "locks that spin" } else { "locks that sleep" };
    format!("{what}: held {}, {} in all", counted(count, "time"), SpanNs(total))
}

/// `mutex, cgroup_mutex`, `spin lock, one of 7`
pub(super) fn identity(row: &LockRow) -> String {
    let kind = name(row.kind);
    let of = match row.locks {
        0 | 1 => String::new(),
        more => format!(", one of {}", grouped(more)),
    };
    match &row.lock {
        Some(lock) => format!("{kind}, {}{of}", clean(lock, NAME)),
        None if of.is_empty() => format!("{kind}, unnamed"),
        None => format!("{kind}{of}"),
    }
}

/// How much of the time lies in a section that did not begin by taking this lock, if in any:
/// `33 % of it within preemption off since __do_softirq, called by take`
pub(super) fn within(row: &LockRow) -> Option<String> {
    let section = row.sections.iter().find(|section| section.began != row.taken)?;
    let share = section.ns as f64 / row.held.sum_ns.max(1) as f64 * 100.0;
    let since = match &section.began.function {
        Some(_) => format!(" since {}", place(&section.began)),
        None => String::new(),
    };
    let kind = name_of_section(section.kind);
    Some(format!("{share:.0} % of it within {kind}{since}"))
}

/// `had to be waited for 3 times, longest 40.1 µs, 60.2 µs in all; the longest since mutex_lock, called by a`
pub(super) fn waited(row: &LockRow) -> Option<String> {
    let waited = &row.waited;
    let longest = waited.max_ns.map_or_else(String::new, |ns| format!(", longest {}", SpanNs(ns)));
    let times = counted(waited.count, "time");
    let holder = row.waited_for.as_ref();
    let holder = holder.map_or_else(String::new, |of| format!("; the longest since {}", place(of)));
    let sum = SpanNs(waited.sum_ns);
    (waited.count > 0)
        .then(|| format!("had to be waited for {times}{longest}, {sum} in all{holder}"))
}

/// Which locks were held while the latest wakeups waited, in their order.
pub(super) fn episodes(all: &[EpisodeLocks], style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.strong(" locks held while the latest wakeups waited:"));
    for (number, episode) in (1..).zip(all) {
        let mut mark = format!("#{number}");
        if episode.locks.is_empty() {
            let _ = writeln!(out, " {mark}  none");
        }
        for lock in episode.locks.iter().take(OF_EPISODE) {
            let _ = writeln!(out, " {mark:<3} {}", of_episode(lock));
            mark = String::new();
        }
        if let Some(more @ 1..) = episode.locks.len().checked_sub(OF_EPISODE) {
            let _ = writeln!(out, "     {}", style.faint(&counted(more as u64, "more hold")));
        }
    }
    out
}

pub(super) fn of_episode(lock: &LockInEpisode) -> String {
    let (kind, ns) = (name(lock.kind), SpanNs(lock.ns));
    let named = lock.lock.as_deref().map_or_else(String::new, |n| format!(" {}", clean(n, NAME)));
    format!(
        "{ns} of {}: {kind}{named}, {} by [{}]",
        SpanNs(lock.held_ns),
        place(&lock.taken),
        lock.pid
    )
}

/// What is not seen, and what could not be put together.
pub(super) fn warnings(locks: &Locks) -> Vec<String> {
    let mut all: Vec<String> = locks.not_seen.iter().map(not_seen).collect();
    let Doubts {
        taken_before,
        held_at_end,
        not_seen_taken,
        not_seen_released,
        handed_over,
        outside_section,
        calls_lost,
    } = locks.doubts;
    let outside = [taken_before, held_at_end, not_seen_taken, not_seen_released];
    let parts = [
        "taken before the guest measured",
        "still held in the end",
        "released without having been seen taken",
        "taken anew without having been seen released",
    ];
    let parts = outside.into_iter().zip(parts).filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(count, what)| format!("{what}: {}", grouped(count))).collect();
    if !parts.is_empty() {
        all.push(format!("Locks in no row: {}.", parts.join(", ")));
    }
    if handed_over > 0 {
        let holds = counted(handed_over, "hold");
        all.push(format!("{holds} of locks that sleep ended in another task than had taken them."));
    }
    if outside_section > 0 {
        let holds = counted(outside_section, "hold");
        all.push(format!(
            "{holds} of locks that spin began although preemption was on: the figures of these locks are doubtful."
        ));
    }
    if calls_lost > 0 {
        let calls = counted(calls_lost, "call");
        all.push(format!("{calls} for a lock could not be followed up to the return: there were too many at once."));
    }
    all
}

fn not_seen(what: &NotSeen) -> String {
    let names: Vec<String> = what.functions.iter().map(|name| clean(name, NAME)).collect();
    let (kind, names) = (name(what.kind), names.join(", "));
    match (what.whole, what.functions.is_empty()) {
        (true, true) => format!(
            "Not seen: {kind}. The kernel has no type information (CONFIG_DEBUG_INFO_BTF), so it is not known which \
             task runs."
        ),
        (true, false) => format!(
            "Not seen: {kind}. The kernel has no function of its own for {names}: it is a part of all code that \
             does so."
        ),
        (false, _) => format!(
            "Not seen: {kind}, if taken by {names}, for which the kernel has no function of its own."
        ),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use wakescope_core::distribution::Distribution;
    use wakescope_core::scope::locks::InSection;
    use wakescope_core::scope::{Kind, Place};

    use super::*;

    fn place_of(function: &str, caller: Option<&str>) -> Place {
        Place { function: Some(function.into()), caller: caller.map(Into::into) }
    }

    fn row(kind: LockKind, functions: [&str; 2], held: impl IntoIterator<Item = u64>) -> LockRow {
        LockRow {
            kind,
            lock: None,
            locks: 7,
            taken: place_of(functions[0], Some("take")),
            released: place_of(functions[1], Some("give")),
            held: Distribution::of(held),
            waited: Distribution::default(),
            waited_for: None,
            sections: Vec::new(),
        }
    }

    fn locks() -> Locks {
        let section = |function: &str, ns| InSection {
            kind: Kind::PreemptOff,
            began: place_of(function, Some("take")),
            ended: place_of("_raw_spin_unlock", None),
            holds: 3,
            ns,
        };
        let spin = row(LockKind::Spin, ["_raw_spin_lock", "_raw_spin_unlock"], [10, 20, 3_000]);
        let sections = vec![section("_raw_spin_lock", 2_000), section("__do_softirq", 1_010)];
        let mutex = row(LockKind::Mutex, ["mutex_lock", "mutex_unlock"], [700]);
        let not_seen = |kind, whole, functions: &[&str]| NotSeen {
            kind,
            whole,
            functions: functions.iter().map(|&name| name.into()).collect(),
        };
        Locks {
            holds: 5,
            rows: vec![
                LockRow { sections, ..spin },
                LockRow {
                    lock: Some("a_mutex\u{1b}".into()),
                    locks: 1,
                    waited: Distribution::of([40, 60]),
                    waited_for: Some(place_of("mutex_lock", Some("hold"))),
                    ..mutex
                },
                LockRow { locks: 1, ..row(LockKind::RwsemRead, ["down_read", "up_read"], [5]) },
            ],
            not_seen: vec![
                not_seen(LockKind::Read, true, &["_raw_read_unlock"]),
                not_seen(LockKind::Semaphore, false, &["down"]),
                not_seen(LockKind::RtMutex, true, &[]),
            ],
            ..Locks::default()
        }
    }

    #[test]
    fn locks_that_spin_and_sleep_are_two_tables() {
        expect![[r#"
            tables:
             locks that spin: held 3 times, 3.03 µs in all
             longest  p99  count    total  taken in … released in
             3.00 µs    –      3  3.03 µs  _raw_spin_lock, called by take
                                           … _raw_spin_unlock, called by give
                                           spin lock, one of 7
                                           33 % of it within preemption off since __do_softirq, called by take

             locks that sleep: held 2 times, 705 ns in all
             longest  p99  count   total  taken in … released in
              700 ns    –      1  700 ns  mutex_lock, called by take
                                          … mutex_unlock, called by give
                                          mutex, a_mutex�
                                          had to be waited for 2 times, longest 60 ns, 100 ns in all; the longest since mutex_lock, called by hold
                5 ns    –      1    5 ns  down_read, called by take
                                          … up_read, called by give
                                          rwsem, reading, unnamed
        "#]].assert_eq(&format!("tables:\n{}", tables(&locks(), 2, Style::default())));
    }

    #[test]
    fn locks_stand_with_the_wakeups_that_waited_meanwhile() {
        let lock = |ns, lock: Option<&str>| LockInEpisode {
            kind: LockKind::Spin,
            lock: lock.map(Into::into),
            taken: place_of("_raw_spin_lock", Some("take")),
            pid: 7,
            ns,
            held_ns: 3_000,
        };
        let of = |locks| EpisodeLocks { expiry_ns: 5_000, locks };
        let many = vec![lock(900, Some("a_lock")), lock(800, None), lock(7, None), lock(6, None)];
        expect![[r#"
            text:
             locks held while the latest wakeups waited:
             #1  900 ns of 3.00 µs: spin lock a_lock, _raw_spin_lock, called by take by [7]
                 800 ns of 3.00 µs: spin lock, _raw_spin_lock, called by take by [7]
                 7 ns of 3.00 µs: spin lock, _raw_spin_lock, called by take by [7]
                 1 more hold
             #2  none
        "#]]
        .assert_eq(&format!("text:\n{}", episodes(&[of(many), of(vec![])], Style::default())));
    }

    #[test]
    fn what_is_not_seen_is_named() {
        let doubts = Doubts {
            taken_before: 3,
            held_at_end: 1,
            not_seen_taken: 0,
            not_seen_released: 2,
            handed_over: 1,
            outside_section: 4,
            calls_lost: 1,
        };
        expect![[r#"
            Not seen: rwlock, reading. The kernel has no function of its own for _raw_read_unlock: it is a part of all code that does so.
            Not seen: semaphore, if taken by down, for which the kernel has no function of its own.
            Not seen: rt_mutex. The kernel has no type information (CONFIG_DEBUG_INFO_BTF), so it is not known which task runs.
            Locks in no row: taken before the guest measured: 3, still held in the end: 1, taken anew without having been seen released: 2.
            1 hold of locks that sleep ended in another task than had taken them.
            4 holds of locks that spin began although preemption was on: the figures of these locks are doubtful.
            1 call for a lock could not be followed up to the return: there were too many at once."#]].assert_eq(&warnings(&Locks { doubts, ..locks() }).join("\n"));
        assert!(warnings(&Locks::default()).is_empty());
    }
}
