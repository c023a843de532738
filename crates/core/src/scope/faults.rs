//! Figures of a scope that contradict each other.

use super::{Row, Scope, Section, Spent};
use crate::distribution::Distribution;
use crate::faults::{first, more_than_whole, wrong_sum};
use crate::run::{Episode, LATE_SENDER_NS};

/// Beyond the window in which sections began, their times may be off by so much: the clock is read once per tick,
/// and a tick of the slowest kernels takes 10 ms.
const TICK_NS: u64 = 10_000_000;

impl Scope {
    /// Which of its figures contradict each other, if any do.
    pub(super) fn fault(&self) -> Option<String> {
        first("rows", &self.rows, Row::fault)
            .or_else(|| self.fault_of_counts())
            .or_else(|| first("flames", &self.flames, |flame| flame.fault(&self.rows)))
            .or_else(|| first("longest", &self.longest, |section| self.fault_of_section(section)))
            .or_else(|| Some(format!("explained: {}", self.explained.as_ref()?.fault()?)))
            .or_else(|| first("episodes", &self.episodes, Episode::fault))
            .or_else(|| Some(format!("first_blame: {}", self.first_blame.as_ref()?.fault()?)))
            .or_else(|| Some(format!("locks: {}", self.locks.as_ref()?.fault(&self.episodes)?)))
            .or_else(|| self.fault_of_times())
            .or_else(|| self.fault_of_expiries())
            .or_else(|| self.fault_of_reasons())
    }

    fn fault_of_counts(&self) -> Option<String> {
        let counts = self.rows.iter().map(|row| row.lengths.count);
        wrong_sum("sections", self.sections, "those of rows", counts).or_else(|| {
            let listed = self.sections_unlisted.saturating_add(self.longest.len() as u64);
            let seen = self.sections.saturating_add(self.sections_lost);
            more_than_whole([(("the number of long sections", listed), ("that of all", seen))])
        })
    }

    /// A section that is listed is in a row, unless some are in none.
    fn fault_of_section(&self, section: &Section) -> Option<String> {
        if self.sections_lost > 0 {
            return None;
        }
        let Section { kind, began, ended, begin_ns: _, length_ns } = section;
        let mut rows = self.rows.iter();
        let row = rows.find(|row| (row.kind, &row.began, &row.ended) == (*kind, began, ended));
        let Some(row) = row else { return Some("no row has its ends".into()) };
        let (min, max) = (row.lengths.min_ns.unwrap_or(0), row.lengths.max_ns.unwrap_or(0));
        (!(min..=max).contains(length_ns)).then(|| {
            format!("length_ns is {length_ns}, but those of its row are from {min} to {max}")
        })
    }

    /// All sections and locks began in one window. When that was, since the machine was turned on, is not recorded.
    fn fault_of_times(&self) -> Option<String> {
        let locks = self.locks.iter();
        let of_locks = locks.clone().flat_map(|locks| &locks.rows).map(|row| &row.held);
        let lengths = self.rows.iter().map(|row| &row.lengths).chain(of_locks);
        let holds = locks.flat_map(|locks| &locks.longest).map(|hold| hold.begin_ns);
        let listed = self.longest.iter().map(|section| section.begin_ns).chain(holds);
        let all = || lengths.clone().filter_map(|lengths| lengths.max_at_ns).chain(listed.clone());
        let (first_ns, last_ns) = (all().min()?, all().max()?);
        let slack_ns = self.drift_ns.saturating_mul(2).saturating_add(TICK_NS);
        (last_ns - first_ns > self.window_ns.saturating_add(slack_ns)).then(|| {
            format!(
                "one began at {first_ns} ns and one at {last_ns} ns, but window_ns is {}",
                self.window_ns
            )
        })
    }

    /// The window is the run. Its last wakeup may be due up to two intervals later, each shorter than the run, and
    /// later yet where the sender was late.
    fn fault_of_expiries(&self) -> Option<String> {
        let explained = self.explained.iter().flat_map(|explained| &explained.shares);
        let blamed = self.first_blame.iter().flat_map(|blame| &blame.others);
        let expiries = self.episodes.iter().map(|episode| episode.expiry_ns);
        let expiries = expiries.chain(explained.map(|share| share.expiry_ns));
        let last_ns = expiries.chain(blamed.map(|other| other.expiry_ns)).max()?;
        let most_ns = self.window_ns.saturating_mul(3).saturating_add(LATE_SENDER_NS);
        (last_ns > most_ns).then(|| {
            format!("a wakeup was due at {last_ns} ns, but window_ns is {}", self.window_ns)
        })
    }

    fn fault_of_reasons(&self) -> Option<String> {
        let both = |there: bool, key: &str, why: &Option<String>, reason: &str| {
            (there && why.is_some()).then(|| format!("it has {key}, and {reason} says why not"))
        };
        both(self.explained.is_some(), "explained", &self.not_compared, "not_compared").or_else(
            || both(!self.episodes.is_empty(), "episodes", &self.no_episodes, "no_episodes"),
        )
    }
}

impl Row {
    fn fault(&self) -> Option<String> {
        fault_of(&self.lengths).map(|fault| format!("lengths: {fault}")).or_else(|| {
            let fault = self.spent.as_ref()?.fault(&self.lengths)?;
            Some(format!("spent: {fault}"))
        })
    }
}

/// What is wrong with lengths whose sum is exact.
pub(super) fn fault_of(lengths: &Distribution) -> Option<String> {
    lengths.fault().or_else(|| lengths.fault_of_sum())
}

impl Spent {
    fn fault(&self, lengths: &Distribution) -> Option<String> {
        more_than_whole([
            (("sections", self.sections), ("the number of all of the row", lengths.count)),
            (("total_ns", self.total_ns), ("that of all of the row", lengths.sum_ns)),
        ])
        .or_else(|| {
            let functions = self.functions.iter().map(|time| time.ns);
            wrong_sum("total_ns", self.total_ns, "its functions", functions)
        })
    }
}

#[cfg(test)]
mod tests;
