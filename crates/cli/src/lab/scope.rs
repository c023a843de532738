//! `wakescope scope`

use std::path::{Path, PathBuf};

use wakescope_core::scope::Scope;
use wakescope_core::scope::signals::Signals;
use wakescope_core::units::SpanNs;
use wakescope_lab::cache::Cache;
use wakescope_lab::cell::{Again, Missing};
use wakescope_lab::farm::{Event, Standing};
use wakescope_lab::matrix::Phase;
use wakescope_lab::scope::{Detail, ScopeError, ScopeFailure, Seen, Subject, scope};
use wakescope_lab::store::CellStore;
use wakescope_report::scope as shown;
use wakescope_report::style::clean;

use super::chosen::{WHERE, chosen};
use super::emulators::emulators;
use super::showing::Showing;
use super::waiting::Waiting;
use super::{cache, failure_of_cache, failure_of_store, parse_positive, with_similar};
use crate::ending::{Endings, format_for};
use crate::{Failure, Outcome, output};

/// Show every section of a guest's kernel with interrupts or preemption off
///
/// Runs a cell of the lab once more, with a plugin in the emulator that sees where interrupts and
/// preemption are turned off and on. The guest does not notice: its result is compared with the stored
/// one, and nothing is shown unless both are equal to the bit. The plugin is built with this machine's
/// C compiler when it is needed first. For guests of x86-64 and arm64 with one CPU.
/// Exit codes: 0 done; 2 an error.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab run --kernel 6.1-cloud --preempt full --load find --seeds 1 --json
  wakescope scope 3f6ef534
  wakescope scope 3f6ef534 --rows 50
  wakescope scope 3f6ef534 --functions --above 100us
  wakescope scope 3f6ef534 --locks
  wakescope scope 3f6ef534 --episodes 20 --trace trace.json.gz
  wakescope scope 3f6ef534 -o sections.json
  wakescope scope 3f6ef534 -o page.html")]
pub(crate) struct ScopeArgs {
    /// The cell: its folder, its key, or the key's first digits. The key is the name of the cell's
    /// folder in the lab's cache
    #[arg(value_name = "CELL")]
    cell: PathBuf,

    /// Rows to show of each kind
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,

    /// Length from which on the record lists single sections, in virtual time
    #[arg(long, value_name = "TIME", default_value = "10us")]
    above: SpanNs,

    /// Also show in which functions the time of these sections went
    #[arg(long)]
    functions: bool,

    /// Also show which locks were held longest, by whom they were taken and released, and how long
    /// others waited for them
    #[arg(long)]
    locks: bool,

    /// Number of the latest wakeups to explain from what the emulator saw; 0: none
    #[arg(long, value_name = "N", default_value = "3")]
    episodes: u32,

    /// Also write these wakeups as a trace for Perfetto and Chrome's about:tracing: interrupts off,
    /// preemption off, interrupts, softirqs, tasks and, with --locks, locks side by side. Both open
    /// compressed ones, too: FILE.json.gz
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Print JSON: the record of all sections
    #[arg(long)]
    json: bool,

    /// Write to a file instead of standard output: the record to .json, a page with flame graphs to
    /// .html
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    again: AgainArgs,
}

/// How a cell is run once more.
#[derive(clap::Args)]
pub(super) struct AgainArgs {
    /// The emulator that the cell was run by (default: the fetched one, else the installed one)
    #[arg(long, value_name = "PROGRAM")]
    qemu: Option<PathBuf>,

    /// Host time after which the guest is stopped
    #[arg(long, value_name = "TIME", default_value = "30min", value_parser = parse_positive)]
    timeout: SpanNs,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Page,
}

/// What the endings of files say.
const ENDINGS: Endings<'static, Format> =
    &[("txt", &[Format::Text]), ("json", &[Format::Json]), ("html", &[Format::Page])];

/// The same of the trace's file.
const TRACE_ENDINGS: Endings<'static, ()> = &[("json", &[()])];

