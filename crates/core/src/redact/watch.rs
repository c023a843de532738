//! Windows of a watch that can be published.

use std::collections::{BTreeMap, BTreeSet};

use super::REDACTED;
use super::explained::{redact_culprit, redact_row, redact_task, redact_wait_row};
use crate::watch::boot::Boot;
use crate::watch::cgroup::Cgroup;
use crate::watch::episode::{Episode, Episodes, Occupant};
use crate::watch::explained::{Explained, Explanations};
use crate::watch::{Cpu, Series, Waits, Window};

/// Removes from a window the names of tasks and cgroups. Tasks of one cgroup become one series; the IDs of
/// cgroups and all figures stay. Only in a sum over several boots two cgroups can have the same ID: one of
/// them gets an ID that none has. It can be done twice.
pub fn redact_window(window: &mut Window) {
    let Window {
        schema: _,
        started: _,
        begin_ns: _,
        // How long the machine had been running.
        boottime_ns: _,
        window_ns: _,
        from: _,
        series,
        others: _,
        cpus,
        left_out: _,
        moved: _,
        series_used: _,
        series_limit: _,
        own_cost: _,
        audit: _,
        episodes,
        explanations,
        boots,
    } = window;
    let mut ids = Ids::of_window(series, episodes.as_ref(), explanations.as_ref());
    let mut cgroups: BTreeMap<u64, Waits> = BTreeMap::new();
    for Series { cgroup_id, cgroup, comm: _, waits } in std::mem::take(series) {
        let sum = cgroups.entry(ids.of(cgroup_id, cgroup)).or_default();
        *sum = sum.merged(&waits);
    }
    let episodes = episodes.iter_mut().flat_map(|episodes| &mut episodes.longest);
    episodes.for_each(|episode| redact_episode(episode, &mut ids));
    let explained = explanations.iter_mut().flat_map(|all| &mut all.explained);
    explained.for_each(|explained| redact_explained(explained, &mut ids));
    series.extend(cgroups.into_iter().map(|(cgroup_id, waits)| Series {
        cgroup_id,
        cgroup: None,
        comm: REDACTED.into(),
        waits,
    }));
    for Cpu { cpu: _, switches: _, waits: _ } in cpus {}
    boots.iter_mut().for_each(redact_boot);
}

/// Without the mark of the machine, which all its records have in common. That of a boot is gone with it, as
/// the IDs of processes are.
fn redact_boot(boot: &mut Boot) {
    let Boot {
        machine,
        boot: _,
        // What is judged, and what decides the figures, as in a run.
        release: _,
        version: _,
        arch: _,
        preemption: _,
        cpu_model: _,
        hypervisor: _,
        clock: _,
        sched_ext: _,
    } = boot;
    *machine = None;
}

/// An ID for each cgroup, and no ID for two.
struct Ids {
    given: BTreeMap<Cgroup, u64>,
    /// Those in the window that are not given yet.
    own: BTreeSet<u64>,
    /// No cgroup has this one or any behind it.
    free: u64,
}

impl Ids {
    fn of_window(
        series: &[Series],
        episodes: Option<&Episodes>,
        explanations: Option<&Explanations>,
    ) -> Self {
        let mut own: BTreeSet<u64> = series.iter().map(|series| series.cgroup_id).collect();
        for episode in episodes.iter().flat_map(|episodes| &episodes.longest) {
            own.insert(episode.cgroup_id);
            own.extend(episode.occupants.iter().map(|occupant| occupant.cgroup_id));
        }
        own.extend(explanations.iter().flat_map(|all| &all.explained).map(|e| e.cgroup_id));
        let free = own.last().map_or(1, |last| last.saturating_add(1));
        Self { given: BTreeMap::new(), own, free }
    }

    /// Its own, or a free one if another cgroup has that.
    fn of(&mut self, id: u64, path: Option<String>) -> u64 {
        if id == 0 {
            return 0;
        }
        let Self { given, own, free } = self;
        *given.entry(Cgroup::named(id, path.as_ref())).or_insert_with(|| {
            if own.remove(&id) {
                return id;
            }
            *free = free.saturating_add(1);
            *free - 1
        })
    }
}

