//! What a probe and its waker share, in memory that a forked process has as well.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use wakescope_core::plan::Between;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::futex::Scope;
use wakescope_sys::sched::{ThreadId, this_thread};
use wakescope_sys::shared_page::SharedPage;
use wakescope_sys::wake_signal::interrupt;

use crate::stimulus::{Loss, Waited};

/// The probe waits, or is about to.
pub(crate) const WAITING: u32 = 0;
/// The waker has woken the probe, which has not yet returned to wait again.
pub const WOKEN: u32 = 1;

/// Wakeups are to come.
const GOING: u32 = 0;
/// There are no more of this grid.
const OVER: u32 = 1;
/// The probe knows that.
const SEEN: u32 = 2;
/// No more can come: the waker's process has ended.
const WAKER_ENDED: u32 = 3;
/// No more can come: the waker's call failed.
const FAILED: u32 = 4;
/// No more can come: the waker's CPU is gone.
const CPU_LOST: u32 = 5;

/// How often the waker looks whether the probe knows that it is over.
const PAUSE: SpanNs = SpanNs(1_000_000);
/// A probe that has not returned from its last wakeup by then is interrupted. If that ends its sleep, the
/// wakeup never arrived.
const PATIENCE: SpanNs = SpanNs(2_000_000_000);

/// What a probe and its waker share. Copies are the same.
#[derive(Clone)]
pub struct Exchange {
    page: SharedPage,
    between: Between,
    process: u32,
    probe: ThreadId,
}

/// What the probe does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits, or is about to.
    Waiting,
    /// It was woken, and has not yet returned to wait again.
    Woken,
}

impl Exchange {
    /// One for a probe, the calling thread, and a waker that is yet to be started.
    pub fn of_this_thread(between: Between) -> io::Result<Self> {
        let (page, process, probe) = (SharedPage::new()?, std::process::id(), this_thread());
        let this = Self { page, between, process, probe };
        this.word().store(WOKEN, Ordering::Release);
        Ok(this)
    }

    /// Whether the waker is a process of its own.
    pub fn between(&self) -> Between {
        self.between
    }

    /// Whose threads sleep on words of this memory.
    #[inline]
    pub fn scope(&self) -> Scope {
        match self.between {
            Between::Threads => Scope::Private,
            Between::Processes => Scope::Shared,
        }
    }

    /// The probe's process and thread.
    #[inline]
    pub fn probe(&self) -> (u32, ThreadId) {
        (self.process, self.probe)
    }

    /// The state as a word, [`WAITING`] or [`WOKEN`], which a probe can sleep on.
    #[inline]
    pub fn word(&self) -> &AtomicU32 {
        &self.page.words()[0]
    }

    fn end_word(&self) -> &AtomicU32 {
        &self.page.words()[1]
    }

    fn stop_word(&self) -> &AtomicU32 {
        &self.page.words()[2]
    }

    /// The number of the error of a call that failed, or of the CPU that is gone.
    fn cause(&self) -> &AtomicU32 {
        &self.page.words()[3]
    }

    fn waker_word(&self) -> &AtomicU32 {
        &self.page.words()[4]
    }

    /// Two words for a channel's own use.
    #[inline]
    pub(crate) fn of_channel(&self) -> [&AtomicU32; 2] {
        let words = self.page.words();
        [&words[8], &words[9]]
    }

    fn due_number(&self) -> &AtomicU64 {
        &self.page.numbers()[0]
    }

    fn skipped_number(&self) -> &AtomicU64 {
        &self.page.numbers()[1]
    }

    fn moved_number(&self) -> &AtomicU64 {
        &self.page.numbers()[3]
    }

    fn awake_number(&self) -> &AtomicU64 {
        &self.page.numbers()[2]
    }

