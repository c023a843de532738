//! All waits of all tasks: the programs that count them, and what they have counted.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::{Btf, Ebpf};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::watch::episode::Episodes;
use wakescope_core::watch::meter::Meter;
use wakescope_core::watch::{Audit, Cpu, LeftOut, Moved, OwnCost, Series, Waits, Window};
use wakescope_sys::shared::Words;
use wakescope_sys::time_namespace::check_clock;
use wakescope_sys::{clock, memory};

use crate::cpus::cpu_numbers;
use crate::error::TraceError;
use crate::maps::{mapped, refused, taken};
use auditing::Auditor;
use cgroups::Cgroups;
pub use cgroups::Unnamed;
use cost::Costs;
use layout::{LEAST_LONG, count, cpu, row, turn};
use loading::Loaded;
use reuse::Reuse;
use rows::Rows;
use taken::TakenTime;
use turns::LongWaits;

mod auditing;
mod cgroups;
mod cost;
mod layout;
mod loading;
mod reuse;
mod rows;
mod runnable;
mod taken;
mod turns;
#[cfg(test)]
mod unseen_moves;

/// How often, and how long apart, counts are read again until they stand still, once the programs are
/// detached.
const SETTLING_TRIES: u32 = 100;
const SETTLING_PAUSE: Duration = Duration::from_millis(5);

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Series that have figures of their own, 3.5 KB each. All others are one.
    pub series: u32,
    /// Places for what is known of tasks, rounded up to a power of 2: some 300 bytes each. A task has the
    /// place that its number gives. Half as many tasks find room elsewhere if another has theirs.
    pub tasks: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { series: 4_096, tasks: 32_768 }
    }
}

/// What was counted since the last reading, or in all.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Series with waits.
    pub series: Vec<Series>,
    /// Waits of all others.
    pub others: Waits,
    /// CPUs with switches.
    pub cpus: Vec<Cpu>,
    /// What is in none of these.
    pub left_out: LeftOut,
    /// Waits that were moved.
    pub moved: Moved,
    /// The longest waits, which end by the monotonic clock.
    pub episodes: Episodes,
}

impl Counted {
    /// The program counts a wait, and then keeps it. Where a reading came between both, the wait is counted in that one
    /// and kept for the next, whose waits may all be shorter.
    fn show_what_it_counts(&mut self) {
        let series = self.series.iter().map(|series| &series.waits);
        let all = series.chain(self.cpus.iter().map(|cpu| &cpu.waits)).chain([&self.others]);
        let longest = all.filter_map(|waits| waits.max_ns).max().unwrap_or(0);
        self.episodes.longest.retain(|episode| episode.ns <= longest);
    }
}

/// Counts all waits. The programs go when this does, and with the process whatever ends it.
pub struct Watcher {
    programs: Ebpf,
    /// Those that are attached.
    links: Vec<(&'static str, BtfTracePointLinkId)>,
    rows: Rows,
    counts: Words,
    long_waits: LongWaits,
    /// The longest of all so far.
    episodes: Episodes,
    reuse: Reuse,
    /// How often rows were read.
    readings: u64,
    /// Of each row, and of each CPU.
    series: Vec<Metered>,
    cpus: Vec<MeteredCpu>,
    /// What was left out when it was read last.
    left_out: LeftOut,
    moved: Moved,
    uncovered: SpanNs,
    limits: Limits,
    cgroups: Cgroups,
    costs: Costs,
    auditor: Option<Auditor>,
}

/// Whose waits a row counts, once it is known, and what was read of it.
#[derive(Default)]
struct Metered {
    whose: Option<Series>,
    meter: Meter,
    /// The last reading in which there were waits.
    active: u64,
}

#[derive(Default)]
struct MeteredCpu {
    meter: Meter,
    switches: u64,
}

impl Watcher {
    /// Why no cgroup has a name here; `None` where they have.
    pub fn cgroups_unnamed(&mut self) -> Option<Unnamed> {
        self.cgroups.unnamed()
    }

