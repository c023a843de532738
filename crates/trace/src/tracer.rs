//! Loading the programs, looking after them, and taking what they found.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::thread;
use std::time::Duration;
use std::{io, iter};

use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf};
use wakescope_attribution::{Abridged, Interrupts, Machine, Seen, Tally, calibrate};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{By, ComponentTable, Known, Measured, Waits, Wakeup};
use wakescope_core::plan::{Stimulus, Target};
use wakescope_core::preemption::Model;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_decode::{Decoder, KernelWakeup, UserStack};
use wakescope_sys::clock;
use wakescope_sys::shared::{Answers, Words};
use wakescope_sys::time_namespace::check_clock;

use crate::build_id::{build_id_of_kernel, build_ids};
use crate::counted::{self, Counted};
use crate::cpus::cpu_numbers;
use crate::error::TraceError;
use crate::interference::{self, Watch};
use crate::kept::{Kept, Key, key_of};
use crate::kernel::Kernel;
use crate::maps::{mapped, refused, taken};
use crate::overflow::{InShort, Overflow};
use crate::parts::Parts;
use crate::quota::Quotas;
use crate::record::part_of;
use crate::sections::{self, Shows};
use crate::shared::{self, COMPONENTS, Control, Counts, FIGURES_WORDS, SECOND, SECTION_KINDS};
use crate::stack::{self, Walker};
use crate::symbols::{Symbols, addresses_of};
use crate::tally;
use crate::target::{Filter, has_kernels_numbers};
use crate::threads;
use crate::throughout::Runnable;
use crate::users::{NamePrograms, ProgramFiles};
use crate::waits;
use crate::worth::{Asked, Decided, worth_keeping};
use attaching::{Attached, Purpose, attach_all, learn_depth, load};

mod attaching;

/// What is to be followed, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose wakeups.
    pub target: Target,
    /// Of threads of a name only those in the cgroup with this ID; `None` for all.
    pub within_cgroup: Option<u64>,
    /// The name of the target's threads as their tasks keep it, 16 bytes, where the target has a text made of it;
    /// `None` if that text is the name.
    pub kept_name: Option<[u64; 2]>,
    /// What wakes them.
    pub stimulus: Stimulus,
    /// Of probes, how many there are at most. They are announced one by one, and say when they have
    /// responded.
    pub probes: u32,
    /// Whether these threads stay on their CPUs.
    pub pinned: bool,
    /// How late a wakeup must be to leave the kernel, nanoseconds; `None` for the latest ones,
    /// however late they are.
    pub above_ns: Option<u64>,
    /// Which part of all wakeups is late where that follows from them: 0.001 for p99.9.
    pub tail: f64,
    /// How many wakeups that will be in the end, as far as it is known; or 0.
    pub late: u64,
    /// How this kernel preempts.
    pub model: Model,
    /// Names of idle states, by their numbers.
    pub idle_states: Vec<String>,
    /// How many late wakeups to keep with all their events. Of others, whose time it was.
    pub room: usize,
    /// What this machine is like.
    pub machine: Machine,
    /// What is to be counted for a bound; `None` for none.
    pub watch: Option<Watch>,
    /// On which CPUs sections are to be measured where the kernel shows their edges, on all if there
    /// are none; `None` where nobody asks.
    pub sections: Option<BTreeSet<u32>>,
    /// What late time is to be ranked by beside its causes.
    pub by: Option<By>,
}

impl Options {
    fn is_of_probes(&self) -> bool {
        self.target == Target::Probes
    }

    /// Whether it is announced when the wakeups of probes are due: the timer of a sleep tells that by
    /// itself, and whom it wakes.
    fn announces(&self) -> bool {
        self.is_of_probes() && !self.stimulus.is_plain_sleep()
    }

    /// How many threads, or CPUs of the numbers below `cpus`, have figures of their own.
    fn places(&self, cpus: u32) -> u32 {
        if self.is_of_probes() { self.probes.max(1) } else { cpus }
    }
}

/// What is not seen of waits without the kernel's own account of them.
const NO_ACCOUNT: &str = "the kernel's own account of waits (no CONFIG_SCHED_INFO)";

/// The tracepoint of the interrupts that not every kernel shows.
const NMIS: &str = "nmi_handler";

/// How often, and how long apart, counts that should agree are read again after programs were detached.
const SETTLING_TRIES: u32 = 10;
const SETTLING_PAUSE: Duration = Duration::from_millis(5);