fn redact_episode(episode: &mut Episode, ids: &mut Ids) {
    let Episode {
        end_ns: _,
        cpu: _,
        ns: _,
        task,
        cgroup_id,
        cgroup,
        cause: _,
        culprit,
        throttled_ns: _,
        irq_ns: _,
        steal_ns: _,
        moved_ns: _,
        earlier_queues: _,
        occupants,
        unexplained_ns: _,
    } = episode;
    redact_task(task);
    *cgroup_id = ids.of(*cgroup_id, cgroup.take());
    redact_culprit(culprit);
    for Occupant { task, cgroup_id, cgroup, ns: _ } in occupants {
        redact_task(task);
        *cgroup_id = ids.of(*cgroup_id, cgroup.take());
    }
}

fn redact_explained(explained: &mut Explained, ids: &mut Ids) {
    let Explained {
        comm,
        cgroup_id,
        cgroup,
        begin_ns: _,
        followed_ns: _,
        is_cut: _,
        wakeups: _,
        late: _,
        above_ns: _,
        explained: _,
        lost: _,
        causes,
        worst,
        waits,
        program_ns: _,
        agent_ns: _,
    } = explained;
    REDACTED.clone_into(comm);
    *cgroup_id = ids.of(*cgroup_id, cgroup.take());
    causes.iter_mut().for_each(redact_row);
    worst.iter_mut().for_each(super::redact_episode);
    waits.iter_mut().for_each(redact_wait_row);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::packed;

    #[test]
    fn no_name_of_a_task_or_a_cgroup_is_left() {
        let waits = r#"{"count":1,"sum_ns":5,"max_ns":5,"max_is_exact":true,"min_ns":5,
            "min_is_exact":true,"histogram":"@0 1"}"#;
        let series = |id: u32, path: &str, comm: &str| {
            format!(r#"{{"cgroup_id":{id},"cgroup":{path},"comm":"{comm}","waits":{waits}}}"#)
        };
        let all = [
            series(7, "\"/MARKER\"", "MARKER-a"),
            series(7, "\"/MARKER\"", "MARKER-b"),
            // In a sum, that of another boot.
            series(7, "\"/MARKER/older\"", "MARKER-a"),
            series(8, "null", "MARKER-a"),
        ];
        let line = format!(
            r#"{{"schema":"wakescope.watch/1","started":"2026-11-21T01:00:00Z","begin_ns":0,
            "window_ns":9,"from":"queued","series":[{}],"others":{waits},
            "cpus":[{{"cpu":0,"switches":9,"waits":{waits}}}],"left_out":{{"uncovered_ns":0,
            "unstamped":0,"discarded":0,"untracked":0,"first":0,"caught_up":0,"missed":0,
            "missed_ns":0,"contradicted":0}},"moved":{{"count":0,"before_ns":0}},"series_used":3,
            "series_limit":9,"own_cost":{{"agent_ns":1,"program_ns":null,"program_runs":9,
            "source":"unknown","cpus":2}},"episodes":{{"least_ns":1,"long_waits":3,
            "not_measured":{{"interrupts":true,"steal":false,"quota":false}},"longest":[{{"end_ns":5,
            "cpu":0,"ns":5,"task":{{"comm":"MARKER-a","pid":3}},"cgroup_id":7,"cgroup":"/MARKER",
            "cause":"equal_or_lower_task","culprit":{{"kind":"task","comm":"MARKER-b"}},
            "throttled_ns":0,"irq_ns":0,"steal_ns":0,"moved_ns":0,"occupants":[{{"task":{{
            "comm":"MARKER-b"}},"cgroup_id":7,"cgroup":"/MARKER/older","ns":5}}],"unexplained_ns":0}}]}},"boots":[{{"machine":"MARKER","boot":"b","release":"6.12",
            "version":"1","arch":"x86_64","preemption":"full"}}]}}"#,
            all.join(",")
        );
        let mut window = packed::read(line.as_bytes()).unwrap();
        redact_window(&mut window);
        assert!(!format!("{window:?}").contains("MARKER"), "{window:?}");
        let counts = window.series.iter().map(|series| (series.cgroup_id, series.waits.count));
        assert_eq!(counts.collect::<Vec<_>>(), [(7, 2), (8, 1), (9, 1)]);
        let episode = &window.episodes.as_ref().unwrap().longest[0];
        assert_eq!((episode.cgroup_id, episode.occupants[0].cgroup_id), (7, 9));
        assert_eq!(window.boots[0].boot.as_deref(), Some("b"));
        let once = window.clone();
        redact_window(&mut window);
        assert_eq!(window, once);
    }
}
