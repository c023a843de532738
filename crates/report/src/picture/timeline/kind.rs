//! What a bar of a timeline stands for, and how it looks.

use wakescope_model::Image;
use wakescope_model::image::SourceKind;
use wakescope_model::kernel::FrameKind;
use wakescope_model::timeline::Stretch;

/// Kinds of bars, in the order of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    User,
    Kernel,
    Spins,
    Interrupt,
    Softirq,
    Scheduler,
    Stolen,
    Idle,
    Holds,
}

impl Kind {
    pub(super) fn of(image: &Image, stretch: &Stretch) -> Self {
        match stretch.at.kind {
            _ if stretch.at.spins_for.is_some() => Self::Spins,
            FrameKind::Interrupt(source)
                if image.sources[source.index()].kind == SourceKind::Steal =>
            {
                Self::Stolen
            }
            FrameKind::Interrupt(_) => Self::Interrupt,
            FrameKind::Softirq { .. } => Self::Softirq,
            FrameKind::Scheduler { .. } => Self::Scheduler,
            FrameKind::Task if stretch.at.softirq.is_some() => Self::Softirq,
            FrameKind::Task if stretch.at.task.is_none() => Self::Idle,
            FrameKind::Task if stretch.at.is_user => Self::User,
            FrameKind::Task => Self::Kernel,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user mode",
            Self::Kernel => "kernel mode",
            Self::Spins => "spins for a lock",
            Self::Interrupt => "interrupt",
            Self::Softirq => "softirq",
            Self::Scheduler => "scheduler",
            Self::Stolen => "stolen by the hypervisor",
            Self::Idle => "idle",
            Self::Holds => "holds the lock",
        }
    }

    /// Whether a task's name belongs to it.
    pub(super) fn has_task(self) -> bool {
        matches!(self, Self::User | Self::Kernel)
    }

    /// Its number among bars: a colour, and without or with one of two hatchings. On grey paper no two
    /// look alike.
    pub(super) fn number(self) -> usize {
        match self {
            Self::Kernel => 0,
            Self::Holds => 2,
            Self::User => 5,
            Self::Interrupt => HATCHED + 1,
            Self::Softirq => HATCHED + 4,
            Self::Stolen => HATCHED + 6,
            Self::Spins => 2 * HATCHED,
            Self::Scheduler => 2 * HATCHED + 3,
            Self::Idle => 6,
        }
    }

    /// Whether it is hatched, so that nothing can be written into it.
    pub(super) fn is_hatched(self) -> bool {
        self.number() >= HATCHED
    }
}

/// So many colours of bars are not hatched; the next so many are hatched in one way, the rest in the other.
const HATCHED: usize = super::super::scene::COLOURS.len();
