//! What a probe tells whoever follows it from the kernel, around each sleep.

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::shared::Answers;
use wakescope_sys::timer_file::TimerFile;

/// Tells a tracer when wakeups are due and when they were answered, if there is one.
pub struct Watch(Option<Watched>);

struct Watched {
    answers: Answers,
    /// Whether a tracer does not recognise by itself when a wakeup is due.
    announces: bool,
    /// Expires if a wakeup is late enough to be looked at: then whoever follows sees what runs.
    watchdog: Option<TimerFile>,
}

impl Watch {
    /// For whoever gets these answers. `announces`: it must be told when each wakeup is due.
    pub fn new(answers: Option<Answers>, announces: bool) -> Self {
        let watchdog = || TimerFile::new().ok();
        Self(answers.map(|answers| Watched { answers, announces, watchdog: watchdog() }))
    }

    /// Nobody follows.
    pub fn none() -> Self {
        Self(None)
    }

    /// A sleep begins that is to end at `due`: that is announced, and the watchdog expires some time
    /// after it. Before the sleep, so that it delays nothing that is measured.
    #[inline]
    pub fn before(&self, due: MonoNs) {
        let Some(Watched { answers, announces, watchdog }) = &self.0 else { return };
        if *announces {
            answers.announce(due.0);
        }
        let Some(watchdog) = watchdog else { return };
        let patience = answers.patience();
        if patience > 0 {
            // Without it less is seen, and the wakeup is as late.
            let _ = watchdog.arm(due.after(SpanNs(patience)));
        }
    }

    /// The sleep that was to end at `due` did so at `woken`.
    #[inline]
    pub fn after(&mut self, due: MonoNs, woken: MonoNs) {
        let Some(Watched { answers, announces, .. }) = &mut self.0 else { return };
        answers.put(due.0, woken.0);
        if *announces {
            // It is over, also if the thread did not have to sleep.
            answers.announce(0);
        }
    }

    /// When the watchdog expires.
    #[cfg(test)]
    pub(super) fn expires(&self) -> Option<MonoNs> {
        self.0.as_ref()?.watchdog.as_ref()?.due().unwrap()
    }
}