/// What the timers call that tasks sleep by.
const SLEEPERS_CALL: &str = "hrtimer_wakeup";

/// Programs that follow wakeups. They go when this does, and with the process whatever ends it.
pub struct Tracer {
    programs: Ebpf,
    options: Options,
    records: RingBuf<MapData>,
    control: Array<MapData, Control>,
    responses: Option<Words>,
    figures: Words,
    /// How many threads, or CPUs, have figures of their own.
    places: usize,
    /// One more than the largest number of a CPU.
    cpus: usize,
    followed: u32,
    start: MonoNs,
    keep_ns: u64,
    /// The same without stolen time.
    keep_net_ns: u64,
    /// When these two were decided.
    decided: Decided,
    /// Records that were read.
    read: u64,
    /// Parts of wakeups that still wait, and how many have been read.
    parts: Parts,
    parts_read: u64,
    kept: Kept,
    /// Those that were decoded to be stored while the run lasts.
    stored: HashSet<Key>,
    overflow: Overflow,
    /// Where programs copy stacks instead of having the kernel walk them.
    walker: Option<Walker>,
    users: Option<Box<dyn NamePrograms>>,
    /// Where sections are measured: what was counted of their lengths.
    section_figures: Option<Words>,
    shows: Shows,
    seen_with: Vec<String>,
    not_seen: Vec<String>,
    /// See [`Known::shows_softirqs_left`] and [`Known::shows_throttling`].
    shows_softirqs_left: bool,
    shows_throttling: bool,
    /// What quotas threads of others were under when the run began.
    quotas_at_start: Quotas,
    /// Which of them could run then.
    runnable_at_start: Runnable,
}

impl Tracer {
    /// Loads and attaches what this kernel has a place for. Nothing counts before [`Self::begin`].
    pub fn start(options: Options) -> Result<Self, TraceError> {
        let filter = match options.kept_name {
            Some(name) => Filter::of_name(name),
            None => Filter::of(&options.target).map_err(TraceError::Target)?,
        };
        let filter = filter.within(options.within_cgroup);
        check_clock()?;
        let (kernel, types) = Kernel::read().map_err(TraceError::NoTypes)?;
        let types = Btf::parse(&types, aya::Endianness::default())
            .map_err(|e| TraceError::NoTypes(io::Error::other(e)))?;
        let shows = Shows::of(&options, |tracepoint| kernel.has(tracepoint));
        let known = addresses_of(&[&[SLEEPERS_CALL], &stack::names()[..]].concat());
        let cpus = cpu_numbers()?;
        let purpose = Purpose {
            options: &options,
            filter,
            kernel: &kernel,
            types: &types,
            shows,
            sleepers_call: known.get(SLEEPERS_CALL).copied(),
        };
        let mut programs = load(&purpose, cpus)?;
        if !options.is_of_probes() || options.announces() {
            learn_depth(&mut programs, &types)?;
        }
        let Attached { seen_with, not_seen } = attach_all(&mut programs, &purpose)?;
        let records =
            RingBuf::try_from(taken(&mut programs, "records")?).map_err(refused("records"))?;
        let control =
            Array::try_from(taken(&mut programs, "control")?).map_err(refused("control"))?;
        let walker = Walker::of_running_kernel(&mut programs, &known);
        let places = options.places(cpus) as usize;
        let figures = mapped(&mut programs, "figures", places * COMPONENTS * FIGURES_WORDS)?;
        let probes = if options.is_of_probes() { options.probes as usize } else { 0 };
        let responses = (probes > 0)
            .then(|| mapped(&mut programs, "responses", probes * Answers::WORDS))
            .transpose()?;
        let sections = cpus as usize * SECTION_KINDS * FIGURES_WORDS;
        let section_figures =
            shows.any().then(|| mapped(&mut programs, "section_figures", sections)).transpose()?;
        let kept = Kept::with_room_for(options.room);
        let overflow =
            Overflow::new(options.model.preempts_kernel_code(), &options.idle_states, options.by);
        let keep_ns = options.above_ns.unwrap_or(0);
        Ok(Self {
            programs,
            options,
            records,
            control,
            responses,
            figures,
            places,
            cpus: cpus as usize,
            followed: 0,
            start: MonoNs(0),
            keep_ns,
            // Who is so late without stolen time is so late.
            keep_net_ns: keep_ns,
            decided: Decided::default(),
            read: 0,
            parts: Parts::default(),
            parts_read: 0,
            kept,
            stored: HashSet::new(),
            overflow,
            walker,
            users: None,
            section_figures,
            shows,
            seen_with,
            not_seen,
            shows_softirqs_left: kernel.shows_softirqs_left(),
            shows_throttling: kernel.shows_throttling,
            runnable_at_start: Runnable::default(),
            quotas_at_start: Quotas::default(),
        })
    }

