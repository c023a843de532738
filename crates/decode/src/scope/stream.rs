//! The sections that the plugin writes.

use std::collections::BTreeMap;

use wakescope_core::budget::{Budget, Entry};
use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::{Bucket, Histogram};
use wakescope_core::scope::edges::Edges;
use wakescope_core::scope::flame::Flame;
use wakescope_core::scope::locks::Hold;
use wakescope_core::scope::{Kind, Place, Row, SCHEMA, Scope, Section, Spent, TimeIn};

use super::blocks::Blocks;
use super::calls::Calls;
use super::edges::{Moment, Written};
use super::kernel::Kernel;
use super::lock_edges::Known;
use super::{ScopeError, word};

const MAGIC: u64 = u64::from_le_bytes(*b"akescope");

/// What records are, as the plugin numbers them.
const TIME: u64 = 1;
const IDLE: u64 = 2;
const SECTION: u64 = 3;
const SITE: u64 = 4;
const END: u64 = 5;
const LOOKED: u64 = 6;
const READING: u64 = 7;
const SPENT: u64 = 8;
const START: u64 = 9;
const EDGES: u64 = 10;
const TASK: u64 = 11;
const CALL: u64 = 12;
const LOCK: u64 = 13;

/// So much longer than sections the plugin writes edges, ns.
const EDGES_LONGER: u64 = 10_000_000;

/// Single sections that are kept.
const LONGEST: usize = 1_000;

const PART: Entry = Entry { name: "sections", bytes: 512 };

/// What was seen in the times that the plan looks at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looked {
    /// When the first process first read the clock, since the machine was turned on, ns; if it never did without the
    /// kernel, when it began.
    pub process_ns: u64,
    /// Each section that overlaps one of these times, in order of their ends.
    pub sections: Vec<Section>,
    /// Each reading of the clock by the kernel, in order: ns since the machine was turned on.
    pub readings: Vec<u64>,
    /// Sections and readings that are missing, for there were too many.
    pub lost: u64,
}

/// All that is made of what the plugin wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// All but what the caller knows of the cell.
    pub scope: Scope,
    /// What was seen in the times that the plan looks at.
    pub looked: Looked,
    /// The edges, if the plan asked for them.
    pub edges: Option<Edges>,
    /// Each lock that was held and is in a row, if the plan asked for these.
    pub held: Vec<Hold>,
}

/// Makes sense of what the plugin wrote of a guest with this kernel: all but what the caller knows of
/// the cell.
///
/// # Errors
/// If it is cut short or damaged, or says that the plugin missed something.
pub fn decode(bytes: &[u8], kernel: &Kernel) -> Result<Decoded, ScopeError> {
    let budget = Budget::of(bytes.len() as u64);
    let mut blocks = Blocks::of(bytes, MAGIC)?;
    // How the plan was understood.
    let (shift, from, to) = (blocks.word()?, blocks.word()?, blocks.word()?);
    if shift > 10 {
        return Err(ScopeError::Foreign);
    }
    let mut stream = Stream { shift, ..Stream::empty(kernel) };
    loop {
        let (kind, words, record) = next_record(&mut blocks)?;
        budget.keep(1 + words.len() as u64 / 8, PART)?;
        match (kind, &words[..]) {
            (TIME, &[count, now]) => stream.time(count, now),
            (IDLE, &[count]) => stream.idles.push(count),
            (SECTION, &[kind, begin, end, ref ends @ ..]) if ends.len() == 4 => {
                stream.sections.push((of_number(kind)?, begin, end, ends_of(ends, kernel)));
            }
            (LOOKED, &[kind, begin, end, ref ends @ ..]) if ends.len() == 4 => {
                stream.looked.push((of_number(kind)?, begin, end, ends_of(ends, kernel)));
            }
            (READING, &[now]) => stream.readings.push(now),
            (CALL, &[caller, function]) => stream.calls.add(caller, function)?,
            (SPENT, &[site, call, count]) => stream.spent(site, call, count)?,
            (SITE, [kind, ends @ ..]) if ends.len() >= 12 => {
                stream.site(of_number(*kind)?, ends_of(&ends[..4], kernel), &ends[4..])?;
            }
            (START, words) => stream.edges.start(words)?,
            (TASK, words) => stream.edges.task(words)?,
            (EDGES, words) => stream.edges.batch(record, words)?,
            (LOCK, &[address, own]) => stream.edges.lock(address, own),
            (END, words) if blocks.are_read() => return stream.end(words, from..to, &budget),
            _ => return Err(ScopeError::Foreign),
        }
    }
}

