//! Why wakeups cannot be followed, as the kernel says it.

use std::io;

use aya::programs::ProgramError;
use wakescope_sys::time_namespace::Shifted;

use crate::target::TargetError;

/// Why wakeups cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The target.
    #[error(transparent)]
    Target(TargetError),
    /// The kernel shows no type information.
    #[error("the kernel provides no BTF type information: {}: {0}", crate::kernel::BTF)]
    NoTypes(io::Error),
    /// The list of the CPUs that there may be cannot be read.
    #[error("cannot read {}: {0}", crate::cpus::POSSIBLE)]
    NoCpus(io::Error),
    /// The kernel lacks this tracepoint.
    #[error("this kernel has no tracepoint {0} for BPF")]
    NoTracepoint(&'static str),
    /// The kernel does not keep what the waits of a task follow from: what, and the option of its
    /// configuration that it is built without.
    #[error("this kernel has no {0}: it is built without {1}")]
    NoField(&'static str, &'static str),
    /// The kernel could keep account of waits, and does not.
    #[error("the kernel does not count the waits of tasks: /proc/self/schedstat shows none")]
    NotCounting,
    /// This process reads another clock than the kernel's programs.
    #[error(transparent)]
    Shifted(#[from] Shifted),
    /// This process may not load programs.
    #[error("this process may not load BPF programs: operation not permitted")]
    NotAllowed,
    /// The kernel lets no program read its memory.
    #[error("the kernel does not allow BPF programs to read its memory")]
    LockedDown,
    /// There is no memory for the maps.
    #[error("the kernel has no memory for the maps of the BPF programs: {0}")]
    NoMemory(String),
    /// The kernel refuses a program, or a map: which, and why.
    #[error("the kernel refuses the BPF program {0}: {1}")]
    Refused(&'static str, String),
}

impl TraceError {
    /// That the kernel does not take the program `name`.
    pub(crate) fn of_program(name: &'static str, error: &ProgramError) -> Self {
        match error {
            // Who may not load it has no verifier that would say why.
            _ if denied(error) => Self::NotAllowed,
            ProgramError::LoadError { io_error, verifier_log } => {
                Self::of_verifier(name, io_error, &verifier_log.to_string())
            }
            _ => Self::Refused(name, innermost(error)),
        }
    }

    /// That the kernel does not take the maps.
    pub(crate) fn of_maps(error: &(dyn std::error::Error + 'static)) -> Self {
        match os_error(error) {
            Some(EPERM) => Self::NotAllowed,
            Some(ENOMEM) => Self::NoMemory(innermost(error)),
            _ => Self::Refused("maps", innermost(error)),
        }
    }

    fn of_verifier(name: &'static str, error: &io::Error, log: &str) -> Self {
        match denies_reading(log) {
            true => Self::LockedDown,
            false => Self::Refused(name, format!("{error}: {}", decisive(log))),
        }
    }
}

/// Whether the verifier says in `log` that programs may not read the kernel's memory. Every kernel
/// with type information has the function for it, but to one that is locked down to confidentiality
/// it is unknown, also under its name of before 5.5, which is then tried. Older kernels say the first.
fn denies_reading(log: &str) -> bool {
    const WORDS: [&str; 2] = ["unknown func", "cannot use helper"];
    let says = |line: &str| WORDS.iter().any(|words| line.contains(words));
    log.lines().any(|line| says(line) && line.contains("bpf_probe_read"))
}

/// The end of what the verifier says, where it gives its reason. Before that stands every
/// instruction that it has looked at, and behind it how much that was.
fn decisive(log: &str) -> String {
    const LINES: usize = 3;
    let lines = log.split(['\n', '\0']).map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !is_statistics(line));
    let lines: Vec<&str> = lines.collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

fn is_statistics(line: &str) -> bool {
    ["processed ", "verification time ", "stack depth "].iter().any(|s| line.starts_with(s))
}

/// Operation not permitted. EACCES is what the verifier says of a program that it does not like.
const EPERM: i32 = 1;

/// Cannot allocate memory.
const ENOMEM: i32 = 12;

/// Whether what lies behind `error` is that this process may not.
pub(crate) fn denied(error: &(dyn std::error::Error + 'static)) -> bool {
    os_error(error) == Some(EPERM)
}

/// The number of the system's error that lies behind `error`, if one does.
fn os_error(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut behind = std::iter::successors(Some(error), |error| error.source());
    behind.find_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error())
}

/// The error and all that lies behind it, on one line. Some tell what lies behind them, too, which is
/// not said again.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(e) = at {
        let behind = e.to_string();
        if !text.ends_with(&behind) {
            text = format!("{text}: {behind}");
        }
        at = e.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use aya::maps::MapError;
    use aya::sys::SyscallError;

    #[track_caller]
    fn check(code: i32, log: &str, text: &str) {
        let error = io::Error::from_raw_os_error(code);
        assert_eq!(TraceError::of_verifier("on_switch", &error, log).to_string(), text);
    }

    #[test]
    fn the_verifiers_reason_is_told() {
        let locked = "the kernel does not allow BPF programs to read its memory";
        // As 6.1 and 7.2 say it.
        let seen = "0: R1=ctx(off=0,imm=0) R10=fp0\n; x(); @ state.h:85\n0: (85) call 8\n";
        let end = "processed 1 insns (limit 1000000)\n\0";
        let unknown = "unknown func bpf_probe_read#4\n";
        check(22, &format!("{seen}{unknown}{end}"), locked);
        let cannot = "program of this type cannot use helper bpf_probe_read_kernel#113\n";
        check(22, &format!("{seen}{cannot}{end}"), locked);
        check(
            22,
            &format!("{seen}unknown func bpf_get_func_ip#173\n{end}"),
            "the kernel refuses the BPF program on_switch: Invalid argument (os error 22): \
             ; x(); @ state.h:85; 0: (85) call 8; unknown func bpf_get_func_ip#173",
        );
        check(
            28,
            "",
            "the kernel refuses the BPF program on_switch: No space left on device (os error 28): ",
        );
    }

    #[test]
    fn only_a_lack_of_privilege_is_one() {
        let error = |code| {
            let io_error = io::Error::from_raw_os_error(code);
            ProgramError::SyscallError(SyscallError { call: "bpf", io_error })
        };
        // EPERM, EACCES, EINVAL.
        assert!(denied(&error(1)));
        assert!(!denied(&error(13)) && !denied(&error(22)));
        assert!(!denied(&io::Error::other("operation not permitted")));
        let text = innermost(&error(22));
        assert!(text.contains("Invalid argument") && !text.contains('\n'), "{text}");
        assert_eq!(text.matches("Invalid argument").count(), 1, "{text}");
    }

    #[test]
    fn maps_without_room_are_a_matter_of_memory() {
        let of = |code| {
            let io_error = io::Error::from_raw_os_error(code);
            TraceError::of_maps(&MapError::CreateError { name: "rows".into(), code: -1, io_error })
        };
        assert!(matches!(of(1), TraceError::NotAllowed));
        assert!(matches!(of(12), TraceError::NoMemory(_)));
        assert!(matches!(of(22), TraceError::Refused("maps", _)));
    }
}
