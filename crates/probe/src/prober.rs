//! A probe: one thread that measures one CPU.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use wakescope_core::audio::{self, AudioPlan, AudioRecorder};
use wakescope_core::plan;
use wakescope_core::recorder::{Recorder, Snapshot};
use wakescope_core::ring::Ring;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::empty_epoll::EmptyEpoll;
use wakescope_sys::memory::PageFaults;
use wakescope_sys::posix_timer::PosixTimer;
use wakescope_sys::sched::{self, Schedule, ThreadId};
use wakescope_sys::shared::Answers;
use wakescope_sys::signal::ThreadHandle;
use wakescope_sys::timer_file::TimerFile;

use crate::card::Card;
use crate::edges::AnyLine;
use crate::stimulus::audio::{Arithmetic, Audio};
use crate::stimulus::availability;
use crate::stimulus::card::{CardAudio, MachineCard};
use crate::stimulus::channel::{Channel, ForChannel, for_channel};
use crate::stimulus::device::DeviceWakeups;
use crate::stimulus::line::RoundTrips;
use crate::stimulus::place::Cpu;
use crate::stimulus::rtc::RtcTicks;
use crate::stimulus::sleep::{FutexTimeout, Nanosleep, SignalHandler, SignalWait};
use crate::stimulus::spin::{MachineClock, Spin};
use crate::stimulus::timer::{KernelTimer, Timer};
use crate::stimulus::waker::{Followed, WakerPlace, WakerWakeups};
use crate::stimulus::watch::Watch;
use crate::stimulus::{Beside, Ending, Grid, WaitForStimulus, sample};
use crate::stop::Stop;

/// The loop needs a few hundred bytes of stack; the rest is for starting and ending the thread.
const STACK_BYTES: usize = 128 << 10;

/// More than enough time to reset a recorder.
const RESET: SpanNs = SpanNs(4_000_000);

/// What a probe is to do.
pub struct ProbePlan {
    /// The CPU to measure.
    pub cpu: u32,
    /// The schedule to run under.
    pub schedule: Schedule,
    /// How many of the latest wakeups to keep.
    pub worst: usize,
    /// Room for samples on their way to a file; 0 if none are saved.
    pub ring_slots: usize,
    /// What wakes it.
    pub stimulus: plan::Stimulus,
    /// Where the thread is that wakes it, if one does.
    pub waker: WakerPlace,
    /// The interval of its wakeups.
    pub interval: SpanNs,
    /// The line that its stimulus goes over, if it does.
    pub line: Option<AnyLine>,
    /// The sound card and its program, if one wakes it.
    pub audio: Option<AudioPlan>,
    /// The sound card of the machine; `None` for a virtual one.
    pub card: Option<Card>,
    /// From which length on a gap counts, if it never sleeps.
    pub gap_from: SpanNs,
    /// Where its answers go.
    pub answers: Option<Answers>,
    /// Where it is announced when a wakeup is due that another thread causes.
    pub announcements: Option<Answers>,
}

/// When a probe is to measure. All probes get the same one but for the phase.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Where unrecorded wakeups begin, to warm caches and pages.
    pub warmup: MonoNs,
    /// The start of the run, from which times in the record count.
    pub origin: MonoNs,
    /// This probe's first expiry, from `origin`.
    pub phase: SpanNs,
    /// The grid's period.
    pub interval: SpanNs,
    /// How many expiries there are.
    pub expiries: u64,
    /// After how many wakeups to stop.
    pub wakeups: u64,
}

/// What a probe says when it is ready to start.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The thread, by the kernel's id.
    pub thread: ThreadId,
    /// Whether it is bound to its CPU.
    pub pinned: bool,
    /// The thread or process that wakes it, if one does.
    pub waker: Option<ThreadId>,
    /// The time that a sleep takes that asks for none: no shorter interval can be kept.
    pub turnaround: SpanNs,
}

/// What a probe saw beside its samples.
#[derive(Debug)]
pub struct Report {
    /// How the loop ended.
    pub ending: Ending,
    /// What its stimulus saw beside the wakeups.
    pub beside: Beside,
    /// Page faults in the loop.
    pub faults: PageFaults,
    /// How often something else took the CPU from the loop while it ran.
    pub preempted: u64,
    /// CPU time that the loop used.
    pub cpu_time: SpanNs,
    /// How long the loop took.
    pub wall_time: SpanNs,
    /// The schedule in force at the end.
    pub schedule: io::Result<Schedule>,
    /// That of the waker, if there is one.
    pub waker_schedule: Option<Schedule>,
    /// The timer slack in force at the end.
    pub slack: io::Result<SpanNs>,
}