/// What the next record is, its words, and these as they were written.
fn next_record<'a>(blocks: &mut Blocks<'a>) -> Result<(u64, Vec<u64>, &'a [u8]), ScopeError> {
    let head = blocks.word()?;
    let count = usize::try_from(head >> 8).map_err(|_| ScopeError::Foreign)?;
    if count > 1 << 10 {
        return Err(ScopeError::Foreign);
    }
    let record = blocks.take(8 * count)?;
    let words = record.chunks_exact(8).map_while(|bytes| word(bytes, 0)).collect();
    Ok((head & 0xff, words, record))
}

type Ends = (Place, Place);
/// A section from one count of instructions to another.
type Counted = (Kind, u64, u64, Ends);

struct Stream<'a> {
    kernel: &'a Kernel,
    shift: u64,
    /// Instructions so far, and the clock then, in order.
    times: Vec<(u64, u64)>,
    /// Instructions so far where the CPU was halted, in order.
    idles: Vec<u64>,
    sections: Vec<Counted>,
    looked: Vec<Counted>,
    readings: Vec<u64>,
    rows: BTreeMap<Between, Sum>,
    /// What the plugin's numbers of places mean.
    sites: BTreeMap<u64, Between>,
    calls: Calls,
    edges: Written<'a>,
}

/// Sections of a kind, where they began and where they ended.
type Between = (Kind, Place, Place);

/// All sections between two places.
#[derive(Default)]
struct Sum {
    lengths: Distribution,
    buckets: Vec<Bucket>,
    /// Those whose time was followed: how many, and how long together.
    followed: u64,
    followed_ns: u64,
    functions: BTreeMap<Option<String>, u64>,
}

impl Sum {
    /// Where their time went. What has no name, or found no room, is one entry.
    fn spent(&self) -> Result<Option<Spent>, ScopeError> {
        let known = self.functions.values().fold(0_u64, |sum, ns| sum.saturating_add(*ns));
        let total_ns = self.followed_ns;
        if self.followed > self.lengths.count || total_ns > self.lengths.sum_ns || known > total_ns
        {
            return Err(ScopeError::Foreign);
        }
        let mut functions = self.functions.clone();
        if known < total_ns {
            *functions.entry(None).or_default() += total_ns - known;
        }
        let mut functions: Vec<TimeIn> =
            functions.into_iter().map(|(function, ns)| TimeIn { function, ns }).collect();
        functions.sort_by_key(|time| std::cmp::Reverse(time.ns));
        Ok((self.followed > 0).then_some(Spent { sections: self.followed, total_ns, functions }))
    }
}

impl<'a> Stream<'a> {
    fn empty(kernel: &'a Kernel) -> Self {
        Self {
            kernel,
            shift: 0,
            times: Vec::new(),
            idles: Vec::new(),
            sections: Vec::new(),
            looked: Vec::new(),
            readings: Vec::new(),
            rows: BTreeMap::new(),
            sites: BTreeMap::new(),
            calls: Calls::default(),
            edges: Written::default(),
        }
    }

    fn time(&mut self, count: u64, now: u64) {
        self.times.push((count, now));
    }

