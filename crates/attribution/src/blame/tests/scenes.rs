//! Scenes that rules tell apart, and of which chance alone would make one in thousands of wakeups.

use super::*;

/// What a drawn wakeup is made into.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scene {
    /// The waker is what was interrupted, and goes on in the kernel.
    WakerGoesOn,
    /// Another CPU's call comes after another interrupt.
    CalledLater,
    /// The timer's interrupt breaks into the way back to a program.
    WayBack,
    /// The same, from another interrupt, which came when the wakeup was due already.
    WayBackFromAnother,
    /// A second interrupt breaks into a program before the scheduler is entered.
    SecondInterrupt,
}

impl Scene {
    pub(super) const ALL: [Self; 5] = [
        Self::WakerGoesOn,
        Self::CalledLater,
        Self::WayBack,
        Self::WayBackFromAnother,
        Self::SecondInterrupt,
    ];

    pub(super) fn play(self, wakeup: &mut Wakeup) {
        let Some(context) = &mut wakeup.interrupted else { return };
        let Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response } = wakeup.marks;
        let left = sched_entry.or(switch_in).unwrap_or(response);
        match self {
            Self::WakerGoesOn => {
                context.mode = Mode::Kernel;
                context.stack = frames(&["f"]);
                let task = context.task.clone();
                wakeup.woken_by = WokenBy::Waker { task, on: wakeup.cpu, in_interrupt: false };
            }
            Self::CalledLater => {
                context.task = rm();
                let on = wakeup.cpu + 1;
                wakeup.woken_by = WokenBy::Waker { task: spin(), on, in_interrupt: false };
                wakeup.marks = Marks { irq_entry: None, irq_exit: None, ..wakeup.marks };
                let came = [entry("eth0"), exit("eth0"), entry("reschedule"), exit("reschedule")];
                put(came, (due, left), &mut wakeup.events);
            }
            Self::WayBack | Self::WayBackFromAnother => {
                *context = Context {
                    task: rm(),
                    stack: frames(&[
                        "irqentry_exit_to_user_mode",
                        "asm_sysvec_apic_timer_interrupt",
                    ]),
                    ..in_kernel()
                };
                wakeup.irqs_off = None;
                wakeup.woken_by = WokenBy::Timer { on: wakeup.cpu };
                if let (Self::WayBackFromAnother, Some(until)) = (self, irq_entry) {
                    put([entry("eth0"), exit("eth0")], (due, until), &mut wakeup.events);
                }
            }
            Self::SecondInterrupt => {
                *context = Context { mode: Mode::User, ..Context::default() };
                context.task = rm();
                if let Some(from) = irq_exit {
                    put([entry("eth0"), exit("eth0")], (from, left), &mut wakeup.events);
                }
            }
        }
    }
}

/// Puts events between two times, in place of those that were there.
fn put<const N: usize>(came: [What; N], (from, until): (MonoNs, MonoNs), events: &mut Vec<Event>) {
    let step = until.0.saturating_sub(from.0) / (N as u64 + 1);
    events.retain(|event| event.at <= from || event.at >= until);
    let place = events.partition_point(|event| event.at <= from);
    let came =
        (1..).zip(came).map(|(number, what)| Event { at: MonoNs(from.0 + step * number), what });
    events.splice(place..place, came);
}