    /// Where the probe that is followed as the `index`th tells when it answered: the time after
    /// each wakeup, before it sleeps again.
    pub fn answers(&self, index: usize) -> Option<Answers> {
        self.responses.as_ref()?.answers(index)
    }

    /// Follows the thread `id`, which is the next probe.
    pub fn follow(&mut self, id: u32) -> Result<(), TraceError> {
        let refused = refused("wakeups");
        let map = |e: &str| TraceError::Refused("wakeups", e.into());
        let slots = self.programs.map_mut("slots").ok_or_else(|| map("absent"))?;
        let mut slots = HashMap::<_, u32, u32>::try_from(slots).map_err(&refused)?;
        slots.insert(id, self.followed, 0).map_err(&refused)?;
        let wakeups = self.programs.map_mut("wakeups").ok_or_else(|| map("absent"))?;
        let mut wakeups = HashMap::<_, u32, shared::Wakeup>::try_from(wakeups).map_err(&refused)?;
        let second = self.options.announces().then_some(id | SECOND);
        for key in iter::once(id).chain(second) {
            wakeups.insert(key, shared::Wakeup::default(), 0).map_err(&refused)?;
        }
        self.followed += 1;
        Ok(())
    }

    /// Lets `users` name functions in programs that held up wakeups. Without it, their addresses are
    /// all that is told.
    pub fn name_programs(&mut self, users: impl NamePrograms + 'static) {
        // In a PID namespace threads have other numbers than in the kernel.
        self.users = has_kernels_numbers().then(|| Box::new(users) as _);
    }

    /// Reads what is to be known of followed threads of others when the run begins: their quotas, and which of them
    /// wait already. On a machine with very many threads this may take seconds. To be called before [`Self::begin`],
    /// and before the start is chosen.
    pub fn look_at_threads(&mut self) {
        let Options { target, within_cgroup, .. } = &self.options;
        if self.options.is_of_probes() {
            return;
        }
        let proc = Path::new("/proc");
        let all = threads::of_target(proc, target).map(|(thread, _)| thread);
        self.quotas_at_start = Quotas::read(proc, all);
        // /proc does not list the threads of a cgroup.
        if within_cgroup.is_none() {
            self.runnable_at_start = Runnable::read(target);
        }
    }

    /// From `start` on, wakeups count that are due then or later.
    pub fn begin(&mut self, start: MonoNs) -> Result<(), TraceError> {
        // 0 is no start.
        self.start = start.max(MonoNs(1));
        self.set_control()
    }

    fn set_control(&mut self) -> Result<(), TraceError> {
        let copies = self.walker.is_some();
        let (keep, keep_net) = (self.keep_ns, self.keep_net_ns);
        let look = keep.min(keep_net);
        let patience = patience_ns(self.options.model, look, copies);
        // Without a watchdog everything is looked at; and also where a look is a copy, which takes less than
        // the watchdog's interrupt.
        let watched = u64::from(self.responses.is_some() && patience > 0 && !copies);
        let walks = u64::from(copies);
        let control = Control { start: self.start.0, keep, keep_net, look, watched, walks };
        for index in 0..self.followed as usize {
            if let Some(answers) = self.answers(index) {
                answers.set_patience(patience);
            }
        }
        self.control.set(0, control, 0).map_err(refused("control"))
    }