    /// Of the cgroups without a name in `window`, those that were gone when it was looked up, by their IDs.
    pub fn cgroups_gone(&mut self, window: &Window) -> BTreeSet<u64> {
        let unnamed = window.series.iter().filter(|series| series.cgroup.is_none());
        unnamed.map(|series| series.cgroup_id).filter(|&id| self.cgroups.is_gone(id)).collect()
    }

    /// Loads and attaches the programs. From then on every switch counts, and the kernel measures each run
    /// of the programs. In a guest, a hypervisor may take time.
    pub fn start(limits: Limits, is_guest: bool) -> Result<Self, TraceError> {
        let began = clock::now();
        if !counts_waits(&fs::read_to_string("/proc/self/schedstat").unwrap_or_default()) {
            return Err(TraceError::NotCounting);
        }
        check_clock()?;
        // The library does not say why it cannot read the file.
        fs::metadata(crate::kernel::BTF).map_err(TraceError::NoTypes)?;
        let types = Btf::from_sys_fs()
            .map_err(|e| TraceError::NoTypes(std::io::Error::other(e.to_string())))?;
        let cpus = cpu_numbers()?;
        let Loaded { mut programs, has_sleepers, not_measured } =
            loading::load(limits, cpus, &types)?;
        // The kernel's types took 11 MB (6.18), for days.
        drop(types);
        memory::give_back_freed();
        let rows = Rows::map(&mut programs, limits, cpus)?;
        let counts = mapped(&mut programs, "watch_counts", count::WORDS)?;
        let ring = turns::per_cpu(cpus) as usize;
        let turns = mapped(&mut programs, "turns", cpus as usize * ring * turn::WORDS)?;
        let long_waits = LongWaits::of(&rows, turns, ring, TakenTime::of(not_measured, is_guest));
        let [known, free] = ["series_rows", "free_rows"].map(|name| taken(&mut programs, name));
        let reuse = Reuse::of(known?, free?, limits.series)?;
        let mut costs = Costs::default();
        costs.measure(true);
        let mut links = Vec::new();
        for (name, _) in loading::ATTACHED {
            links.push((name, loading::attach(&mut programs, name)?));
            if name == loading::MOVE && has_sleepers {
                runnable::tell(taken(&mut programs, "runnable_before")?)?;
            }
        }
        costs.begin();
        let uncovered = clock::now().since(began);
        let mut series = Vec::new();
        series.resize_with(limits.series as usize + 1, Metered::default);
        let mut metered_cpus = Vec::new();
        metered_cpus.resize_with(cpus as usize, MeteredCpu::default);
        Ok(Self {
            programs,
            links,
            rows,
            counts,
            long_waits,
            episodes: Episodes { least_ns: LEAST_LONG, ..Episodes::default() },
            reuse,
            readings: 0,
            series,
            cpus: metered_cpus,
            left_out: LeftOut::default(),
            moved: Moved::default(),
            uncovered,
            limits,
            cgroups: Cgroups::default(),
            costs,
            auditor: None,
        })
    }

    /// Compares from now on, when asked, what is counted with the kernel's own counts. Fails in a PID
    /// namespace, where tasks have other numbers.
    pub fn prepare_audit(&mut self) -> Result<(), TraceError> {
        let [places, owners, displaced] =
            ["places", "owners", "displaced"].map(|name| taken(&mut self.programs, name));
        self.auditor = Some(Auditor::of(places?, owners?, displaced?)?);
        Ok(())
    }

    /// Compares tasks with the kernel's counts until `end`; `None` if that was not prepared.
    pub fn audit(&mut self, end: MonoNs) -> Option<Audit> {
        self.auditor.as_mut().map(|auditor| auditor.compare(end))
    }

    /// How many series there can be.
    pub fn series_limit(&self) -> u64 {
        u64::from(self.limits.series)
    }

    /// How many series have a row of their own.
    pub fn series_used(&self) -> u64 {
        self.series.iter().filter(|series| series.whose.is_some()).count() as u64
    }

