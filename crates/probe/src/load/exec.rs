//! The load `exec:COMMAND`: whatever the user wants.

use std::path::Path;

use wakescope_sys::process::Exit;

use super::foreign::Foreign;
use super::kinds::Job;

const SHELL: &str = "/bin/sh";

/// Runs the command in a shell until the desk says stop. A command that ends is a fault: a load
/// lasts, and what comes after its end would be measured without one.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let path = Path::new(SHELL);
    if !path.exists() {
        return Err(format!("a command needs a shell, but {SHELL} does not exist"));
    }
    let arguments = &["-c", job.argument()];
    let shell = Foreign { path, arguments, work_in: None, cleans_up: false };
    shell.run(job.desk)?.map_or(Ok(()), |exit| Err(obituary(exit)))
}

/// How the command ended. Not what it said: that may be part of what it was asked to do.
fn obituary(exit: Exit) -> String {
    match exit {
        Exit::Status(0) => {
            "the command ended; a load must keep running, as `while :; do COMMAND; done` does"
                .into()
        }
        _ => format!("the command ended with {exit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obituaries_say_what_is_known() {
        for (exit, want) in [
            (Exit::Status(0), "the command ended; a load must keep running, as `while"),
            (Exit::Status(127), "the command ended with exit status 127"),
            (Exit::Signal(9), "the command ended with SIGKILL"),
        ] {
            let got = obituary(exit);
            assert!(got.starts_with(want), "{got}");
        }
    }
}