    /// How long the programs have run, on all CPUs: only the runs that the kernel measured, where it was told
    /// to (BPF statistics).
    pub fn run_time(&self) -> SpanNs {
        let infos = self.programs.programs().filter_map(|(_, program)| program.info().ok());
        let ns = infos.map(|info| u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX));
        SpanNs(ns.fold(0, u64::saturating_add))
    }

    /// Takes what has left the kernel, for 50 ms at most. To be called some ten times a second.
    pub fn poll(&mut self) {
        for_a_while(clock::now, || self.take_record());
    }

    /// Takes all that has left the kernel. To be called when no program sends any more.
    fn drain(&mut self) {
        while self.take_record() {}
    }

    /// Takes a record, if there is one.
    fn take_record(&mut self) -> bool {
        let Some(record) = self.records.next() else { return false };
        let walker = &mut self.walker;
        let part = part_of(&record, |copy| match walker {
            Some(walker) => walker.walk(copy),
            None => Vec::new(),
        });
        drop(record);
        // Which of both it is that cannot be understood, nobody knows: the counts show that there was one.
        let Some(part) = part else { return true };
        *if part.goes_on { &mut self.parts_read } else { &mut self.read } += 1;
        let Some(late) = self.parts.add(part) else { return true };
        if let Some(users) = &mut self.users {
            for (pid, stack) in late.user_stacks() {
                users.look_up(pid, stack);
            }
        }
        self.overflow.extend(self.kept.add(late));
        if self.overflow.is_full() {
            self.explain_overflow();
        }
        true
    }

    /// Has what found no room turned into what its explanation says in short.
    fn explain_overflow(&mut self) {
        if self.overflow.is_empty() {
            return;
        }
        let (known, least_depth) = (self.known_so_far(), self.counts().least_depth);
        self.overflow.explain(known, least_depth);
    }

    /// Lets fewer wakeups leave the kernel once it is known how late the late ones are. To be called before
    /// each [`Self::poll`], which may take long where very many do.
    pub fn adapt(&mut self, now: MonoNs) {
        let asked = self.asked();
        if self.options.above_ns.is_some() || !self.decided.is_due(now, self.wakeups(), asked) {
            return;
        }
        if let Some(keep_ns) = worth_keeping(&self.lateness(), asked) {
            self.keep_ns = keep_ns;
            let net = self.counted_so_far(shared::NET_OF_STEAL);
            self.keep_net_ns = worth_keeping(&net, asked).unwrap_or(keep_ns);
            // The old bound goes on to hold, which costs only time.
            let _ = self.set_control();
        }
    }

    fn asked(&self) -> Asked {
        let Options { tail, late, .. } = self.options;
        // Where the kernel walks stacks, it does so at each wakeup until something is decided, which makes them
        // 6 to 8 us later: that must not go on for as long as it takes to keep all that may be late in the end.
        Asked { tail, late: if self.walker.is_some() { late } else { 0 } }
    }

    /// How many wakeups have ended so far.
    fn wakeups(&self) -> u64 {
        counted::wakeups(&self.figures, self.places)
    }

    /// Prepares to decode wakeups while the run lasts. To be called before anything is measured: it
    /// takes the names of all functions of the kernel.
    pub fn prepare_to_store(&mut self) {
        self.overflow.prepare();
    }

    /// Has those of the latest wakeups decoded that were not yet, `most` at the most, in a thread of
    /// its own: [`Self::decoded`] has them when they are ready. Functions of programs are not named.
    pub fn decode_latest(&mut self, most: usize) {
        let next = self.kept.next_to_store(&mut self.stored, most);
        let keys: Vec<Key> = next.iter().map(key_of).collect();
        let least_depth = self.counts().least_depth;
        if !next.is_empty() && !self.overflow.decode(next, least_depth) {
            keys.iter().for_each(|key| {
                self.stored.remove(key);
            });
        }
    }

    /// Forgets what was decoded: all of the latest wakeups will be once more.
    pub fn decode_all_again(&mut self) {
        self.stored.clear();
    }

    /// What has been decoded since the last call, with what all wakeups taught so far.
    pub fn decoded(&mut self) -> Option<(Vec<Wakeup>, Known)> {
        let wakeups = self.overflow.decoded();
        (!wakeups.is_empty()).then(|| (wakeups, self.known_so_far()))
    }

    fn known_so_far(&self) -> Known {
        self.known(&Counted::of(&self.figures, self.places).components)
    }

    fn known(&self, components: &ComponentTable) -> Known {
        Known {
            shows_softirqs_left: self.shows_softirqs_left,
            shows_throttling: self.shows_throttling,
            ..calibrate(components, self.options.machine, self.options.is_of_probes())
        }
    }

    /// How late wakeups were so far.
    pub fn lateness(&self) -> Distribution {
        self.counted_so_far(shared::WAKEUP_LATENCY)
    }

    fn counted_so_far(&self, component: usize) -> Distribution {
        counted::of_component(&self.figures, self.places, component)
    }

    /// Detaches everything and tells what was found. Where a thread is followed that still waits,
    /// that wakeup is not. Frames of programs have their files and the places in them; the functions
    /// there are to be found in the files that come with it.
    pub fn finish(mut self) -> (Seen, ProgramFiles) {
        // Without a start nothing counts: programs are detached one after the other, and those that
        // still run would see ends missing.
        let start = std::mem::replace(&mut self.start, MonoNs(0));
        let end = clock::now();
        let _ = self.set_control();
        let throughout = self.runnable_at_start.waited_throughout(end.since(start));
        // Detaching interrupts every CPU.
        let interference = self.interference();
        let sections = self.sections();
        self.detach();
        let tally = self.settled_tally();
        let waits =
            self.waits(end).map(|waits| waits::with_throughout(waits, (start, end), throughout));
        self.explain_overflow();
        let Counted { components, wakeup_latency, net_of_steal } =
            Counted::of(&self.figures, self.places);
        let known = self.known(&components);
        let counts = self.counts();
        let late = std::mem::replace(&mut self.kept, Kept::with_room_for(0)).into_latest_first();
        // Its symbols make room for those that are read now.
        let InShort { abridged, .. } = self.overflow.finish();
        let mut not_seen = self.not_seen;
        if waits.as_ref().is_some_and(|waits| waits.schedstat.is_none() && waits.ended() > 0) {
            not_seen.push(NO_ACCOUNT.to_string());
        }
        let symbols = Symbols::read().unwrap_or_else(|why| {
            not_seen.push(format!("names of functions: {why}"));
            Symbols::default()
        });
        let of_programs: Vec<UserStack> = late.iter().flat_map(KernelWakeup::user_stacks).collect();
        let (users, files) = self.users.map(|users| users.place(&of_programs)).unwrap_or_default();
        let decoder = Decoder {
            kernel_frame: &|address| symbols.frame(address),
            user_frame: &|pid, address| users.get(&(pid, address)).cloned(),
            least_depth: counts.least_depth,
            preemptible: self.options.model.preempts_kernel_code(),
            idle_states: &self.options.idle_states,
        };
        let wakeups: Vec<Wakeup> = late.iter().map(|late| decoder.wakeup(late)).collect();
        let sections = sections.map(|counted| counted.measured(&symbols));
        let module_build_ids = build_ids(&modules_of(&wakeups, &abridged, sections.as_ref()));
        let seen = Seen {
            wakeups,
            by: self.options.by,
            abridged,
            known: Some(known),
            components,
            wakeup_latency,
            net_of_steal,
            records: counts.records,
            lost_records: counts.lost_records,
            broken: counts.broken,
            no_room: counts.no_room,
            tally: Some(tally),
            interrupts: interference.map(|counted| Interrupts {
                each: counted.worst(&symbols),
                complete: counts.no_room_interrupts == 0
                    && self.seen_with.iter().any(|name| name == NMIS),
            }),
            lacks_edges: self.options.sections.is_some() && !self.shows.all(),
            sections,
            waits,
            seen_with: self.seen_with,
            not_seen,
            build_id: build_id_of_kernel(),
            module_build_ids,
        };
        (seen, files)
    }

    /// Detaches everything, and takes what was sent before.
    fn detach(&mut self) {
        for (_, program) in self.programs.programs_mut() {
            if let Ok(program) = <&mut BtfTracePoint>::try_from(program) {
                // One that was never loaded; all others end with the process at the latest.
                let _ = program.unload();
            }
        }
        self.drain();
    }

    /// What was counted in more than one way. To detach a program does not wait for one that runs: it
    /// may go on to count for a moment.
    fn settled_tally(&mut self) -> Tally {
        let mut tally = self.tally();
        for _ in 0..SETTLING_TRIES {
            if tally.contradictions().is_empty() {
                break;
            }
            thread::sleep(SETTLING_PAUSE);
            self.drain();
            tally = self.tally();
        }
        tally
    }

    fn tally(&self) -> Tally {
        let wakeups = self.programs.map("wakeups").and_then(|map| HashMap::try_from(map).ok());
        let open = wakeups.map_or(0, |wakeups| tally::open_wakeups(&wakeups));
        let place = if self.responses.is_some() { "probe" } else { "CPU" };
        let sections = self.section_figures.as_ref();
        Tally {
            read: self.read,
            parts_read: self.parts_read,
            components: tally::components(&self.figures, self.places, place),
            sections: sections
                .map(|figures| tally::sections(figures, self.cpus))
                .unwrap_or_default(),
            ..tally::of_counts(&self.counts(), open)
        }
    }

    /// All waits of others' threads, of a run that ended at `end`.
    fn waits(&self, end: MonoNs) -> Option<Waits> {
        match self.options.is_of_probes() {
            true => None,
            false => waits::of_run(&self.programs, end, &self.quotas_at_start),
        }
    }

    fn sections(&self) -> Option<sections::Counted> {
        let cpus = self.options.sections.as_ref()?;
        let figures = self.section_figures.as_ref()?;
        let states = Array::try_from(self.programs.map("sections")?).ok()?;
        let places = Array::try_from(self.programs.map("section_places")?).ok()?;
        Some(sections::Counted::read(self.shows, cpus, figures, &states, &places))
    }

    fn interference(&self) -> Option<interference::Counted> {
        let watch = self.options.watch.as_ref()?;
        let map = HashMap::try_from(self.programs.map("interference")?).ok()?;
        Some(interference::Counted::read(&map, watch))
    }

    fn counts(&self) -> Counts {
        let map = self.programs.map("counts").and_then(|m| Array::<_, Counts>::try_from(m).ok());
        map.and_then(|map| map.get(&0, 0).ok()).unwrap_or_default()
    }
}

