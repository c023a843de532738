//! Which stimuli this machine has.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use wakescope_core::plan::{Between, Plan, Rate, Stimulus};
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::empty_epoll::EmptyEpoll;
use wakescope_sys::rtc::Rtc;
use wakescope_sys::time_namespace::{Shifted, check_clock};
use wakescope_sys::wake_signal;
use wakescope_sys::wakeup_device::{PERIOD_MIN, VERSION, WakeupDevice};

use super::channel;

/// Why a stimulus cannot be had here.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// The kernel does not have the call.
    #[error("the kernel lacks epoll_pwait2: {0}")]
    EpollPwait2(#[source] io::Error),
    /// The channel between waker and probe cannot be opened.
    #[error("{1}")]
    Channel(Stimulus, #[source] io::Error),
    /// Neither the waker nor the end of the run can interrupt the probe.
    #[error("the system call tgkill is refused: {0}")]
    Interrupts(#[source] io::Error),
    /// There is no real-time clock.
    #[error("this machine has no /dev/rtc0")]
    NoRtc,
    /// Another program has it open.
    #[error("{}: another program uses it", .0.display())]
    RtcBusy(PathBuf),
    /// It may not be opened.
    #[error("{}: {1}", .0.display())]
    RtcClosed(PathBuf, #[source] io::Error),
    /// Its interrupt does not come at this rate: for lack of permission, or for another reason.
    #[error("{}: {1} is refused: {2}", .0.display())]
    RtcRate(PathBuf, Rate, #[source] io::Error),
    /// Its interrupt is made by a timer that is not precise.
    #[error("the kernel has no high-resolution timers: they expire every {0}")]
    CoarseTimers(SpanNs),
    /// The kernel module is not loaded.
    #[error("this machine has no /dev/wakescope")]
    NoDevice,
    /// The module's device may not be opened, or fails.
    #[error("/dev/wakescope: {0}")]
    DeviceClosed(#[source] io::Error),
    /// The module's times are of another clock than this process reads.
    #[error(transparent)]
    Shifted(#[from] Shifted),
    /// The module has another interface than this program knows.
    #[error(
        "the kernel module wakescope has version {0} of its interface, and {VERSION} is needed"
    )]
    DeviceVersion(u32),
    /// The module's timers have longer periods.
    #[error("the kernel module wakescope has no period below {PERIOD_MIN}, and {0} is asked for")]
    DevicePeriod(SpanNs),
    /// No rate has this interval.
    #[error("no rate of a real-time clock has an interval of {0}")]
    Interval(SpanNs),
    /// Only one probe can wait for it.
    #[error("a real-time clock wakes one probe, not {0}")]
    OneProbe(usize),
}

impl Unavailable {
    /// What lies behind it, if there is more to say, and what to do.
    pub fn cause_and_remedy(&self) -> (Option<&'static str>, String) {
        let grid = "use --stimulus rtc-grid: the same grid by a timer";
        let permitted = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
        let (cause, remedy) = match self {
            Self::EpollPwait2(_) => (
                Some(
                    "it came with Linux 5.11; the time-out of epoll_wait is in whole \
                     milliseconds, which would be most of the latency",
                ),
                "use --stimulus timer or futex-timeout",
            ),
            Self::Interrupts(_) => (
                Some("a probe that another thread wakes is interrupted by it when the run ends"),
                "allow it in the seccomp filter, or use --stimulus timer",
            ),
            Self::Channel(stimulus, e) => {
                let (cause, remedy) = of_channel(*stimulus, e);
                return (cause, remedy.into());
            }
            Self::NoDevice => (
                Some("the kernel module wakescope is not loaded"),
                "load it (kmod/README.md of the sources), or use --stimulus timerfd; in the lab, \
                 guests load it by themselves: wakescope lab run --stimulus device",
            ),
            Self::DeviceClosed(e) if permitted(e) => {
                (None, "run as root; or use --stimulus timerfd")
            }
            Self::DeviceClosed(_) => {
                (None, "end other programs that use it; or use --stimulus timerfd")
            }
            Self::Shifted(_) => {
                let instead = "use --stimulus timerfd";
                return (Some(Shifted::CAUSE), format!("{}; or {instead}", Shifted::REMEDY));
            }
            Self::DeviceVersion(_) => (
                Some("the module was built from other sources than this program"),
                "build and load it again: make -C kmod, rmmod wakescope, insmod kmod/wakescope.ko",
            ),
            Self::DevicePeriod(_) => {
                (None, "choose a longer --interval; or use --stimulus timerfd")
            }
            Self::NoRtc => (None, grid),
            Self::RtcBusy(path) => {
                let end = "end that program; to find it:";
                return (None, format!("{end} fuser -v {}; or {grid}", path.display()));
            }
            Self::RtcClosed(_, e) if permitted(e) => {
                return (None, format!("run as root, or {grid}"));
            }
            Self::RtcRate(path, rate, e) if permitted(e) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let set = format!("echo {} > /sys/class/rtc/{name}/max_user_freq", rate.hz());
                return (
                    Some("without CAP_SYS_RESOURCE, rates are limited by max_user_freq"),
                    format!("run as root; or as root: {set}; or {grid}"),
                );
            }
            Self::RtcClosed(..) | Self::RtcRate(..) | Self::CoarseTimers(_) => (None, grid),
            Self::Interval(_) => (None, "name the rate: --rtc-hz 2048"),
            Self::OneProbe(_) => (
                Some("the kernel lets one program open it, once"),
                "name one CPU: --cpus 0; or use --stimulus rtc-grid for several",
            ),
        };
        (cause, remedy.into())
    }
}

/// Whether the stimulus of `plan` can be had here.
pub(crate) fn check(plan: &Plan) -> Result<(), Unavailable> {
    let interval = SpanNs(plan.interval_ns);
    match plan.stimulus {
        Stimulus::Epoll => EmptyEpoll::new()
            .and_then(|epoll| epoll.sleep(SpanNs(0)))
            .map_err(Unavailable::EpollPwait2),
        Stimulus::Rtc if plan.cpus.len() > 1 => Err(Unavailable::OneProbe(plan.cpus.len())),
        Stimulus::Rtc => open_rtc(interval).map(drop),
        Stimulus::Device if interval < PERIOD_MIN => Err(Unavailable::DevicePeriod(interval)),
        Stimulus::Device => open_device().map(drop),
        Stimulus::RtcGrid => Rate::of(interval).map(drop).ok_or(Unavailable::Interval(interval)),
        stimulus => {
            if stimulus.needs_waker() {
                wake_signal::check().map_err(Unavailable::Interrupts)?;
            }
            let between = plan.waker.as_ref().map_or(Between::Threads, |waker| waker.between);
            channel::check(stimulus, between, plan.cpus.len())
                .map_err(|e| Unavailable::Channel(stimulus, e))
        }
    }
}

/// Why a channel cannot be opened, and what to do.
fn of_channel(stimulus: Stimulus, e: &io::Error) -> (Option<&'static str>, &'static str) {
    let is_absent = e.kind() == io::ErrorKind::Unsupported;
    match stimulus {
        Stimulus::Udp | Stimulus::Tcp => (
            Some("it needs the loopback device, without a firewall in the way"),
            "bring the device up: ip link set lo up; or use --stimulus socketpair",
        ),
        Stimulus::Mqueue if is_absent => (
            Some("this kernel is built without POSIX message queues (CONFIG_POSIX_MQUEUE)"),
            "use another stimulus, such as --stimulus pipe",
        ),
        Stimulus::Mqueue => (
            Some("this user has too little room for message queues, or the system has"),
            "raise ulimit -q, or fs.mqueue.queues_max; or use another stimulus",
        ),
        Stimulus::SysvSemaphore if is_absent => (
            Some("this kernel is built without System V IPC (CONFIG_SYSVIPC)"),
            "use another stimulus, such as --stimulus semaphore",
        ),
        Stimulus::SysvSemaphore if e.kind() == io::ErrorKind::StorageFull => (
            Some("there are too many System V semaphores (kernel.sem), see ipcs -s"),
            "remove those that nobody uses, or use --stimulus semaphore",
        ),
        Stimulus::SysvSemaphore => (
            None,
            "mount /proc if it is not mounted (mount -t proc proc /proc), or use --stimulus semaphore",
        ),
        Stimulus::Condvar if is_absent => (
            Some("this kernel has no futexes that inherit priorities (CONFIG_FUTEX_PI)"),
            "use another stimulus, such as --stimulus futex",
        ),
        _ => (None, "use another stimulus, such as --stimulus futex"),
    }
}

/// The machine's real-time clock, at the rate that has this interval.
pub(crate) fn open_rtc(interval: SpanNs) -> Result<Rtc, Unavailable> {
    let rate = Rate::of(interval).ok_or(Unavailable::Interval(interval))?;
    // The kernel makes the interrupt with an hrtimer, and rounds its period up to that.
    let resolution = clock::resolution();
    if resolution > SpanNs(1) {
        return Err(Unavailable::CoarseTimers(resolution));
    }
    // The first is the clock that the system uses, where there are several.
    let names = ["/dev/rtc", "/dev/rtc0", "/dev/rtc1"].map(Path::new);
    let path = names.into_iter().find(|path| path.exists()).ok_or(Unavailable::NoRtc)?;
    let rtc = File::open(path).and_then(Rtc::new).map_err(|e| refusal_of_rtc(path, e))?;
    let path = path.canonicalize().unwrap_or_else(|_| path.into());
    let set = rtc.set_rate(rate.hz()).and_then(|()| rtc.start()).and_then(|()| rtc.stop());
    set.map_err(|e| Unavailable::RtcRate(path, rate, e))?;
    Ok(rtc)
}

/// Why the real-time clock at `path` cannot be opened.
fn refusal_of_rtc(path: &Path, e: io::Error) -> Unavailable {
    match e.kind() {
        io::ErrorKind::NotFound => Unavailable::NoRtc,
        io::ErrorKind::ResourceBusy => Unavailable::RtcBusy(path.into()),
        _ => Unavailable::RtcClosed(path.into(), e),
    }
}

/// The device of the project's kernel module.
pub(crate) fn open_device() -> Result<WakeupDevice, Unavailable> {
    check_clock()?;
    let file = File::open("/dev/wakescope").map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Unavailable::NoDevice,
        _ => Unavailable::DeviceClosed(e),
    })?;
    let device = WakeupDevice::new(file).map_err(Unavailable::DeviceClosed)?;
    match device.version().map_err(Unavailable::DeviceClosed)? {
        VERSION => Ok(device),
        other => Err(Unavailable::DeviceVersion(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_clock_does_is_refused_with_a_remedy_before_any_is_looked_for() {
        let plan = |stimulus, interval_ns, cpus: &[u32]| Plan {
            stimulus,
            interval_ns,
            cpus: cpus.into(),
            ..Plan::default()
        };
        for (plan, want, remedy) in [
            (plan(Stimulus::Rtc, 488_281, &[0, 1]), "wakes one probe, not 2", "--cpus 0"),
            (plan(Stimulus::Rtc, 1_000_000, &[0]), "an interval of 1.00 ms", "--rtc-hz 2048"),
            (plan(Stimulus::RtcGrid, 488_282, &[0]), "an interval of 488 µs", "--rtc-hz 2048"),
            (
                plan(Stimulus::Device, 49_999, &[0]),
                "no period below 50.0 µs",
                "a longer --interval",
            ),
        ] {
            let error = check(&plan).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
            assert!(error.cause_and_remedy().1.contains(remedy), "{error:?}");
        }
        check(&plan(Stimulus::RtcGrid, 488_281, &[0, 1])).unwrap();
        // As the kernel answers where another program has it open, where it may not be opened, and where
        // its driver is gone.
        for (errno, want) in
            [(16, "another program uses it"), (13, "denied"), (2, "has no /dev/rtc0")]
        {
            let e = io::Error::from_raw_os_error(errno);
            let refusal = refusal_of_rtc(Path::new("/dev/rtc0"), e).to_string();
            assert!(refusal.contains(want), "{refusal}");
        }
        // A limit is blamed only where the kernel says that it is reached.
        for (e, want) in [
            (io::Error::from_raw_os_error(28), "too many System V semaphores"),
            (io::Error::from(io::ErrorKind::Unsupported), "CONFIG_SYSVIPC"),
            (io::Error::other("/proc does not tell about this process"), ""),
            (io::Error::from(io::ErrorKind::PermissionDenied), ""),
        ] {
            let (cause, remedy) = of_channel(Stimulus::SysvSemaphore, &e);
            assert_eq!(cause.is_some(), !want.is_empty(), "{e}");
            assert!(cause.unwrap_or_default().contains(want), "{e}");
            assert!(remedy.contains("--stimulus semaphore"), "{e}");
        }
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let refused = Unavailable::Interrupts(denied());
        assert!(refused.to_string().contains("tgkill is refused"), "{refused}");
        assert!(refused.cause_and_remedy().1.contains("--stimulus timer"), "{refused:?}");
        let path = || PathBuf::from("/dev/rtc0");
        for (error, want) in [
            (Unavailable::RtcBusy(path()), "fuser -v /dev/rtc0"),
            (Unavailable::RtcClosed(path(), denied()), "run as root"),
            (
                Unavailable::RtcRate(path(), Rate::REALFEEL, denied()),
                "echo 2048 > /sys/class/rtc/rtc0/max_user_freq",
            ),
            (Unavailable::NoRtc, "--stimulus rtc-grid"),
            (Unavailable::CoarseTimers(SpanNs(4_000_000)), "--stimulus rtc-grid"),
        ] {
            let remedy = error.cause_and_remedy().1;
            assert!(remedy.contains(want) && remedy.contains("rtc-grid"), "{remedy}");
        }
    }
}