    /// Prepares for another grid, before the waker is given it.
    pub fn begin(&self) {
        self.skipped_number().store(0, Ordering::Relaxed);
        self.awake_number().store(0, Ordering::Relaxed);
        self.moved_number().store(0, Ordering::Relaxed);
        // Not waiting yet: a waker that is ahead of the probe finds nobody to wake.
        self.word().store(WOKEN, Ordering::Release);
        // That no more can come stays true.
        let _ = self.end_word().compare_exchange(SEEN, GOING, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The probe waits from now on.
    #[inline]
    pub fn offer(&self) {
        self.word().store(WAITING, Ordering::Release);
    }

    /// What the probe does.
    #[inline]
    pub fn state(&self) -> State {
        if self.word().load(Ordering::Acquire) == WAITING { State::Waiting } else { State::Woken }
    }

    /// When the wakeup was due that was made last.
    #[inline]
    pub fn due(&self) -> MonoNs {
        MonoNs(self.due_number().load(Ordering::Acquire))
    }

    /// The probe is woken, for a wakeup that is due at `due`.
    #[inline]
    pub(crate) fn set_woken(&self, due: MonoNs) {
        self.due_number().store(due.0, Ordering::Release);
        self.word().store(WOKEN, Ordering::Release);
    }

    /// Points of the grid without a wakeup, since the waker was late itself, or had no room to send it.
    pub fn skipped(&self) -> u64 {
        self.skipped_number().load(Ordering::Relaxed)
    }

    /// Counts such points.
    #[inline]
    pub fn skip(&self, points: u64) {
        self.skipped_number().fetch_add(points, Ordering::Relaxed);
    }

    /// Points of the grid at which the waker found the probe not back from the wakeup before.
    #[inline]
    pub(crate) fn found_awake(&self) -> u64 {
        self.awake_number().load(Ordering::Relaxed)
    }

    /// Counts such a point.
    #[inline]
    pub(crate) fn find_awake(&self) {
        self.awake_number().fetch_add(1, Ordering::Relaxed);
    }

    /// How often the waker found itself on another CPU than its own.
    pub fn moved(&self) -> u64 {
        self.moved_number().load(Ordering::Relaxed)
    }

    /// Counts such a time.
    pub(crate) fn count_move(&self) {
        self.moved_number().fetch_add(1, Ordering::Relaxed);
    }

    /// Tells the waker to end.
    pub fn stop(&self) {
        self.stop_word().store(1, Ordering::Relaxed);
    }

    /// Whether the waker is to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop_word().load(Ordering::Relaxed) != 0
    }

    /// The waker, by the kernel's number.
    #[inline]
    pub fn waker(&self) -> u32 {
        self.waker_word().load(Ordering::Relaxed)
    }

    /// The calling thread is the waker.
    pub(crate) fn become_waker(&self) {
        self.waker_word().store(this_thread().number(), Ordering::Relaxed);
    }

    /// For the probe: why no further wakeup comes, if that is so.
    #[inline]
    pub fn ended(&self) -> Option<Waited> {
        match self.end_word().load(Ordering::Acquire) {
            GOING => None,
            WAKER_ENDED => Some(Waited::Lost(Loss::WakerEnded)),
            FAILED => {
                let errno = self.cause().load(Ordering::Relaxed);
                Some(Waited::Lost(Loss::Failed(i32::try_from(errno).unwrap_or(0))))
            }
            CPU_LOST => {
                Some(Waited::Lost(Loss::WakerCpuLost(self.cause().load(Ordering::Relaxed))))
            }
            _ => {
                let (from, to) = (OVER, SEEN);
                let _ =
                    self.end_word().compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
                Some(Waited::Done)
            }
        }
    }

    /// For the probe, whose sleep was interrupted: why no further wakeup comes, if that is so. One that was
    /// sent would have ended the sleep.
    pub(crate) fn ended_in_sleep(&self) -> Option<Waited> {
        match self.ended()? {
            Waited::Done if self.state() == State::Woken => Some(Waited::Lost(Loss::NeverArrived)),
            ended => Some(ended),
        }
    }

    /// Tells the probe that there are no more wakeups of this grid, once it has returned from the last
    /// one: that must not be lost, however late it is. Not through the channel, which may be broken; it
    /// is only told before each interruption.
    pub fn end(&self, before_interrupt: impl Fn()) {
        let end = self.end_word();
        if end.compare_exchange(GOING, OVER, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        let last = clock::now();
        while end.load(Ordering::Acquire) == OVER && !self.is_stopped() {
            let is_late = clock::now().since(last) > PATIENCE;
            if self.state() == State::Waiting || is_late {
                before_interrupt();
                let _ = interrupt(self.process, self.probe);
            }
            let _ = clock::sleep_until(clock::now().after(PAUSE));
        }
    }

    /// Tells the probe that no more wakeups can come, because the waker's process has ended.
    pub(crate) fn lose_waker(&self) {
        self.end_word().store(WAKER_ENDED, Ordering::Release);
        self.interrupt_until_stopped();
    }

    /// Tells the probe that no more wakeups can come, because the waker's call failed with `errno`.
    pub fn fail(&self, errno: i32) {
        self.cause().store(u32::try_from(errno).unwrap_or(0), Ordering::Relaxed);
        self.end_word().store(FAILED, Ordering::Release);
        self.interrupt_until_stopped();
    }

    /// Tells the probe that no more wakeups can come, because the waker's CPU is gone.
    pub(crate) fn lose_cpu(&self, cpu: u32) {
        self.cause().store(cpu, Ordering::Relaxed);
        self.end_word().store(CPU_LOST, Ordering::Release);
        self.interrupt_until_stopped();
    }

    /// Breaks the probe's sleep, which it may have been about to begin, until it ends the waker.
    fn interrupt_until_stopped(&self) {
        while !self.is_stopped() {
            let _ = interrupt(self.process, self.probe);
            let _ = clock::sleep_until(clock::now().after(PAUSE));
        }
    }
}
