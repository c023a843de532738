//! The only place that writes to stdout and stderr.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use wakescope_lab::plan::shell_quoted;
use wakescope_report::style::Style;
use wakescope_report::watch::live::Look;
use wakescope_store::{check_output, create_output, is_full};
use wakescope_sys::terminal::size;

use crate::Failure;
use crate::cleaner::{Cleaner, cleaned};
use crate::input::{Use, note, use_of};
use crate::screen::fit;

/// How to print on stdout: with colour on a terminal, unless `NO_COLOR` is set or the terminal
/// knows no colours.
pub(crate) fn style() -> Style {
    Style { colour: io::stdout().is_terminal() && may_dress() }
}

/// A command to copy into a shell: `wakescope report 'my runs/a'`.
pub(crate) fn command(verb: &str, path: &Path) -> String {
    format!("wakescope {verb} {}", path_argument(path))
}

/// A path as an argument of such a command.
pub(crate) fn path_argument(path: &Path) -> String {
    let path = path.to_string_lossy();
    // Before a dash, it would be an option.
    let here = if path.starts_with('-') { "./" } else { "" };
    shell_quoted(&format!("{here}{path}"))
}

/// Whether the user and the terminal have nothing against colours and lines that are redrawn.
fn may_dress() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && !is_dumb()
}

/// Whether the terminal can do nothing but print.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Whether a view that is used by keys can be shown. It needs no colours.
pub(crate) fn can_take_terminal() -> bool {
    let all = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
    all && !is_dumb()
}

/// How such a view is to look.
pub(crate) fn look() -> Look {
    Look { style: Style { colour: may_dress() }, ascii: !is_utf8(std::env::var_os) }
}

/// Whether the locale in these variables has all characters.
fn is_utf8(variable: impl Fn(&'static str) -> Option<OsString>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let locale = locale.filter(|value| !value.is_empty()).map(|value| value.to_ascii_lowercase());
    let names = ["utf-8", "utf8"];
    locale
        .take(1)
        .any(|it| it.to_str().is_some_and(|it| names.iter().any(|name| it.contains(name))))
}

/// Whether somebody reads stdout on a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes a result to stdout. A reader that has gone away (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_with(|out| out.write_all(text.as_bytes()))
}

/// Writes a text of this program's own to stdout, at the least cost.
pub(crate) fn print_own(text: &'static str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

/// Writes a part of a result that goes on to stdout. Whether somebody still reads it.
pub(crate) fn print_on(text: &str) -> Result<bool, Failure> {
    let mut is_read = true;
    print_with(|out| {
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        is_read = !written.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe);
        written
    })?;
    Ok(is_read)
}

/// Lets `write` write a result of any length to stdout. A reader that has gone away ends it, and is
/// no failure.
fn print_with(write: impl FnOnce(&mut dyn Write) -> Result<(), io::Error>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(Cleaner::new(io::stdout().lock(), style().colour));
    match write(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {e}"))
                .try_this("check where it goes (a full disk?), and run the command again"))
        }
        _ => Ok(()),
    }
}

/// What means standard output in place of a file's name, as with other programs. `./-` is a file.
pub(crate) const STDOUT: &str = "-";

/// Lets `write` write a result of any length to the file that the user named for it, or to stdout if there is none.
pub(crate) fn result(
    file: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    match file {
        Some(path) => write_file_with(path, write),
        None => print_with(write),
    }
}

/// Writes a text to the file that the user named for it, or to stdout if there is none.
pub(crate) fn result_text(file: Option<&Path>, text: &str) -> Result<(), Failure> {
    result(file, |out| out.write_all(text.as_bytes()))
}

/// Writes a result to the file that the user named for it, compressed if the name says so.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_file_with(path, |out| out.write_all(bytes))
}

/// Lets `write` write a result of any length to the file that the user named for it, compressed if the name says so.
pub(crate) fn write_file_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    if path.as_os_str() == STDOUT {
        return print_with(write);
    }
    let to_file = || {
        let mut file = create_output(path)?;
        if let Some(used) = file.replaced().and_then(use_of) {
            let why = match used {
                Use::Input => "it is also an input",
                Use::Result => "another result has just been written to it",
            };
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        if is_compressed(path) {
            let mut packed = GzEncoder::new(&mut file, Compression::default());
            write_cleaned(&mut packed, write)?;
            packed.finish()?;
        } else {
            write_cleaned(&mut file, write)?;
        }
        file.finish()?;
        if let Ok(written) = fs::metadata(path) {
            note(&written, Use::Result);
        }
        Ok(())
    };
    to_file().map_err(|e| cannot_write(path, &e))
}

/// Lets `write` write a result of any length to `to`.
fn write_cleaned(
    to: &mut impl Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = io::BufWriter::new(Cleaner::new(to, false));
    write(&mut out)?;
    out.flush()
}

/// Whether the name of a file says that it is compressed with gzip.
pub(crate) fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"))
}

