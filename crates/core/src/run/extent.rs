//! What a run says of when and where: its times lie within it, and its CPUs are those that were measured.

use super::{Run, State, Thread, TimeDomain};
use crate::distribution::Distribution;
use crate::plan::{Family, Target};
use crate::run::Episode;
use crate::tail::bound::Bound;

/// Beyond the end of the run, a stimulus that is no grid of the kernel's may have been due so late: who
/// wakes the probe, or the probe that sends, can itself be held up at its last point.
pub(crate) const LATE_SENDER_NS: u64 = 10_000_000_000;

impl Run {
    /// What says another time or place than the run has, if anything does.
    pub(super) fn fault_of_extent(&self) -> Option<String> {
        self.fault_of_cpus()
            .or_else(|| self.fault_of_length())
            .or_else(|| self.fault_of_times())
            .or_else(|| self.fault_of_bound())
    }

    /// A probe that is bound to a CPU is bound to one of the plan, and a late wakeup is that of a probe.
    fn fault_of_cpus(&self) -> Option<String> {
        let of_thread = |(i, thread): (usize, &Thread)| {
            let cpu = thread.cpu.filter(|cpu| !self.plan.cpus.contains(cpu))?;
            Some(format!("threads[{i}].cpu is {cpu}, but plan.cpus is {:?}", self.plan.cpus))
        };
        let of_worst = || {
            // Of a run that was killed early, the episodes may tell of CPUs before the record does.
            let is_to_come = |cpu| self.state == State::Running && self.plan.cpus.contains(&cpu);
            let is_known = |cpu: u32| {
                self.threads.iter().any(|thread| thread.cpu == Some(cpu)) || is_to_come(cpu)
            };
            // A probe that is bound to none may wake up on any, as those of deadline tasks do.
            let are_bound = self.threads.iter().all(|thread| thread.cpu.is_some());
            let late = are_bound.then(|| self.late())?;
            let other = late.filter_map(|late| late.cpu).find(|&cpu| !is_known(cpu))?;
            Some(format!("a wakeup of worst was on CPU {other}, which no thread measured"))
        };
        let is_of_probes = self.plan.target == Target::Probes;
        let has_cpus = is_of_probes && self.knows("plan.cpus") && !self.plan.cpus.is_empty();
        let threads = has_cpus.then(|| self.threads.iter().enumerate().find_map(of_thread));
        threads.flatten().or_else(|| is_of_probes.then(of_worst).flatten())
    }

    /// The late wakeups that it shows.
    fn late(&self) -> impl Iterator<Item = &Episode> {
        self.worst.iter().chain(self.net_of_steal.iter().flat_map(|net| &net.worst))
    }

    /// Expiries at the plan's interval take as long as the run, to an interval on either side: a probe's
    /// first one comes up to an interval later than the run begins.
    fn fault_of_length(&self) -> Option<String> {
        let interval_ns = u128::from(self.plan.interval_ns);
        let has_grid = self.plan.target == Target::Probes
            && !self.plan.stimulus.is_busy()
            && self.source.is_none()
            && interval_ns > 0;
        // Probes of a simulation may each have an interval of their own.
        if !has_grid || (self.time_domain == TimeDomain::Simulated && self.threads.len() > 1) {
            return None;
        }
        let most = self.threads.iter().map(|thread| thread.expiries.count).max()?;
        let duration_ns = u128::from(self.duration_ns);
        // Of a real-time clock the interval is rounded to a nanosecond.
        let longest = |points: u64| u128::from(points) * (interval_ns + 1) + 2 * interval_ns;
        let shortest =
            (u128::from(most) * interval_ns.saturating_sub(1)).saturating_sub(2 * interval_ns);
        let points = self.threads.iter().map(|thread| self.points_of(thread)).max().unwrap_or(most);
        // A simulation goes on until a last sample is answered, however late that is.
        let ends_with_points = points > 0 && self.time_domain != TimeDomain::Simulated;
        let is_short = duration_ns < shortest;
        let is_long = ends_with_points && duration_ns > longest(points);
        (is_short || is_long).then(|| {
            format!(
                "duration_ns is {duration_ns}, but a thread has {most} expiries at plan.interval_ns, {interval_ns}"
            )
        })
    }

    /// Points of the grid that a thread had, as far as the record tells: expiries, and those that became
    /// none.
    fn points_of(&self, thread: &Thread) -> u64 {
        let silent = thread.audio.as_ref().map_or(0, |audio| audio.silent);
        let line =
            self.line.as_ref().map_or(0, |line| line.unanswered.saturating_add(line.left_out));
        [thread.expiries.count, thread.not_asleep, thread.skipped, silent, line]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Nothing was due after the run. While one is still measured, its end is that of the record before.
    fn fault_of_times(&self) -> Option<String> {
        if self.state == State::Running || !self.knows("duration_ns") {
            return None;
        }
        let is_grid = self.plan.stimulus.family() == Family::Grid && self.source.is_none();
        let slack_ns = if is_grid { 0 } else { LATE_SENDER_NS };
        // The clock of a device, and that of another program, is not the one that the run is measured by.
        let end_ns = self
            .duration_ns
            .saturating_add(self.duration_ns / 100)
            .saturating_add(self.plan.interval_ns.saturating_mul(2))
            .saturating_add(slack_ns);
        let of_parts = |thread: &Thread| {
            let due = [&thread.woken, &thread.expiries].map(|d: &Distribution| d.max_at_ns);
            let last_slot = thread.maxima.as_ref().and_then(|maxima| {
                let last = maxima.max_ns.iter().rposition(Option::is_some)?;
                u64::try_from(last).ok()?.checked_mul(maxima.slot_ns)
            });
            due.into_iter().chain([last_slot]).flatten().max()
        };
        let latest = self.threads.iter().filter_map(of_parts);
        let due_ns = latest.chain(self.late().map(|late| late.expiry_ns)).max()?;
        (due_ns > end_ns).then(|| {
            format!("a wakeup was due at {due_ns} ns, but duration_ns is {}", self.duration_ns)
        })
    }

    /// What is not excluded follows from the number of samples and the duration. How many independent ones
    /// the samples are worth is an estimate, which another version may have made: from one to all.
    fn fault_of_bound(&self) -> Option<String> {
        let said = self.summary.not_excluded_every_ns?;
        let bound = Bound::of(&self.expiries(), None, self.duration_ns);
        let Some(longest) = bound.and_then(|bound| bound.every_ns) else {
            return Some(format!(
                "summary.not_excluded_every_ns is {said}, but its duration and its samples give none"
            ));
        };
        let shortest = self.duration_ns / self.summary.count.max(1);
        let slack = longest / 1_000_000 + 1;
        let range = shortest.saturating_sub(slack)..=longest.saturating_add(slack);
        (!range.contains(&said)).then(|| {
            format!(
                "summary.not_excluded_every_ns is {said}, but its duration and its samples give {shortest} to {longest}"
            )
        })
    }
}

#[cfg(test)]
mod tests;