    /// What was counted since the last reading. Where few rows are free, those of series that had no waits
    /// for the longest time are given to others.
    pub fn read(&mut self) -> Counted {
        self.readings += 1;
        let mut counted = Counted::default();
        for index in 0..self.series.len() {
            let Some(waits) = self.read_row(index) else { continue };
            self.series[index].active = self.readings;
            match &self.series[index].whose {
                Some(whose) => counted.series.push(Series { waits, ..whose.clone() }),
                None => counted.others = waits,
            }
        }
        let now = clock::now();
        // While rows still have the owners that they had in these turns. And between the rows of series and those of
        // CPUs: a long wait that ends meanwhile is in one of them.
        counted.episodes = self.long_waits.read(&self.rows, &mut self.cgroups, now);
        for row in self.reuse.rested(&self.rows.runs(), now) {
            self.give_back(row, &mut counted.series);
        }
        counted.series = reuse::merged(counted.series);
        self.make_room(now);
        for (number, metered) in (0..).zip(&mut self.cpus) {
            let at = number as usize * cpu::WORDS;
            let switches = self.rows.cpus.load(at + cpu::SWITCHES);
            let new = switches.saturating_sub(metered.switches);
            metered.switches = switches;
            if new > 0 {
                let waits = metered.meter.read(self.rows.cpu(at));
                counted.cpus.push(Cpu { cpu: number, switches: new, waits });
            }
        }
        let (left_out, moved) = self.left_out();
        counted.left_out = left_out.since(&self.left_out);
        counted.moved = Moved {
            count: moved.count.saturating_sub(self.moved.count),
            before_ns: moved.before_ns.saturating_sub(self.moved.before_ns),
        };
        (self.left_out, self.moved) = (left_out, moved);
        self.episodes = std::mem::take(&mut self.episodes).plus(counted.episodes.clone());
        // Once some is seen: before, there was none.
        self.episodes.not_measured.steal = counted.episodes.not_measured.steal;
        counted.show_what_it_counts();
        counted
    }

    /// All that was counted up to the last reading.
    pub fn total(&self) -> Counted {
        let with_waits = self.series.iter().filter_map(|metered| {
            let waits = metered.meter.total();
            let whose = metered.whose.as_ref()?;
            (waits.count > 0).then(|| Series { waits, ..whose.clone() })
        });
        let mut others = self.series[layout::OTHERS as usize].meter.total();
        let series = self.reuse.total(with_waits.collect(), &mut others);
        let cpus = (0..).zip(&self.cpus).filter(|(_, metered)| metered.switches > 0);
        let cpus = cpus.map(|(cpu, MeteredCpu { meter, switches })| Cpu {
            cpu,
            switches: *switches,
            waits: meter.total(),
        });
        let (left_out, moved, episodes) = (self.left_out, self.moved, self.episodes.clone());
        Counted { series, others, cpus: cpus.collect(), left_out, moved, episodes }
    }

    /// What watching took since this was asked last, while there were `runs` switches.
    pub fn cost(&mut self, runs: u64) -> OwnCost {
        let [switch, moves] =
            [loading::SWITCH, loading::MOVE].map(|name| self.programs.program(name));
        self.costs.since_last(switch, moves, runs, cpus_with_switches(&self.cpus))
    }

    /// The name of the tasks of a series, of those that are counted just now, as these tasks keep it: its text is made
    /// of that, and need not be the same. `None` if no row is that of such a series.
    pub fn kept_name(&self, series: &Series) -> Option<[u64; 2]> {
        let is_it =
            |whose: &Series| (whose.cgroup_id, &whose.comm) == (series.cgroup_id, &series.comm);
        let row = self.series.iter().position(|row| row.whose.as_ref().is_some_and(is_it))?;
        let [_, name @ ..] = self.rows.key(row);
        Some(name)
    }

    /// What watching took in all.
    pub fn total_cost(&self) -> OwnCost {
        self.costs.total(cpus_with_switches(&self.cpus))
    }

    /// Whether the kernel measures just now what programs take: not every user may ask for that.
    pub fn is_measuring_cost(&self) -> bool {
        self.costs.is_measuring()
    }

    /// Has the kernel measure each run of each BPF program from now on, which takes time of its own, or no
    /// more.
    pub fn measure_cost(&mut self, measures: bool) {
        self.costs.measure(measures);
    }