/// The modules that kernel stacks of these have functions of.
fn modules_of<'a>(
    wakeups: &'a [Wakeup],
    abridged: &'a Abridged,
    sections: Option<&'a Measured>,
) -> BTreeSet<&'a str> {
    let interrupted = wakeups.iter().filter_map(|wakeup| wakeup.interrupted.as_ref());
    let interrupted = interrupted.flat_map(|context| &context.stack);
    let given_up = wakeups.iter().filter_map(|wakeup| wakeup.given_up.as_ref());
    let given_up = given_up.flat_map(|last| &last.stack);
    let of_abridged = abridged.longest().flatten();
    let of_abridged = of_abridged.flat_map(|share| share.frames.iter().chain(&share.given_up_at));
    let longest = sections.into_iter().flat_map(Measured::kinds);
    let longest = longest.filter_map(|kind| kind.longest.as_ref()).flat_map(|l| &l.frames);
    let all = interrupted.chain(given_up).chain(of_abridged).chain(longest);
    all.filter_map(|frame| frame.module.as_deref()).collect()
}

/// How long records are taken at a time. Where they come faster than they can be taken, the caller must
/// still see signals and the end of its time; those that find no room are counted as lost.
const A_WHILE: SpanNs = SpanNs(50_000_000);

/// Calls `take` until there is nothing to take or a while is over.
fn for_a_while(now: impl Fn() -> MonoNs, mut take: impl FnMut() -> bool) {
    let end = now().after(A_WHILE);
    while take() && now() < end {}
}