/// Fails if no result can be written to the file that the user named for it: before it is computed for nothing.
/// Nothing is changed.
pub(crate) fn check_file(path: &Path) -> Result<(), Failure> {
    match path.as_os_str() == STDOUT {
        true => Ok(()),
        false => check_output(path).map_err(|e| cannot_write(path, &e)),
    }
}

fn cannot_write(path: &Path, e: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot write {}: {e}", path.display()));
    match e.kind() {
        _ if is_full(e) => failure.try_this("make room, or name a file on another disk"),
        io::ErrorKind::FileTooLarge => failure.try_this("raise the limit of file sizes: ulimit -f"),
        io::ErrorKind::NotFound => failure.try_this("make its folder first, or name another file"),
        io::ErrorKind::AlreadyExists => failure.try_this("name another file"),
        _ => failure.try_this("name a file that you can write to"),
    }
}

/// Tells the user something beside the result, on stderr.
pub(crate) fn tell(text: &str) {
    // Nobody can be told that stderr is closed.
    let _ = writeln!(io::stderr(), "{}", cleaned(text, false));
}

/// Tells the user why it did not work.
pub(crate) fn complain(failure: &Failure) {
    tell(&failure.to_string());
}

/// Draws on the terminal that stderr is.
pub(crate) fn draw(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Whether a line on stderr can be redrawn, and the user has nothing against it.
pub(crate) fn can_redraw() -> bool {
    io::stderr().is_terminal() && may_dress()
}

/// The most columns and lines that may be drawn on the terminal that stderr is. The last column stays free:
/// where the cursor goes from there differs. So does the last line, in which the cursor then stands.
pub(crate) fn room() -> (usize, usize) {
    let most = |size: u16| match size {
        0 => usize::MAX,
        size => usize::from(size - 1).max(1),
    };
    let (columns, lines) = size(&io::stderr()).unwrap_or_default();
    (most(columns), most(lines))
}

/// Shows one line on the terminal in place of the one that was shown so before, as far as there is room for
/// it. An empty one makes room for other text.
pub(crate) fn redraw(line: &str) {
    let _ = write!(io::stderr(), "\r{}\x1b[K", fit(&cleaned(line, true), room().0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_copy_names_one_path() {
        for (path, want) in [
            ("runs/2026-11-21", "wakescope report runs/2026-11-21"),
            ("my runs/a", "wakescope report 'my runs/a'"),
            ("$(x)/it's", r"wakescope report '$(x)/it'\''s'"),
            ("-r", "wakescope report ./-r"),
        ] {
            assert_eq!(command("report", Path::new(path)), want);
        }
    }

    #[test]
    fn two_results_do_not_go_to_one_file_however_it_is_named() {
        let folder = wakescope_testing::Folder::new("two-results");
        let first = folder.join("a.json");
        write_file(&first, b"first").unwrap();
        std::os::unix::fs::symlink("a.json", folder.join("link.json")).unwrap();
        for name in ["a.json", "./a.json", "../two-results/a.json", "link.json"] {
            let name = name.replace("two-results", &folder.file_name().unwrap().to_string_lossy());
            let refused = write_file(&folder.join(name), b"second").unwrap_err().to_string();
            assert!(refused.contains("another result has just been written to it"), "{refused}");
        }
        assert_eq!(fs::read(&first).unwrap(), b"first");
        // A device keeps nothing that could be lost.
        for _ in 0..2 {
            write_file(Path::new("/dev/null"), b"x").unwrap();
        }
    }

    #[test]
    fn files_that_cannot_be_written_are_named_with_a_remedy() {
        use io::ErrorKind::{
            AlreadyExists, FileTooLarge, NotFound, PermissionDenied, QuotaExceeded, StorageFull,
        };
        let room = "make room, or name a file on another disk";
        for (kind, remedy) in [
            (StorageFull, room),
            (QuotaExceeded, room),
            (FileTooLarge, "raise the limit of file sizes: ulimit -f"),
            (NotFound, "make its folder first, or name another file"),
            (AlreadyExists, "name another file"),
            (PermissionDenied, "name a file that you can write to"),
        ] {
            let said = cannot_write(Path::new("a.json"), &kind.into()).to_string();
            assert!(said.contains("cannot write a.json: "), "{said}");
            assert!(said.ends_with(&format!("\n  → {remedy}")), "{said}");
        }
    }

    #[test]
    fn the_first_variable_that_is_set_names_the_locale() {
        for (set, want) in [
            (&[("LANG", "C.UTF-8")][..], true),
            (&[("LC_ALL", ""), ("LANG", "de_DE.utf8@euro")], true),
            (&[("LC_ALL", "C"), ("LANG", "C.UTF-8")], false),
            (&[("LC_CTYPE", "POSIX")], false),
            (&[], false),
        ] {
            let value = |name| set.iter().find(|it| it.0 == name).map(|it| it.1.into());
            assert_eq!(is_utf8(value), want, "{set:?}");
        }
    }
}