/// Runs `wakescope scope`.
pub(crate) fn run(args: &ScopeArgs) -> Result<Outcome, Failure> {
    let asked = args.json.then_some(Format::Json);
    let format = format_for(args.output.as_deref(), asked, Format::Text, ENDINGS)?;
    if args.trace.is_some() && args.episodes == 0 {
        return Err(Failure::new("a trace needs wakeups, and --episodes 0 asks for none")
            .try_this("leave out --episodes 0"));
    }
    let result = args.output.as_deref().unwrap_or(Path::new(output::STDOUT));
    if args.trace.as_deref().is_some_and(|trace| place_of(trace) == place_of(result)) {
        return Err(Failure::new("the trace and the result would go to the same place")
            .because("one would spoil the other")
            .try_this("name two files"));
    }
    format_for(args.trace.as_deref(), Some(()), (), TRACE_ENDINGS)?;
    let episodes = usize::try_from(args.episodes).unwrap_or(usize::MAX);
    let locks = args.locks;
    let edges = episodes > 0 || locks;
    let functions = args.functions || format == Format::Page;
    let above_ns = args.above.0;
    let detail = Detail { above_ns, functions, edges, episodes, locks, ..Detail::default() };
    let cells = Cells::open(&args.again)?;
    let Seen { scope: seen, signals, .. } = cells.look(cells.subject(&args.cell)?, detail)?;
    let rows = usize::try_from(args.rows).unwrap_or(usize::MAX);
    let style = if args.output.is_none() { output::style() } else { Default::default() };
    let text = match format {
        Format::Json => seen.to_json(),
        Format::Text => shown::text(&seen, rows, style),
        Format::Page => shown::page(&seen, rows),
    };
    if let Some(path) = &args.trace {
        write_trace(path, &seen, &signals)?;
    }
    output::result_text(args.output.as_deref(), &text)?;
    Ok(Outcome::Done)
}

/// Where a result goes that is written to `path`, as far as that is known before it is there.
fn place_of(path: &Path) -> PathBuf {
    let in_folder = || {
        let folder = path.parent()?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    match path.as_os_str() == output::STDOUT {
        true => path.into(),
        false => path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.into()),
    }
}

/// The lab's cells, and what they are run once more with.
pub(super) struct Cells {
    cache: Cache,
    store: CellStore,
    again: Again,
}

impl Cells {
    pub(super) fn open(args: &AgainArgs) -> Result<Self, Failure> {
        let cache = cache()?;
        let store = CellStore::open(&cache.cells()).map_err(|e| failure_of_store(&e))?;
        let emulators = emulators(args.qemu.as_deref(), &cache)?;
        let again = Again::new(&cache, emulators, args.timeout);
        Ok(Self { cache, store, again })
    }

    /// The one that an argument means, if it can be looked into.
    pub(super) fn subject(&self, cell: &Path) -> Result<Subject, Failure> {
        let keys = self.store.keys().map_err(|e| failure_of_store(&e))?;
        let key = chosen(cell, &keys, &self.cache.cells())?;
        Subject::of(&key, &self.store, &self.again).map_err(|e| failure(&e, key.as_str()))
    }

    /// Runs it once more and looks into it.
    pub(super) fn look(&self, subject: Subject, detail: Detail<'_>) -> Result<Seen, Failure> {
        let key = subject.key().clone();
        let Self { cache, store, again } = self;
        let seen = look(subject, detail, store, again, cache, Waiting::new()?)?;
        seen.map_err(|e| failure(&e, key.as_str()))
    }
}

/// Runs a cell once more, and shows that on the terminal, which `waiting` has already.
pub(super) fn look(
    subject: Subject,
    detail: Detail<'_>,
    store: &CellStore,
    again: &Again,
    cache: &Cache,
    mut waiting: Waiting,
) -> Result<Result<Seen, ScopeFailure>, Failure> {
    let mut showing = Showing::new(Waiting::new()?);
    let mut running =
        |event: Event<'_>, standing: &Standing| showing.attend(Phase::Repeating, &event, standing);
    let seen = scope(subject, detail, store, again, cache, &mut waiting, &mut running);
    Ok(seen)
}

fn write_trace(path: &Path, seen: &Scope, signals: &[Signals]) -> Result<(), Failure> {
    if let Some(why) = &seen.no_episodes {
        return Err(Failure::new("there is no wakeup to write a trace of")
            .because(clean(why, 400))
            .try_this("leave out --trace"));
    }
    output::write_file_with(path, |mut out| shown::trace::write(seen, signals, &mut out))
}

