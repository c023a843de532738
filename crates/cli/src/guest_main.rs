//! The first process of a lab's guest: the part of wakescope that measures, and nothing of what
//! shows, compares or imports.

fn main() -> std::process::ExitCode {
    wakescope_cli::guest_main()
}