/// Shared between a probe and those who watch it.
struct Shared {
    recorder: Recorder,
    /// What the sound card sees, if there is one.
    audio: Option<Arc<AudioRecorder>>,
    ring: Option<Ring>,
    stop: Stop,
    /// Set once warm-up is over and the recorder holds nothing but samples.
    measuring: AtomicBool,
    ready: OnceLock<Ready>,
}

/// A probe that has been started. Its thread ends at the latest when this is dropped: the thread has what must
/// not outlive it, such as a line whose settings it changed.
pub struct Prober {
    /// The CPU it measures.
    pub cpu: u32,
    shared: Arc<Shared>,
    ready: Receiver<io::Result<Ready>>,
    /// `None` only once it was ended.
    thread: Option<Thread>,
}

/// The thread of a probe.
struct Thread {
    start: SyncSender<Times>,
    handle: ThreadHandle<Option<Report>>,
}

impl Prober {
    /// Starts the thread; it prepares itself and waits for [`Prober::go`].
    pub fn spawn(plan: ProbePlan) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            recorder: Recorder::new(plan.worst),
            audio: plan.audio.map(|plan| Arc::new(AudioRecorder::new(plan))),
            ring: (plan.ring_slots > 0).then(|| Ring::new(plan.ring_slots)),
            stop: Stop::default(),
            measuring: AtomicBool::new(false),
            ready: OnceLock::new(),
        });
        let (start, times) = sync_channel(1);
        let (say_ready, ready) = sync_channel(1);
        let theirs = Arc::clone(&shared);
        let cpu = plan.cpu;
        let thread = std::thread::Builder::new()
            .name(format!("wakescope/{cpu}"))
            .stack_size(STACK_BYTES)
            .spawn(move || live(plan, &theirs, &say_ready, &times))?;
        let thread = Some(Thread { start, handle: ThreadHandle::new(thread) });
        Ok(Self { cpu, shared, ready, thread })
    }

    /// Waits until the thread is prepared, or could not be.
    pub fn wait_ready(&self) -> io::Result<Ready> {
        let ready = self.ready.recv().map_err(|_| io::Error::other("the probe thread ended"))??;
        let _ = self.shared.ready.set(ready);
        Ok(ready)
    }

    /// Starts the measurement.
    pub fn go(&self, times: Times) {
        // The thread can only have ended if it was told to; then there is nothing to start.
        let _ = self.thread.as_ref().map(|thread| thread.start.try_send(times));
    }

    /// A copy of the statistics. See [`Recorder::snapshot`].
    pub fn snapshot(&self) -> Snapshot {
        if self.shared.measuring.load(Ordering::Acquire) {
            self.shared.recorder.snapshot()
        } else {
            Snapshot::default()
        }
    }

    /// What the sound card has seen, if there is one.
    pub fn audio(&self) -> Option<audio::Audio> {
        let is_measuring = self.shared.measuring.load(Ordering::Acquire);
        let audio = self.shared.audio.as_ref()?;
        Some(if is_measuring { audio.snapshot() } else { audio::Audio::default() })
    }

    /// See [`Recorder::recent`].
    pub fn recent(&self) -> (u64, u64) {
        self.shared.recorder.recent()
    }

    /// Samples on their way to a file, if they are saved.
    pub fn ring(&self) -> Option<&Ring> {
        self.shared.ring.as_ref()
    }

    /// The schedule that the thread runs under now; `None` once it has ended.
    pub fn schedule(&self) -> Option<Schedule> {
        self.schedule_of(self.shared.ready.get()?.thread)
    }

    /// The same of its waker; `None` also where there is none.
    pub(crate) fn waker_schedule(&self) -> Option<Schedule> {
        self.schedule_of(self.shared.ready.get()?.waker?)
    }

    fn schedule_of(&self, thread: ThreadId) -> Option<Schedule> {
        sched::schedule_of(thread).ok().filter(|_| !self.is_finished())
    }

    /// Whether the measurement is over.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(|thread| thread.handle.is_finished())
    }

    /// Tells the thread to end with what is due at `at`.
    pub fn stop(&self, at: MonoNs) {
        self.shared.stop.at(at);
    }

    /// Ends the thread, now if need be.
    pub fn end(mut self) -> Past {
        let report = self.end_thread();
        let measured = self.shared.measuring.load(Ordering::Acquire);
        // The writer is gone, so the copy succeeds at once.
        let seen = if measured { self.shared.recorder.snapshot() } else { Snapshot::default() };
        let of_card = |audio: &Arc<AudioRecorder>| {
            if measured { audio.snapshot() } else { audio::Audio::default() }
        };
        let audio = self.shared.audio.as_ref().map(of_card);
        Past { seen, audio, report, shared: Arc::clone(&self.shared) }
    }

    /// What the thread saw, if it measured and was not ended before.
    fn end_thread(&mut self) -> Option<Report> {
        let Thread { start, handle } = self.thread.take()?;
        self.stop(clock::now());
        // The thread may still wait for the times to measure at.
        drop(start);
        handle.end().unwrap_or_default()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.end_thread();
    }
}

