//! The `wakescope` command; everything is in the library beside it, so that tests and the
//! reference pages use the same definition of its arguments.

fn main() -> std::process::ExitCode {
    wakescope_cli::main()
}
