//! What watches say beside all their waits together: groups of tasks, and the load.

use wakescope_core::units::grouped;
use wakescope_core::watch::observed::Grouping;
use wakescope_stats::compare::{
    Compare, Effect, Means, OfGroup, OfWatches, Throughput, Verdict, times,
};

use super::{bounds, capital, interval, ratio, span, word};
use crate::style::clean;

/// The most groups in a table; the record has more.
const MOST_ROWS: usize = 20;

/// How many groups are named in a sentence.
const NAMED: usize = 3;

/// The longest name of a group in a sentence, and in a table.
const LONGEST: usize = 80;
const CELL: usize = 27;

/// The verdict on all, and what it says of groups; `None` if none are compared.
///
/// `Worse: of 6 tested series, longer waits in 1 (sshd in /s), undecided: 5.`
pub(super) fn headline(compare: &Compare) -> Option<String> {
    let watches = compare.watches.as_ref().filter(|w| w.grouping != Grouping::None)?;
    let verdict = capital(word(compare.verdict));
    let with = |verdict| watches.with(verdict).map(|(group, _)| group).collect::<Vec<_>>();
    let mut parts = Vec::new();
    for (verdict, what) in [
        (Verdict::Worse, "longer waits in"),
        (Verdict::Better, "shorter waits in"),
        (Verdict::NoDifference, "no difference in"),
        (Verdict::Inconclusive, "undecided:"),
    ] {
        let groups = with(verdict);
        let named = match verdict {
            Verdict::Worse | Verdict::Better => format!(" ({})", names(&groups)),
            Verdict::NoDifference | Verdict::Inconclusive => String::new(),
        };
        if !groups.is_empty() {
            parts.push(format!("{what} {}{named}", groups.len()));
        }
    }
    let tested = watches.groups.iter().filter(|group| group.tested.is_some()).count();
    Some(match tested {
        0 => format!("{verdict}: no {} is tested.", watches.one()),
        1 => format!("{verdict}: of 1 tested {}, {}.", watches.one(), parts.join(", ")),
        n => format!("{verdict}: of {n} tested {}, {}.", watches.many(), parts.join(", ")),
    })
}

fn names(groups: &[&OfGroup]) -> String {
    let named: Vec<String> =
        groups.iter().take(NAMED).map(|group| clean(&group.name(), LONGEST)).collect();
    match groups.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// `Load: no difference (1.00 × as many switches per second).`
pub(super) fn load(switches: &Throughput) -> String {
    let what = match switches.effect.verdict {
        Verdict::Better => "more",
        Verdict::Worse => "less",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
    };
    format!("Load: {what} ({} as many switches per second).", times(switches.effect.ratio))
}

/// The row of the time that all tasks waited.
pub(super) fn waited(compare: &Compare) -> Option<[String; 5]> {
    let figure = compare.watches.as_ref()?.waited.as_ref()?;
    Some([
        "waited".into(),
        format!("{}/s", span(figure.new_ns)),
        format!("{}/s", span(figure.old_ns)),
        times(figure.effect.ratio),
        interval(&figure.effect).unwrap_or_default(),
    ])
}

/// The head of the table of groups, and its rows: those that differ first, then those that are tested, then
/// those with the most waiting. Groups with few waits have no row.
pub(super) fn rows(
    watches: &OfWatches,
    runs: [usize; 2],
) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let has_tail = |group: &&OfGroup| group.p999_ns.is_some() || group.tested.is_some();
    let mut shown: Vec<&OfGroup> = watches.groups.iter().filter(has_tail).collect();
    shown.sort_by_key(|group| match group.tested.as_ref().map(|effect| effect.verdict) {
        Some(Verdict::Worse) => 0,
        Some(Verdict::Better) => 1,
        Some(Verdict::NoDifference | Verdict::Inconclusive) => 2,
        None => 3,
    });
    shown.truncate(MOST_ROWS);
    let mut rows: Vec<Vec<String>> = shown.iter().map(|group| row(group)).collect();
    let what = format!("{}, p99.9", watches.one());
    let head = [&what, "new", "old", "new / old", "", "", "waits/s", "waited"];
    let mut head = head.map(str::to_owned).to_vec();
    if shown.iter().any(|group| group.runs != runs) {
        head.push("watches".into());
        rows.iter_mut().zip(&shown).for_each(|(row, group)| row.push(of_watches(group, runs)));
    }
    (!rows.is_empty()).then_some((head, rows))
}