/// What is left of a prober that has ended.
pub struct Past {
    /// All of its statistics.
    pub seen: Snapshot,
    /// What the sound card saw, if there was one.
    pub audio: Option<audio::Audio>,
    /// What it saw beside its samples; `None` if it never measured.
    pub report: Option<Report>,
    shared: Arc<Shared>,
}

impl Past {
    /// Samples that were still on their way to a file, if they are saved.
    pub fn ring(&self) -> Option<&Ring> {
        self.shared.ring.as_ref()
    }
}

/// The thread's whole life.
fn live(
    mut plan: ProbePlan,
    shared: &Shared,
    say_ready: &SyncSender<io::Result<Ready>>,
    times: &Receiver<Times>,
) -> Option<Report> {
    use plan::Stimulus as S;
    let (answers, stop) = (plan.answers.take(), &shared.stop);
    macro_rules! on_grid {
        ($sleep:expr) => {
            probe(&plan, shared, say_ready, times, || {
                Ok(Timer::new(KernelTimer::new($sleep, stop, answers)))
            })
        };
    }
    macro_rules! on_wire {
        ($wire:expr) => {{
            let wire = $wire;
            let answered_by = wire.line.answered_by;
            probe(&plan, shared, say_ready, times, || Ok(RoundTrips::new(wire, answered_by, stop)))
        }};
    }
    match plan.stimulus {
        // Without a line no probe is started.
        S::Line => match plan.line.take()? {
            AnyLine::Bytes(port) => on_wire!(port),
            AnyLine::Edges(edges) => on_wire!(edges),
        },
        S::Spin => probe(&plan, shared, say_ready, times, || {
            Ok(Spin::new(MachineClock, stop, plan.gap_from))
        }),
        S::Audio if plan.card.is_some() => {
            let card = plan.card.take().map(MachineCard::new);
            probe(&plan, shared, say_ready, times, || {
                let (work, of_card) = audio_program(shared)?;
                let card = card.ok_or(io::ErrorKind::InvalidInput)?;
                let frames = card.frames();
                Ok(CardAudio::new(card, work, frames, of_card, stop))
            })
        }
        S::Audio => probe(&plan, shared, say_ready, times, || {
            let (work, of_card) = audio_program(shared)?;
            Ok(Audio::new(KernelTimer::new(Nanosleep, stop, answers), work, of_card, stop))
        }),
        // A probe is woken by nothing else.
        S::Timer | S::Deadline | S::Any => on_grid!(Nanosleep),
        S::Timerfd => on_grid!(TimerFile::new()?),
        S::Signal => on_grid!(SignalHandler(PosixTimer::with_handler()?)),
        S::Sigwait => on_grid!(SignalWait(PosixTimer::new()?)),
        S::FutexTimeout => on_grid!(FutexTimeout::default()),
        S::Epoll => on_grid!(EmptyEpoll::new()?),
        S::Rtc => probe(&plan, shared, say_ready, times, || {
            let rtc = availability::open_rtc(plan.interval).map_err(io::Error::other)?;
            Ok(RtcTicks::new(rtc, stop, Watch::new(answers, true)))
        }),
        S::Device => probe(&plan, shared, say_ready, times, || {
            let device = availability::open_device().map_err(io::Error::other)?;
            Ok(DeviceWakeups::new(device, stop, Watch::new(answers, true)))
        }),
        S::Futex
        | S::Pipe
        | S::Eventfd
        | S::Socketpair
        | S::Udp
        | S::Tcp
        | S::Mqueue
        | S::Semaphore
        | S::SysvSemaphore
        | S::Kill
        | S::Condvar => {
            plan.answers = answers;
            for_channel(plan.stimulus, WokenByAnother { plan, shared, say_ready, times })?
        }
        S::RtcGrid => probe(&plan, shared, say_ready, times, || {
            Ok(Timer::of_rate(KernelTimer::new(Nanosleep, stop, answers)))
        }),
    }
}