fn failure(e: &ScopeFailure, key: &str) -> Failure {
    let short = key.get(..12).unwrap_or(key);
    let failure = Failure::new(clean(&format!("cannot look into the cell {short}: {e}"), 400));
    match e {
        ScopeFailure::Cell(_) => failure.try_this(
            "run its lab again, which runs this cell anew, and then this: wakescope lab run …",
        ),
        ScopeFailure::Check => failure.try_this(format!("look into a cell that measured: {WHERE}")),
        ScopeFailure::Failed(_) => failure
            .try_this("see how it failed: console.log and kernel.log in the cell's folder")
            .try_this(format!("or look into a cell that measured: {WHERE}")),
        ScopeFailure::Unread(_) => failure.try_this(format!("{ANEW}: {WHERE}")),
        ScopeFailure::Missing(missing) => of_missing(failure, missing),
        ScopeFailure::Guest(_) => failure
            .try_this(format!("see whether the cell repeats at all: wakescope lab verify {short}")),
        ScopeFailure::Cpus(_) => failure
            .because("instructions are the clock only of a machine with one CPU")
            .try_this("run the lab without --experimental-smp"),
        ScopeFailure::Kaslr => failure.try_this("run the lab again without --append kaslr"),
        ScopeFailure::Emulator(_) => failure
            .try_this("fetch a suitable QEMU, for use by the lab only: wakescope lab fetch qemu")
            .try_this("then run the lab again, for its cells are another emulator's"),
        ScopeFailure::NoCompiler => {
            failure.try_this("install one, on Debian and Ubuntu: apt install gcc")
        }
        ScopeFailure::Compiler { complaints, .. } => complaints
            .iter()
            .fold(failure, |failure, line| failure.because(clean(line, 200)))
            .try_this("install another compiler: gcc 8 or clang 8 and newer are known to work"),
        ScopeFailure::Emulation(_) => failure
            .because("some builds of QEMU cannot load plugins, and newer ones may need another")
            .try_this("let the lab fetch its own: wakescope lab fetch qemu, and run the lab again"),
        ScopeFailure::TimeUp(_) => failure.try_this("give it more time: --timeout 2h"),
        ScopeFailure::NoFunction { similar, .. } => with_similar(failure, similar)
            .because(
                "inlined functions, those of modules and second names of a function are not known",
            )
            .try_this(FUNCTIONS),
        ScopeFailure::Seen(ScopeError::NoSymbols | ScopeError::Lacks(_)) => failure
            .because("symbols say where the kernel's ways in and its preempt count are")
            .try_this("build the kernel with CONFIG_KALLSYMS=y and CONFIG_KALLSYMS_ALL=y")
            .try_this("what the cell itself measured needs none of them, and stays valid"),
        ScopeFailure::Seen(ScopeError::EdgesLost(_)) => failure
            .try_this("see its sections alone: --episodes 0, without --locks")
            .try_this("or run the lab with fewer wakeups: --samples N"),
        ScopeFailure::Seen(ScopeError::Cut) => failure
            .because("the emulator could not write all of it, or was ended")
            .try_this("run it again; make room if a disk is full"),
        ScopeFailure::Seen(ScopeError::Damaged { .. }) => failure
            .because("this machine's disk or memory changed it, so nothing of it is shown")
            .try_this("run it again; if it is damaged again, check the disk and the memory"),
        ScopeFailure::Seen(_) => failure
            .because("nothing is shown that is not certain")
            .try_this("look into a cell of another kernel; this one may be laid out in a new way"),
        ScopeFailure::Differs(_) => failure
            .because(
                "the emulator ran another course than the stored one, so nothing of it is shown",
            )
            .try_this(format!("see whether the cell repeats at all: wakescope lab verify {short}")),
        ScopeFailure::Host(_) => failure.try_this("run it again; make room if a disk is full"),
        ScopeFailure::Cache(e) => failure_of_cache(e),
        ScopeFailure::Store(e) => failure_of_store(e),
        ScopeFailure::Stopped => Failure::new("interrupted; nothing was changed"),
    }
}