/// How late a probe's wakeup is when its watchdog interrupts what holds it up, to see what that is; nanoseconds, 0
/// for no watchdog. `look`: how late it is when it is worth a look; 0 if that is not known. `copies`: whether the
/// stack is copied when its interrupt comes.
///
/// With `PREEMPT_RT` there is none. A thread handles its timer, and waits for the same code. (arm64, 6.1 to 7.2: of
/// 71 wakeups in sections with preemption off, two had a stack.)
fn patience_ns(model: Model, look: u64, copies: bool) -> u64 {
    match model {
        Model::Rt => 0,
        _ if copies => look.saturating_mul(2),
        _ => look / 2,
    }
}

#[cfg(test)]
mod early;

#[cfg(test)]
mod moved;

#[cfg(test)]
mod near_limits;

#[cfg(test)]
mod one_expiry;

#[cfg(test)]
mod one_probe;

#[cfg(test)]
mod verified;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_is_for_kernels_where_it_interrupts() {
        let patience = |model| [false, true].map(|copies| patience_ns(model, 1_000, copies));
        assert_eq!(patience(Model::Full), [500, 2_000]);
        assert_eq!(patience(Model::Unknown), [500, 2_000]);
        assert_eq!(patience(Model::Rt), [0, 0]);
        assert_eq!([false, true].map(|copies| patience_ns(Model::None, 0, copies)), [0, 0]);
    }

    #[test]
    fn records_that_never_end_hold_nobody() {
        // Each takes 5 ms, as on a machine where thirty programs want each CPU.
        let taken = std::cell::Cell::new(0);
        let now = || MonoNs(taken.get() * 5_000_000);
        for_a_while(now, || {
            taken.set(taken.get() + 1);
            true
        });
        assert_eq!(taken.get(), 10);
        for_a_while(now, || false);
        assert_eq!(taken.get(), 10);
    }
}