/// What an audio program computes with on the CPU of the calling thread, and where it records.
fn audio_program(shared: &Shared) -> io::Result<(Arithmetic, Arc<AudioRecorder>)> {
    let of_card = shared.audio.clone().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((Arithmetic::calibrated(SpanNs(of_card.plan().compute_ns())), of_card))
}

/// What a probe needs that another thread wakes.
struct WokenByAnother<'a> {
    plan: ProbePlan,
    shared: &'a Shared,
    say_ready: &'a SyncSender<io::Result<Ready>>,
    times: &'a Receiver<Times>,
}

impl ForChannel for WokenByAnother<'_> {
    type Output = Option<Report>;

    fn with<C: Channel>(self) -> Option<Report> {
        let Self { mut plan, shared, say_ready, times } = self;
        let place = plan.waker;
        let followed = Followed {
            answers: plan.answers.take(),
            announcements: plan.announcements.take(),
            watches: place.cpu == plan.cpu,
        };
        probe(&plan, shared, say_ready, times, || {
            WakerWakeups::<C>::start(place, &shared.stop, followed)
        })
    }
}

fn probe<S: WaitForStimulus>(
    plan: &ProbePlan,
    shared: &Shared,
    say_ready: &SyncSender<io::Result<Ready>>,
    times: &Receiver<Times>,
    stimulus: impl FnOnce() -> io::Result<S>,
) -> Option<Report> {
    let (ready, stimulus) = match prepare(plan, shared).and_then(|ready| Ok((ready, stimulus()?))) {
        Ok(prepared) => prepared,
        Err(e) => {
            let _ = say_ready.send(Err(e));
            return None;
        }
    };
    let home = ready.pinned.then_some(plan.cpu);
    let ready = Ready { waker: stimulus.waker(), ..ready };
    let _ = say_ready.send(Ok(ready));
    // Nobody starts the measurement if another probe could not be prepared.
    let times = times.recv().ok()?;
    Some(measure(home, stimulus, shared, times))
}

fn prepare(plan: &ProbePlan, shared: &Shared) -> io::Result<Ready> {
    let pinned = take_place(plan)?;
    // Real-time threads have no slack; for others 1 ns is the least that can be set.
    let _ = sched::set_timer_slack(SpanNs(1));
    touch_stack();
    // The paths that a late wakeup takes are cold code: they are run once before they count.
    shared.recorder.record(0, 1 << 40, 1 << 10, 1 << 20);
    shared.recorder.reset();
    Ok(Ready { thread: sched::this_thread(), pinned, waker: None, turnaround: turnaround() })
}