    /// Detaches the programs, and waits until what they were counting is counted.
    pub fn detach(&mut self) {
        // They stay loaded, so that the kernel can still say how long they ran. Moves are seen to the end.
        while let Some((name, link)) = self.links.pop() {
            if let Ok(program) = loading::program(&mut self.programs, name) {
                // That fails only where it is not attached.
                let _ = program.detach(link);
            }
        }
        let mut before = self.switches();
        for _ in 0..SETTLING_TRIES {
            thread::sleep(SETTLING_PAUSE);
            let now = self.switches();
            if now == before {
                return;
            }
            before = now;
        }
    }

    fn switches(&self) -> u64 {
        self.rows.runs().iter().sum()
    }

    /// Takes what a row that rested has still counted, and gives it to whoever needs one.
    fn give_back(&mut self, row: u32, windows: &mut Vec<Series>) {
        let index = row as usize;
        let last = self.read_row(index);
        let Metered { whose, meter, .. } = std::mem::take(&mut self.series[index]);
        self.rows.clear(index);
        let Some(whose) = whose else { return };
        if let Some(waits) = last {
            windows.push(Series { waits, ..whose.clone() });
        }
        self.reuse.give_back(row, Series { waits: meter.total(), ..whose });
    }

    /// Has rows rest that had no waits for the longest time, if most rows are used.
    fn make_room(&mut self, now: MonoNs) {
        let limit = self.limits.series as usize;
        let quarter = limit.div_ceil(4);
        let rows = (layout::OTHERS + 1..).zip(&self.series[1..]);
        let used = rows.filter(|(row, it)| it.whose.is_some() && !self.reuse.is_resting(*row));
        let used: Vec<_> = used.map(|(row, it)| (it.active, row)).collect();
        if used.len() + quarter <= limit {
            return;
        }
        let mut idle = used;
        idle.retain(|row| row.0 < self.readings);
        idle.sort_unstable();
        idle.truncate(quarter);
        for (_, row) in &idle {
            self.reuse.hide(self.rows.retire(*row as usize));
        }
        // Runs that begin from here on find none of them.
        self.reuse.rest(idle.into_iter().map(|(_, row)| row).collect(), self.rows.runs(), now);
    }

    /// The waits of the row at `index` since it was read last; `None` if there are none.
    fn read_row(&mut self, index: usize) -> Option<Waits> {
        let at = index * row::WORDS;
        let is_others = index == layout::OTHERS as usize;
        let metered = &mut self.series[index];
        if metered.whose.is_none() && !is_others {
            if !self.rows.is_used(index) {
                return None;
            }
            let [cgroup_id, name @ ..] = self.rows.key(index);
            metered.whose = Some(Series {
                cgroup_id,
                cgroup: self.cgroups.path(cgroup_id),
                comm: comm(name),
                waits: Waits::default(),
            });
        }
        // Most have none: each adds to the sum, or to the first bucket. But a wait may have been in the sum that was
        // read last, and not yet in its bucket.
        let shortest = self.rows.rows.load(at + row::BUCKETS);
        let sum = self.rows.rows.load(at + row::SUM);
        let was_idle = metered.active + 1 < self.readings;
        if was_idle && sum == metered.meter.sum_ns() && shortest == metered.meter.shortest() {
            return None;
        }
        let waits = metered.meter.read(self.rows.series(index));
        (waits.count > 0).then_some(waits)
    }

