//! Tasks whose waits are known: each works between two sleeps, under a name of its own.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use wakescope_core::units::SpanNs;
use wakescope_core::watch::{LeftOut, Waits, Window};
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_affinity, set_schedule, this_thread};

/// What a thread of the test does.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Never sleeps by itself.
    Spins,
    /// Sleeps and works by turns.
    Naps,
    /// The same at a real-time priority.
    NapsInTime,
}

/// Threads that sleep until they get an order, carry it out and sleep again.
pub(crate) struct Workers {
    all: Vec<Worker>,
    is_over: Arc<AtomicBool>,
}

struct Worker {
    name: String,
    id: u32,
    /// It sleeps until there is something to receive, three times.
    orders: Sender<()>,
    /// How many orders it has carried out.
    done: Arc<AtomicU32>,
    thread: JoinHandle<()>,
    /// What the kernel had counted of it when it got its name, and when it slept again.
    counted: [(u64, u64); 2],
}

impl Workers {
    /// Starts them on these CPUs. They sleep.
    pub(crate) fn start(cpus: &[u32], works: &[Work]) -> Self {
        let is_over = Arc::default();
        let all = works.iter().map(|&work| Worker::start(cpus, work, &is_over)).collect();
        Self { all, is_over }
    }

    /// Has them wake once, so that a watch knows them, and work for a while under names of their own. They
    /// sleep again.
    pub(crate) fn work(&mut self, span: SpanNs) {
        self.order();
        self.all.iter().for_each(|worker| worker.rests_after(1));
        for worker in &mut self.all {
            worker.rename();
            worker.counted[0] = schedstat(worker.id);
        }
        self.order();
        clock::sleep_until(clock::now().after(span)).unwrap();
        self.is_over.store(true, Ordering::Relaxed);
        for worker in &mut self.all {
            worker.rests_after(2);
            worker.counted[1] = schedstat(worker.id);
        }
    }

    /// Whether the waits of each between its two sleeps are those of the kernel, to the nanosecond: a line
    /// for each. What windows call missed, or asleep, explains what is missing here.
    pub(crate) fn compare(&self, windows: &[Window]) -> Result<String, String> {
        let missed = windows.iter().fold((0, 0), |sum, window| {
            let LeftOut { missed, missed_ns, asleep, asleep_ns, .. } = window.left_out;
            (sum.0 + missed_ns + asleep_ns, sum.1 + missed + asleep)
        });
        let mut compared = String::new();
        for Worker { name, counted: [before, after], .. } in &self.all {
            let Waits { sum_ns, count, max_ns, .. } = waits_of(windows, name);
            let kernel = (after.0 - before.0, after.1 - before.1);
            let figures = format!("{name}: {sum_ns} ns, {count}; kernel {kernel:?}, {missed:?}\n");
            let lacks = (kernel.0.checked_sub(sum_ns), kernel.1.checked_sub(count));
            let is_equal = match lacks {
                (Some(0), Some(0)) => true,
                (Some(ns), Some(waits)) => waits > 0 && waits <= missed.1 && ns <= missed.0,
                _ => false,
            };
            // It waited, and no wait is longer than all together.
            if !is_equal || kernel.1 <= 10 || max_ns > Some(sum_ns) {
                return Err(figures);
            }
            compared += &figures;
        }
        Ok(compared)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.all.len() as u64
    }

    /// Ends them.
    pub(crate) fn end(self) {
        self.order();
        self.all.into_iter().for_each(|worker| worker.thread.join().unwrap());
    }

    fn order(&self) {
        self.all.iter().for_each(|worker| worker.orders.send(()).unwrap());
    }
}

impl Worker {
    fn start(cpus: &[u32], work: Work, is_over: &Arc<AtomicBool>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // No other thread has it, of this test or another; 15 bytes at the most.
        let name = format!("w{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (id, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (orders, received) = std::sync::mpsc::channel();
        let (known_id, carried_out) = (Arc::clone(&id), Arc::clone(&done));
        let (is_over, cpus) = (Arc::clone(is_over), cpus.to_vec());
        let run = move || {
            set_affinity(&cpus).unwrap();
            if let Work::NapsInTime = work {
                set_schedule(Schedule::Fifo { priority: 50 }).unwrap();
            }
            known_id.store(this_thread().number(), Ordering::Relaxed);
            received.recv().unwrap();
            carried_out.store(1, Ordering::Relaxed);
            received.recv().unwrap();
            while !is_over.load(Ordering::Relaxed) {
                if !matches!(work, Work::Spins) {
                    clock::sleep_until(clock::now().after(SpanNs(300_000))).unwrap();
                }
                let end = clock::now().after(SpanNs(100_000));
                while clock::now() < end {}
            }
            carried_out.store(2, Ordering::Relaxed);
            received.recv().unwrap();
        };
        let thread = std::thread::Builder::new().spawn(run).unwrap();
        until(|| id.load(Ordering::Relaxed) != 0);
        let id = id.load(Ordering::Relaxed);
        Self { name, id, orders, done, thread, counted: Default::default() }
    }

    /// Waits until it has carried out so many orders, and waits for the next one.
    fn rests_after(&self, orders: u32) {
        until(|| self.done.load(Ordering::Relaxed) == orders && sleeps(self.id));
    }

    /// Gives it its name. It must sleep.
    fn rename(&self) {
        fs::write(format!("/proc/self/task/{}/comm", self.id), &self.name).unwrap();
    }
}

/// All waits of tasks of this name.
pub(crate) fn waits_of(windows: &[Window], comm: &str) -> Waits {
    let all = windows.iter().flat_map(|window| &window.series);
    let named = all.filter(|series| series.comm == comm);
    named.fold(Waits::default(), |sum, series| sum.merged(&series.waits))
}

/// What the kernel has counted of a thread: its waits, ns, and how often it began to run after one.
fn schedstat(thread: u32) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap();
    let fields: Vec<u64> = text.split_whitespace().map(|field| field.parse().unwrap()).collect();
    (fields[1], fields[2])
}

/// Whether the kernel has put a thread to sleep: then it counts nothing more of it.
fn sleeps(thread: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{thread}/stat")).unwrap();
    text.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('S'))
}

/// Waits for what comes for sure: a test that hangs is ended by whoever runs it.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        clock::sleep_until(clock::now().after(SpanNs(1_000_000))).unwrap();
    }
}