/// Binds the thread to its CPU and puts it under its schedule; whether it could be bound.
fn take_place(plan: &ProbePlan) -> io::Result<bool> {
    let everywhere = sched::affinity()?;
    sched::set_affinity(&[plan.cpu])?;
    match sched::set_schedule(plan.schedule) {
        // A SCHED_DEADLINE task must be allowed on all CPUs of its root domain
        // (kernel/sched/syscalls.c, __sched_setscheduler): without a cpuset of one, it cannot be bound.
        Err(e) if matches!(plan.schedule, Schedule::Deadline { .. }) && everywhere.len() > 1 => {
            sched::set_affinity(&everywhere)?;
            sched::set_schedule(plan.schedule).map_err(|_| e)?;
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

/// Touches the stack that the loop will use, so that it does not fault there.
#[inline(never)]
fn touch_stack() {
    std::hint::black_box([0_u8; 32 << 10]);
}

/// The time that a sleep takes whose expiry has all but passed: the shortest period that a loop of
/// sleeps can keep. Three in four take longer, so that a busy machine is not taken for a slow one.
fn turnaround() -> SpanNs {
    let mut spans: Vec<u64> = (0..51)
        .map(|_| {
            let before = clock::now();
            // A failed sleep only makes the time shorter.
            let _ = clock::sleep_until(before.after(SpanNs(1)));
            clock::now().since(before).0
        })
        .collect();
    spans.sort_unstable();
    SpanNs(spans[spans.len() / 4])
}

fn measure(
    home: Option<u32>,
    mut stimulus: impl WaitForStimulus,
    shared: &Shared,
    times: Times,
) -> Report {
    let Shared { recorder, ring, stop, .. } = shared;
    let mut place = Cpu::new(home);
    // Unrecorded up to the start of the run: the first wakeups after a thread starts are slower than
    // all that follow, for caches, branch predictors and page tables are cold.
    stimulus.begin(warm_up(times));
    sample(&mut stimulus, &mut place, u64::MAX, times.warmup, recorder, None, stop);
    recorder.reset();
    shared.measuring.store(true, Ordering::Release);

    let start = times.origin.after(times.phase);
    stimulus.begin(Grid { start, interval: times.interval, points: times.expiries });
    let began = clock::now();
    let preempted = sched::preemptions().unwrap_or(0);
    let (faults, cpu_time) = usage();
    let (most, origin) = (times.wakeups, times.origin);
    let ending = sample(&mut stimulus, &mut place, most, origin, recorder, ring.as_ref(), stop);
    let (faults_after, cpu_time_after) = usage();
    Report {
        ending,
        beside: stimulus.beside(),
        preempted: sched::preemptions().unwrap_or(0).saturating_sub(preempted),
        faults: faults_after.since(faults),
        cpu_time: SpanNs(cpu_time_after - cpu_time),
        wall_time: clock::now().since(began.max(times.origin)),
        schedule: sched::schedule_of(sched::this_thread()),
        waker_schedule: stimulus.waker().and_then(|waker| sched::schedule_of(waker).ok()),
        slack: sched::timer_slack(),
    }
}

/// The wakeups before the run. Resetting the recorder afterwards writes more than a megabyte, which must
/// not make the first wakeup that counts a late one.
fn warm_up(times: Times) -> Grid {
    let span = times.origin.since(times.warmup.after(RESET));
    let points = span.0 / times.interval.0.max(1);
    Grid { start: times.warmup, interval: times.interval, points }
}

fn usage() -> (PageFaults, u64) {
    (PageFaults::of_this_thread().unwrap_or_default(), clock::read(Clock::ThreadCpu))
}

#[cfg(test)]
mod tests {
    use wakescope_core::plan::Between;
    use wakescope_sys::signal::allow_interrupts;

    use super::*;

    fn plan(stimulus: plan::Stimulus) -> ProbePlan {
        let cpu = sched::affinity().unwrap()[0];
        let schedule = sched::schedule_of(sched::this_thread()).unwrap();
        ProbePlan {
            cpu,
            schedule,
            worst: 1,
            ring_slots: 0,
            stimulus,
            waker: WakerPlace { cpu, schedule, between: Between::Threads },
            interval: SpanNs(1_000_000),
            line: None,
            audio: None,
            card: None,
            gap_from: SpanNs(1_000),
            answers: None,
            announcements: None,
        }
    }

    /// A measurement that ends before its first wakeup drops its probers: what their threads have, such as
    /// semaphores of the system, must be gone when the process is.
    #[test]
    fn the_thread_ends_with_its_prober() {
        allow_interrupts().unwrap();
        for stimulus in [plan::Stimulus::Timer, plan::Stimulus::Semaphore] {
            for begins in [false, true] {
                let prober = Prober::spawn(plan(stimulus)).unwrap();
                prober.wait_ready().unwrap();
                if begins {
                    let warmup = clock::now();
                    prober.go(Times {
                        warmup,
                        origin: warmup.after(SpanNs(3_600_000_000_000)),
                        phase: SpanNs(0),
                        interval: SpanNs(1_000_000),
                        expiries: u64::MAX,
                        wakeups: u64::MAX,
                    });
                }
                let of_thread = Arc::downgrade(&prober.shared);
                drop(prober);
                assert!(of_thread.upgrade().is_none(), "{stimulus}, begun: {begins}");
            }
        }
    }
}