/// The remedy where a function is not known by its name.
pub(super) const FUNCTIONS: &str = "list the functions of sections: wakescope scope CELL --rows 50";

/// Runs of this version, of kernels and emulators that are there, are other cells.
const ANEW: &str = "run its lab again, and look into the cell that this gives";

/// The remedy where something is missing that a cell was run with.
fn of_missing(failure: Failure, missing: &Missing) -> Failure {
    let failure = match missing {
        Missing::Kernel => {
            failure.try_this("fetch it, if the archive still has it: wakescope lab fetch KERNEL")
        }
        Missing::KernelFile(_) => {
            failure.try_this("put back the kernel that the cell was run with")
        }
        Missing::Emulator(_) => failure.try_this("name that emulator: --qemu PROGRAM"),
        Missing::Guest | Missing::Root | Missing::Architecture(_) | Missing::Cpus(_) => failure,
    };
    failure.try_this(format!("{ANEW}: {WHERE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_looked_into_is_said_with_a_remedy() {
        for (failure_of, what, remedy) in [
            (ScopeFailure::Cell("it is damaged: x".into()), "damaged", "runs this cell anew"),
            (
                ScopeFailure::Check,
                "checks which preemption model",
                "a cell that measured: the record",
            ),
            (ScopeFailure::Failed("it panicked".into()), "it panicked", "console.log"),
            (ScopeFailure::Unread("it measured nothing".into()), "nothing", ".cells[].run"),
            (ScopeFailure::Missing(Missing::Kernel), "kernel was removed", "lab fetch KERNEL"),
            (
                ScopeFailure::Missing(Missing::KernelFile("bzImage".into())),
                "bzImage",
                "put back the kernel",
            ),
            (
                ScopeFailure::Missing(Missing::Guest),
                "guest image was removed",
                "the cell that this gives",
            ),
            (
                ScopeFailure::Missing(Missing::Emulator("QEMU 9".into())),
                "QEMU 9, by",
                "--qemu PROGRAM",
            ),
            (ScopeFailure::Guest("it ended".into()), "it ended", "lab verify 0123456789ab"),
            (ScopeFailure::Cpus("2".into()), "2 CPUs", "--experimental-smp"),
            (ScopeFailure::Kaslr, "nokaslr", "--append kaslr"),
            (ScopeFailure::NoCompiler, "no C compiler", "apt install gcc"),
            (
                ScopeFailure::Emulation("it ended".into()),
                "some builds of QEMU cannot load",
                "fetch qemu",
            ),
            (ScopeFailure::TimeUp("it did not end".into()), "did not end", "--timeout"),
            (
                ScopeFailure::NoFunction {
                    name: "free_bulk".into(),
                    similar: vec!["free_pcppages_bulk".into()],
                },
                "no function of its kernel is known as free_bulk\n",
                "similar names: free_pcppages_bulk\n",
            ),
            (ScopeFailure::Seen(ScopeError::NoSymbols), "no symbols", "CONFIG_KALLSYMS_ALL=y"),
            (
                ScopeFailure::Seen(ScopeError::Lacks("__preempt_count")),
                "__preempt_count",
                "CONFIG_KALLSYMS_ALL=y",
            ),
            (ScopeFailure::Seen(ScopeError::Cut), "cut short", "disk is full"),
            (
                ScopeFailure::Seen(ScopeError::Damaged { at: 65_552, length: 65_528 }),
                "the 65528 bytes from byte 65552 on",
                "check the disk",
            ),
            (ScopeFailure::Seen(ScopeError::EdgesLost(5)), "5 changes", "--episodes 0"),
        ] {
            let said = failure(&failure_of, "0123456789abcdef").to_string();
            assert!(said.contains("the cell 0123456789ab: "), "{said}");
            assert!(said.contains(what) && said.contains(remedy), "{said}");
        }
    }

    #[test]
    fn a_trace_of_no_wakeup_is_refused() {
        let scope = Scope { no_episodes: Some("its clock differs".into()), ..Scope::default() };
        let said = write_trace(Path::new("/nowhere/trace.json"), &scope, &[]).unwrap_err();
        assert!(said.to_string().contains("its clock differs"), "{said}");
    }
}