/// `1/7, 7/7`: in how many new and old watches a group is that some of them do not have. Its other cells are
/// of those that have it.
fn of_watches(group: &OfGroup, runs: [usize; 2]) -> String {
    let ([new, old], [all_new, all_old]) = (group.runs, runs);
    match group.runs == runs {
        true => String::new(),
        false => format!("{new}/{all_new}, {old}/{all_old}"),
    }
}

/// How many groups a table of so many rows has not.
pub(super) fn more(watches: &OfWatches, rows: usize) -> Option<String> {
    match (watches.groups.len() + watches.not_listed).saturating_sub(rows) {
        0 => None,
        1 => Some(format!("… 1 more {}.", watches.one())),
        more => Some(format!("… {} more {}.", grouped(more as u64), watches.many())),
    }
}

fn row(group: &OfGroup) -> Vec<String> {
    let ratio_of = |means: Option<Means>| means.map_or_else(none, |means| times(means.ratio));
    let tested = group.tested.as_ref();
    let [new, old, ratio] = tail(group);
    vec![
        cell(group),
        new,
        old,
        ratio,
        tested.and_then(interval).unwrap_or_default(),
        tested.map_or("not tested", |effect| word(effect.verdict)).into(),
        ratio_of(group.waits_per_second),
        ratio_of(group.waited_ns),
    ]
}

/// The 99.9th percentiles of new and of old watches, and their ratio; bounds of them if no more is known. The ratio
/// of a tested group is the one that its verdict rests on, which allows for watches that are longer than others.
fn tail(group: &OfGroup) -> [String; 3] {
    let (known, tested) = (group.p999_ns, group.tested.as_ref());
    let bounded = tested.and_then(|effect| effect.only_bounded.as_ref()).map(bounds);
    let [new, old] = match known {
        Some(known) => [span(known.new), span(known.old)],
        None => bounded.unwrap_or_else(|| [none(), none()]),
    };
    let ratio = match tested {
        Some(effect) => effect.ratio_in_words(),
        None => known.map_or_else(none, |known| times(known.ratio)),
    };
    [new, old, ratio]
}

fn none() -> String {
    "–".into()
}

/// A name in a cell: that of the tasks, and the end of their cgroup, which says most.
fn cell(group: &OfGroup) -> String {
    let whole = clean(&group.name(), 400);
    let count = whole.chars().count();
    if count <= CELL {
        return whole;
    }
    let begin = match (&group.group.comm, &group.group.cgroup) {
        (Some(comm), Some(_)) => format!("{} in …", clean(comm, CELL / 2)),
        _ => "…".into(),
    };
    let room = CELL.saturating_sub(begin.chars().count());
    begin + &whole.chars().skip(count - room).collect::<String>()
}

/// The groups that are tested, with what is said of each.
pub(super) fn tested(compare: &Compare) -> Vec<(String, &Effect, String)> {
    let groups = compare.watches.iter().flat_map(|watches| &watches.groups);
    let runs = [compare.new.len(), compare.old.len()];
    let said = |group: &'_ OfGroup, effect: &Effect| {
        format!("p99.9 of {} {}", clean(&group.name(), LONGEST), ratio(effect, runs))
    };
    groups
        .filter_map(|group| {
            let effect = group.tested.as_ref()?;
            Some((clean(&group.name(), LONGEST), effect, said(group, effect)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_stats::compare::Bounded;

    /// Of a tested group, the worst watches may have no more than bounds.
    #[test]
    fn a_tail_of_which_only_bounds_are_known_has_a_row() {
        let bounded = Bounded {
            runs: [2, 0],
            ratio: [0.5, 4.0],
            new_ns: [17_179_869_184.0, 90e9],
            old_ns: [20e9; 2],
            length_ratio: None,
        };
        let mut group = OfGroup { tested: Some(Effect::default()), ..OfGroup::default() };
        group.tested.as_mut().unwrap().only_bounded = Some(bounded);
        let watches = OfWatches { groups: vec![group], ..OfWatches::default() };
        let (_, rows) = rows(&watches, [0, 0]).unwrap();
        assert_eq!(rows[0][1..4], ["17.2 s to 1.50 min", "20.0 s", "0.50 to 4.00 ×"]);
    }
}