    /// Sections between two places; the same functions can have several.
    fn site(&mut self, kind: Kind, ends: Ends, words: &[u64]) -> Result<(), ScopeError> {
        let [count, total, shortest, longest, longest_at, ref rest @ ..] = words[..] else {
            return Err(ScopeError::Foreign);
        };
        let [followed, followed_ns, number, ref buckets @ ..] = rest[..] else {
            return Err(ScopeError::Foreign);
        };
        let part = Distribution {
            count,
            min_ns: Some(shortest),
            max_ns: Some(longest),
            max_at_ns: Some(longest_at),
            sum_ns: total,
            ..Distribution::default()
        };
        let buckets = buckets.iter().map(|word| {
            let (lower, upper) = edges_of(word >> 32)?;
            Some(Bucket { lower, upper, count: word & 0xffff_ffff })
        });
        let buckets: Option<Vec<Bucket>> = buckets.collect();
        let buckets = buckets.ok_or(ScopeError::Foreign)?;
        let counted = buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.count));
        if counted != count || count == 0 || buckets.iter().any(|bucket| bucket.count == 0) {
            return Err(ScopeError::Foreign);
        }
        let between = (kind, ends.0, ends.1);
        self.sites.insert(number, between.clone());
        let row = self.rows.entry(between).or_default();
        // A merge keeps what stands for the larger maximum; buckets are added up at the end.
        row.lengths = Distribution {
            count: row.lengths.count.saturating_add(part.count),
            histogram: Histogram::default(),
            ..row.lengths.merged(&part)
        };
        row.buckets.extend(buckets);
        row.followed = row.followed.saturating_add(followed);
        row.followed_ns = row.followed_ns.saturating_add(followed_ns);
        Ok(())
    }

    /// So many instructions of the sections of a site were executed in a call.
    fn spent(&mut self, site: u64, call: u64, count: u64) -> Result<(), ScopeError> {
        let between = self.sites.get(&site).ok_or(ScopeError::Foreign)?;
        let row = self.rows.get_mut(between).ok_or(ScopeError::Foreign)?;
        let function = self.calls.spend(between.0, call, count)?;
        let function = self.kernel.function(function).map(str::to_owned);
        let ns = row.functions.entry(function).or_default();
        *ns = ns.saturating_add(count.saturating_mul(1 << self.shift));
        Ok(())
    }

    /// Where the time of sections went, of each kind of which some were followed.
    fn flames(&self) -> Vec<Flame> {
        let of_kind = |kind: Kind| {
            let rows = self.rows.iter().filter(|((of, ..), _)| *of == kind);
            let (sections, total_ns) = rows.fold((0_u64, 0_u64), |(sections, ns), (_, row)| {
                (sections.saturating_add(row.followed), ns.saturating_add(row.followed_ns))
            });
            let flame = self.calls.flame(kind, sections, total_ns, self.shift, self.kernel);
            (sections > 0).then_some(flame)
        };
        Kind::ALL.into_iter().filter_map(of_kind).collect()
    }

    /// The time at which so many instructions were executed, on the guest's clock, ns.
    fn ns_at(&self, count: u64, moment: Moment) -> u64 {
        let idle = self.idles.partition_point(|&idle| {
            idle < count || (idle == count && moment == Moment::AfterIdle)
        });
        // Idle time is skipped, so only readings since then tell: the last one before, or the first after.
        let since = idle.checked_sub(1).map_or(0, |last| self.idles[last]);
        let until = self.idles.get(idle).copied().unwrap_or(u64::MAX);
        let before = self.times.partition_point(|(at, _)| *at <= count);
        let last = before.checked_sub(1).map(|last| self.times[last]);
        let next = self.times.get(before).copied().filter(|(at, _)| *at <= until);
        let best = last.filter(|(at, _)| *at > since).or(next).or(last).unwrap_or_default();
        let (at, now) = best;
        if count >= at {
            now.saturating_add((count - at) << self.shift)
        } else {
            now.saturating_sub((at - count) << self.shift)
        }
    }

    fn section(&self, (kind, begin, end, (began, ended)): &Counted) -> Section {
        Section {
            kind: *kind,
            began: began.clone(),
            ended: ended.clone(),
            begin_ns: self.ns_at(*begin, Moment::AfterIdle),
            length_ns: end.saturating_sub(*begin) << self.shift,
        }
    }

    /// The largest difference between clock and instructions, between two readings without idle time in
    /// between, of those in `window`.
    fn drift_ns(&self, window: &std::ops::Range<u64>) -> u64 {
        let steps = self.times.windows(2).filter_map(|pair| {
            let [(count, now), (next_count, next_now)] = *pair else { return None };
            let first_idle = self.idles.get(self.idles.partition_point(|&idle| idle < count));
            let was_idle = first_idle.is_some_and(|&idle| idle < next_count);
            let executed = next_count.saturating_sub(count) << self.shift;
            let is_in = window.contains(&now);
            (is_in && !was_idle).then(|| next_now.wrapping_sub(now).abs_diff(executed))
        });
        steps.max().unwrap_or(0)
    }

    fn end(
        self,
        words: &[u64],
        since_process: std::ops::Range<u64>,
        budget: &Budget,
    ) -> Result<Decoded, ScopeError> {
        let [
            _,
            has_process,
            _,
            process_ns,
            sections,
            _,
            lost,
            unlisted,
            times_lost,
            disagreements,
            odd,
            _,
            unread,
            looked_lost,
            edges,
            edges_lost,
            tasks,
            priority_masks,
            depths,
            locks,
            calls_lost,
        ] = words[..]
        else {
            return Err(ScopeError::Foreign);
        };
        if has_process == 0 {
            return Err(ScopeError::NoProcess);
        }
        for (what, count) in [
            (
                "the guest's interrupt flag or preempt count differs from the plugin's",
                disagreements,
            ),
            (
                "the kernel masks interrupts by their priority, which is not followed",
                priority_masks,
            ),
            ("an instruction wrote the preempt count in an unknown way", odd),
            ("a reading of the clock was left out, for there were too many", times_lost),
        ] {
            if count > 0 {
                return Err(ScopeError::Missed { what, count });
            }
        }
        if edges_lost > 0 {
            return Err(ScopeError::EdgesLost(edges_lost));
        }
        let window = process_ns.saturating_add(since_process.start)
            ..process_ns.saturating_add(since_process.end);
        let window_ns = since_process.end.saturating_sub(since_process.start);
        let drift_ns = self.drift_ns(&window);
        let ns_at = |count, moment| self.ns_at(count, moment);
        let known = Known { locks, calls_lost, until_ns: window.end, counts_sections: depths > 0 };
        let (locks, held) = match locks {
            0 => (None, Vec::new()),
            _ => {
                let (locks, held) = self.edges.locks(&known, ns_at, self.kernel, budget)?;
                (Some(locks), held)
            }
        };
        let edges = self.edges.read(edges, tasks, ns_at, self.kernel)?;
        let until = window.end.saturating_add(EDGES_LONGER);
        let edges = edges.map(|edges| Edges {
            process_ns,
            window_ns: window.start..until,
            measured_until_ns: window.end,
            ..edges
        });
        let mut longest: Vec<Section> =
            self.sections.iter().map(|counted| self.section(counted)).collect();
        longest.sort_by_key(|section| (std::cmp::Reverse(section.length_ns), section.begin_ns));
        let unkept = longest.len().saturating_sub(LONGEST) as u64;
        longest.truncate(LONGEST);
        let times = |at: u64| self.ns_at(at, Moment::AfterIdle);
        let rows = self.rows.iter().map(|((kind, began, ended), row)| {
            let lengths = Distribution {
                histogram: Histogram::from_unordered(row.buckets.clone()),
                max_at_ns: row.lengths.max_at_ns.map(times),
                ..row.lengths.clone()
            };
            let (began, ended) = (began.clone(), ended.clone());
            Ok(Row { kind: *kind, began, ended, lengths, spent: row.spent()? })
        });
        let mut rows = rows.collect::<Result<Vec<Row>, ScopeError>>()?;
        let flames = self.flames();
        rows.sort_by_key(|row| std::cmp::Reverse(row.lengths.max_ns));
        let looked = Looked {
            process_ns,
            sections: self.looked.iter().map(|counted| self.section(counted)).collect(),
            readings: self.readings,
            lost: looked_lost,
        };
        let scope = Scope {
            schema: SCHEMA.into(),
            window_ns,
            sections: sections.saturating_sub(lost),
            sections_lost: lost,
            sections_unlisted: unlisted.saturating_add(unkept),
            callers_lost: unread,
            drift_ns,
            has_callers: self.kernel.has_callers(),
            preempt_count_partial: depths == 0,
            rows,
            flames,
            longest,
            locks,
            ..Scope::default()
        };
        Ok(Decoded { scope, looked, edges, held })
    }
}

fn of_number(number: u64) -> Result<Kind, ScopeError> {
    let found = usize::try_from(number).ok().and_then(|number| Kind::ALL.get(number));
    found.copied().ok_or(ScopeError::Foreign)
}

/// Where sections began and ended, of two addresses each: of the place and of its caller.
fn ends_of(words: &[u64], kernel: &Kernel) -> Ends {
    let name = |address: u64| kernel.function(address).map(str::to_owned);
    let place = |of: &[u64]| Place {
        function: of.first().and_then(|&address| name(address)),
        // What a call returns to may be behind the end of the function that made it.
        caller: of.get(1).and_then(|&address| name(address.checked_sub(1)?)),
    };
    (place(&words[..2.min(words.len())]), place(words.get(2..).unwrap_or_default()))
}

/// The edges of a bucket of the plugin's: sixteen for each power of two, one for each value below 16.
fn edges_of(bucket: u64) -> Option<(u64, u64)> {
    if bucket < 16 {
        return Some((bucket, bucket + 1));
    }
    let shift = u32::try_from(bucket / 16 - 1).ok().filter(|&shift| shift < 59)?;
    let lower = (16 + bucket % 16) << shift;
    Some((lower, lower + (1 << shift)))
}