    fn left_out(&self) -> (LeftOut, Moved) {
        let of = |index| self.counts.load(index);
        let left_out = LeftOut {
            uncovered_ns: self.uncovered.0,
            unstamped: of(count::UNSTAMPED),
            discarded: of(count::DISCARDED),
            untracked: of(count::UNTRACKED),
            first: of(count::FIRST),
            caught_up: of(count::CAUGHT_UP),
            missed: of(count::MISSED),
            missed_ns: of(count::MISSED_NS),
            contradicted: of(count::CONTRADICTED),
            asleep: of(count::ASLEEP),
            asleep_ns: of(count::ASLEEP_NS),
        };
        (left_out, Moved { count: of(count::MOVED), before_ns: of(count::MOVED_NS) })
    }
}

/// CPUs that the machine has, or had. There may be places for many more: what watching takes is not a part of
/// their time.
fn cpus_with_switches(cpus: &[MeteredCpu]) -> u32 {
    let with_switches = cpus.iter().filter(|cpu| cpu.switches > 0).count();
    u32::try_from(with_switches).unwrap_or(1).max(1)
}

/// Whether the kernel counts waits, by what /proc/self/schedstat shows of a thread that runs: its run time,
/// its waits, and how often it began to run.
fn counts_waits(schedstat: &str) -> bool {
    schedstat.split_whitespace().nth(2).is_some_and(|arrivals| arrivals != "0")
}

/// A name as a task keeps it.
fn comm(halves: [u64; 2]) -> String {
    let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_ne_bytes()).collect();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// So many words, as a program's map has them.
#[cfg(test)]
fn words(count: usize) -> Words {
    use std::os::fd::AsFd;
    let file = wakescope_sys::file::file_in_memory().unwrap();
    file.set_len((count * size_of::<u64>()) as u64).unwrap();
    Words::map(file.as_fd(), count).unwrap()
}

#[cfg(test)]
mod tests {
    use wakescope_core::watch::episode::Episode;

    use super::*;

    #[test]
    fn a_kernel_that_counts_no_waits_is_known() {
        assert!(counts_waits("1243318 675409 4\n"));
        // Without a wait so far.
        assert!(counts_waits("1243318 0 1\n"));
        for none in ["0 0 0\n", "", "1 2"] {
            assert!(!counts_waits(none), "{none:?}");
        }
    }

    #[test]
    fn no_wait_is_shown_that_is_longer_than_all_that_are_counted() {
        let counted = |ns| Waits { count: 1, sum_ns: ns, max_ns: Some(ns), ..Waits::default() };
        let series = Series { cgroup_id: 1, cgroup: None, comm: "waits".into(), waits: counted(5) };
        let cpu = Cpu { cpu: 0, switches: 1, waits: counted(7) };
        for (series, others, cpus, want) in [
            (vec![series.clone()], Waits::default(), Vec::new(), vec![5, 4]),
            (vec![series.clone()], counted(6), Vec::new(), vec![6, 5, 4]),
            (vec![series], Waits::default(), vec![cpu], vec![7, 6, 5, 4]),
            (Vec::new(), Waits::default(), Vec::new(), Vec::new()),
        ] {
            let longest = [8, 7, 6, 5, 4].map(|ns| Episode { ns, ..Episode::default() });
            let episodes = Episodes { longest: longest.into(), ..Episodes::default() };
            let mut counted = Counted { series, others, cpus, episodes, ..Counted::default() };
            counted.show_what_it_counts();
            let shown: Vec<_> = counted.episodes.longest.iter().map(|it| it.ns).collect();
            assert_eq!(shown, want);
        }
    }

    #[test]
    fn places_for_more_cpus_make_no_cost_smaller() {
        let cpu = |switches| MeteredCpu { switches, ..MeteredCpu::default() };
        assert_eq!(cpus_with_switches(&[cpu(5), cpu(0), cpu(7), cpu(0)]), 2);
        assert_eq!(cpus_with_switches(&[cpu(0)]), 1);
    }

    #[test]
    fn names_end_at_the_first_zero() {
        let halves = |name: &[u8; 16]| {
            let half = |at: usize| u64::from_ne_bytes(name[at..at + 8].try_into().unwrap());
            [half(0), half(8)]
        };
        assert_eq!(comm(halves(b"kworker/0:1\0old\0")), "kworker/0:1");
        assert_eq!(comm(halves(b"sixteen bytes ..")), "sixteen bytes ..");
        assert_eq!(comm(halves(b"\xff\x1b[2J\0\0\0\0\0\0\0\0\0\0\0")), "\u{fffd}\x1b[2J");
        assert_eq!(comm([0, 0]), "");
    }
}
