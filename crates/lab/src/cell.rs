//! A cell: one guest that boots a kernel, does one task, and ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use wakescope_core::episodes::Entry;
use wakescope_core::explain::Above;
use wakescope_core::finding::{Severity, Verdict};
use wakescope_core::lab::Asked;
use wakescope_core::plan::{GAP_FROM_NS, LinePlan, Plan as RunPlan, Stimulus, WORST, Waker};
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;
use wakescope_store::{is_full, write_new};
use wakescope_sys::process::Exit;

use crate::farm::{Job, Runner};
use crate::guest::{CHECK, DISTURBANCES, EPISODES, FACTS, Facts, KERNEL_LOG, RUN, VERB};
use crate::kernel::Kernel;
use crate::machine::boot::{Boot, Lines, Observer};
use crate::machine::confinement::Confinement;
use crate::machine::console::{last_lines, trouble};
use crate::machine::parameters::Parameters;
use crate::machine::power::{self, End, Watch};
use crate::machine::state::State;
use crate::machine::{Machine, SPARE_PORTS};
use crate::parcel::{Item, unpack};
use crate::plan::{LoadSet, Plan};
use crate::qemu::{Qemu, SANDBOX};
use crate::states::States;

mod again;

pub use again::{Again, Missing};

use crate::store::{
    CONSOLE, Ending, Failed, FailureKind, Ingredients, Key, Label, ORDER, ROOT, Recipe,
};

/// What a guest is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestTask {
    /// Tell what model it runs, also from its behaviour.
    Check,
    /// Measure.
    Measure(Box<Measurement>),
}

/// What a guest is to measure. Times are virtual.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Under which loads.
    pub load: LoadSet,
    /// Of the phase of the grid and of what the loads do.
    pub seed: u64,
    /// The plan of the run, which the guest gets as it is.
    pub run: RunPlan,
    /// What is to be explained of late wakeups, if they are.
    pub explain: Option<Explain>,
}

/// What is to be explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explain {
    /// Which wakeups are late, if it is not to be the usual ones.
    pub above: Option<Above>,
    /// Whether sections are measured, too.
    pub sections: bool,
    /// Whether a bound is composed.
    pub bound: bool,
}

impl Measurement {
    /// What `plan` measures under `load` with `seed` on a machine of so many CPUs.
    pub fn of(plan: &Plan, load: &LoadSet, seed: u64, cpus: u32) -> Self {
        let is_busy = plan.stimulus.is_busy();
        let is_audio = plan.stimulus == Stimulus::Audio;
        let run = RunPlan {
            stimulus: plan.stimulus,
            waker: plan
                .stimulus
                .needs_waker()
                .then(|| Waker { between: plan.between, ..Waker::of_probe(plan.priority) }),
            // Without wakeups, the loop runs for as long as so many would take.
            interval_ns: if is_busy { 0 } else { plan.interval.0 },
            samples: (!is_busy).then_some(plan.samples),
            duration_ns: is_busy.then(|| plan.samples.saturating_mul(plan.interval.0)),
            audio: is_audio.then(|| plan.own.audio(plan.interval)),
            line: (plan.stimulus == Stimulus::Line).then(spare_line),
            runtime_ns: plan.own.runtime.map(|runtime| runtime.0),
            gap_from_ns: is_busy.then_some(GAP_FROM_NS),
            policy: plan.policy,
            priority: plan.priority,
            policy_required: true,
            cpus: (0..cpus).collect(),
            load: load.names().iter().map(ToString::to_string).collect(),
            warmup_ns: plan.warmup.0,
            worst: plan.worst.unwrap_or(WORST).into(),
            ..RunPlan::default()
        };
        let Plan { above, sections, bound, .. } = *plan;
        let explain = plan.explain.then_some(Explain { above, sections, bound });
        Self { load: load.clone(), seed, run, explain }
    }

    /// How long it takes if nothing is late.
    fn planned(&self) -> SpanNs {
        let RunPlan { duration_ns, samples, interval_ns, warmup_ns, .. } = self.run;
        let of_samples = samples.unwrap_or(0).saturating_mul(interval_ns);
        let measured_ns = duration_ns.unwrap_or(of_samples);
        SpanNs(measured_ns.saturating_add(2 * warmup_ns))
    }

    /// The guest's arguments. The plan stands last, as JSON in one word: the kernel splits its command
    /// line at blanks, and keeps quotes within a word.
    fn arguments(&self) -> String {
        let mut all = match self.explain {
            Some(_) => format!("explain --seed {}", self.seed),
            None => format!("measure --seed {}", self.seed),
        };
        if let Some(Explain { above, sections, bound }) = self.explain {
            all +=
                &above.map(|above| format!(" --above {}", above.as_argument())).unwrap_or_default();
            all += if sections { " --sections" } else { "" };
            all += if bound { " --bound" } else { "" };
        }
        // Maps have string keys and numbers are finite: there is nothing that could fail.
        let plan = serde_json::to_string(&self.run).unwrap_or_default();
        format!("{all} {plan}")
    }
}

/// What a guest is booted with.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The initramfs.
    pub image: PathBuf,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// The modules in it, in the order in which they are loaded.
    pub modules: Vec<String>,
    /// What is placed behind it, with its SHA-256 in hexadecimal.
    pub root: Option<(PathBuf, String)>,
}

/// The line of guests: their spare ports, each of which receives what it sends.
fn spare_line() -> LinePlan {
    let [device, answers_on] = SPARE_PORTS.map(|name| format!("/dev/{name}"));
    LinePlan { device, baud: LINE_BAUD, answers_on: Some(answers_on) }
}

/// An emulated port sends at once, whatever its speed.
const LINE_BAUD: u32 = 115_200;

/// What a cell is called, in place of its load, in which a guest tells what its kernel runs.
const CHECKING: &str = "check";

/// What the runner needs to boot a guest.
#[derive(Clone, Debug)]
pub struct Work {
    qemu: Arc<Qemu>,
    /// The emulator's arguments that make the machine.
    machine: Vec<String>,
    kernel: PathBuf,
    guest: PathBuf,
    root: Option<PathBuf>,
    cmdline: String,
    /// The guest's order, where the command line does not contain it.
    order: Option<String>,
    /// The key of all that the machine is until the guest reads the order, if its state can be saved.
    boot: Option<Key>,
    /// The file that the guest must send: [`RUN`] or [`CHECK`].
    result: &'static str,
    /// Of the host's time.
    limit: SpanNs,
}

impl Work {
    /// The emulator that it is done by.
    pub(crate) fn qemu(&self) -> &Qemu {
        &self.qemu
    }
}

/// How the machines of a lab are made.
#[derive(Clone, Debug)]
pub struct Workshop {
    /// The emulator.
    pub qemu: Arc<Qemu>,
    /// The machine.
    pub machine: Machine,
    /// More for the kernel's command line.
    pub parameters: Parameters,
    /// The most time of the host that a guest may take.
    pub limit: SpanNs,
}

/// The least virtual time that a guest is given: for the slowest boots, loads that fill their
/// files, and the check of a kernel's behaviour.
const LEAST_LIMIT: SpanNs = SpanNs(60_000_000_000);

impl Workshop {
    /// The cell in which `kernel`, asked for a model, does `task`.
    pub fn job(&self, kernel: &Kernel, guest: &Guest, asked: Asked, task: GuestTask) -> Job<Work> {
        let machine = self.machine;
        let planned = match &task {
            GuestTask::Check => SpanNs(0),
            GuestTask::Measure(measurement) => measurement.planned(),
        };
        // A kernel that hangs wakeups for long must not be cut short in the middle of it.
        let limit = SpanNs(LEAST_LIMIT.0.saturating_add(planned.0.saturating_mul(4)));
        let (_, line) = machine.lines();
        let mut arguments = format!("{VERB} --results {line}");
        for module in &guest.modules {
            arguments += &format!(" --module {module}");
        }
        let task_words = match &task {
            GuestTask::Check => "check".into(),
            GuestTask::Measure(measurement) => measurement.arguments(),
        };
        let mut order = Some(format!("--limit {}ns {task_words}", limit.0));
        // A kernel that is locked down lets no program use the ports that orders come through.
        let is_locked_down = self.parameters.text().contains("lockdown=");
        if is_locked_down || !machine.takes_orders() {
            arguments.extend(order.take().map(|order| format!(" {order}")));
        }
        let cmdline = machine.cmdline(parameter(asked), self.parameters.text(), &arguments);
        let mut recipe = Recipe::new(&Ingredients {
            kernel_sha256: &kernel.sha256,
            guest_sha256: &guest.sha256,
            emulator: &format!("{} {}", self.qemu.banner, self.qemu.sha256),
            arguments: &machine.arguments(),
            command_line: &cmdline,
        });
        if let Some((_, sha256)) = &guest.root {
            recipe = recipe.with(ROOT, sha256);
        }
        // Of several CPUs none is recorded, so there is no moment at which all that they are could be saved.
        let boot = (order.is_some() && machine.cpus == 1).then(|| recipe.key());
        if let Some(order) = &order {
            recipe = recipe.with(ORDER, order);
        }
        let (load, seed, result) = match &task {
            GuestTask::Check => (CHECKING.into(), None, CHECK),
            GuestTask::Measure(m) => (m.load.to_string(), Some(m.seed), RUN),
        };
        Job {
            recipe,
            label: Label {
                kernel: kernel.name.clone(),
                kernel_file: kernel.own_image(),
                model: asked.to_string(),
                load,
                seed,
            },
            work: Work {
                qemu: Arc::clone(&self.qemu),
                machine: machine.arguments(),
                kernel: kernel.image.clone(),
                guest: guest.image.clone(),
                root: guest.root.as_ref().map(|(path, _)| path.clone()),
                cmdline,
                order,
                boot,
                result,
                limit: self.limit,
            },
        }
    }
}

/// What `preempt=` is told. RT kernels have one model, so asking for it is asking for nothing.
fn parameter(asked: Asked) -> Option<&'static str> {
    match asked {
        Asked::Default | Asked::Rt => None,
        Asked::None | Asked::Voluntary | Asked::Full | Asked::Lazy => Some(asked.word()),
    }
}

/// Runs guests in the emulator.
#[derive(Debug, Default)]
pub struct Emulation {
    confinement: Confinement,
    /// From which guests go on, if they need not boot.
    states: Option<States>,
}

/// While a guest runs: what comes out of its line of results, and what the emulator says.
const RESULTS: &str = "results.parcel";
const WORDS: &str = "emulator.log";

/// How an emulator ends that writes a larger file than it may (SIGXFSZ): a state can be too large.
const TOO_LARGE: Exit = Exit::Signal(25);

/// While a state is proven: the files of a second guest.
const PROOF: &str = "proof";

/// How a guest gets to the point where it reads its order.
enum Beginning<'a> {
    /// It boots.
    Boot(Option<&'a Observer>),
    /// It boots, and its machine is saved.
    BootAndSave(&'a mut Option<State>),
    /// Its machine is resumed.
    Resume(&'a State),
}

/// One run of a guest.
struct Attempt<'a> {
    job: &'a Job<Work>,
    /// Where the guest's lines and its results are written.
    folder: &'a Path,
    cancel: &'a AtomicBool,
}

impl Emulation {
    /// Guests resume from these states where they can, and boot otherwise.
    pub fn with_states(states: States) -> Self {
        Self { states: Some(states), ..Self::default() }
    }

    /// Boots the guest of `work`, whose lines are written to files in `folder`, and waits for its end.
    pub(crate) fn boot(
        &self,
        work: &Work,
        folder: &Path,
        observer: Option<&Observer>,
        cancel: &AtomicBool,
    ) -> End {
        self.emulate(work, folder, Beginning::Boot(observer), cancel)
    }

    fn emulate(
        &self,
        work: &Work,
        folder: &Path,
        beginning: Beginning<'_>,
        cancel: &AtomicBool,
    ) -> End {
        let Work { qemu, machine, kernel, guest, root, cmdline, order, limit, .. } = work;
        let [console, results, words] = [CONSOLE, RESULTS, WORDS].map(|name| folder.join(name));
        let root = root.as_deref();
        let lines = Lines { kernel, guest, root, console: &console, results: &results };
        let (mut monitor, mut saves) = (None, None);
        let prepare = || {
            let mut boot = Boot::new(qemu.arch, machine, cmdline, lines)?;
            order.iter().try_for_each(|order| boot.order(order))?;
            if qemu.has_sandbox {
                boot.add("-sandbox", SANDBOX.into());
            }
            match beginning {
                Beginning::Boot(observer) => {
                    observer.map_or(Ok(()), |observer| boot.observe(observer))?;
                }
                Beginning::Resume(state) => boot.resume(state)?,
                Beginning::BootAndSave(place) => {
                    let (own, state) = boot.save()?;
                    (monitor, saves) = (Some(own), Some((place, state)));
                }
            }
            Ok(boot)
        };
        let boot = match prepare() {
            Ok(boot) => boot,
            Err(e) => return End::NotStarted(e),
        };
        let outputs = [console.clone(), results.clone()];
        let watch = Watch { limit: *limit, outputs: &outputs, cancel };
        let start = |words: &File| self.confinement.start(qemu, &boot, words);
        let end = power::run(start, &words, watch, monitor.as_mut());
        if let (Some(Ok(())), Some((place, state))) = (monitor.map(|m| m.outcome()), saves) {
            *place = Some(state);
        }
        end
    }

    /// Boots the guest of `job`, and writes what it gives into `folder`.
    pub(crate) fn observe(
        &self,
        job: &Job<Work>,
        folder: &Path,
        observer: Option<&Observer>,
        cancel: &AtomicBool,
    ) -> Ending {
        let end = self.boot(&job.work, folder, observer, cancel);
        conclude(&end, job, folder)
    }

    /// Resumes the saved state of this boot, if there is one that the emulator takes.
    fn resume(&self, states: &States, boot: &Key, attempt: &Attempt) -> Option<Ending> {
        let Attempt { job, folder, cancel } = *attempt;
        let cell = job.recipe.key();
        let state = states.find(boot, &cell)?;
        let end = self.emulate(&job.work, folder, Beginning::Resume(&state), cancel);
        if matches!(end, End::Refused(_) | End::NotStarted(_)) {
            states.discard(boot, &cell);
            clear(folder);
            return None;
        }
        Some(conclude(&end, job, folder))
    }

    /// Boots, and saves the machine for other guests. If it cannot be saved, these boot.
    fn boot_and_save(&self, states: &States, boot: &Key, attempt: &Attempt) -> Ending {
        let Attempt { job, folder, cancel } = *attempt;
        let mut saved = None;
        let end = self.emulate(&job.work, folder, Beginning::BootAndSave(&mut saved), cancel);
        if matches!(end, End::Refused(_) | End::NotStarted(_) | End::Killed(TOO_LARGE)) {
            // It may be because of the state.
            clear(folder);
            return self.observe(job, folder, None, cancel);
        }
        let lines = saved.is_some().then(|| lines_of(folder));
        let ending = conclude(&end, job, folder);
        if let (Some(state), Some(lines), Ending::Measured) = (saved, lines, &ending) {
            if let Some(state) = self.proven(state, &lines, attempt) {
                let _ = states.keep(boot, &state);
            }
        }
        ending
    }

    /// `state`, if a guest that resumes from it gives the same bytes as the one that booted, which gave `lines`.
    fn proven(&self, state: State, lines: &[Vec<u8>; 2], attempt: &Attempt) -> Option<State> {
        let folder = attempt.folder.join(PROOF);
        let run = || {
            let copy = state.copy()?;
            fs::create_dir(&folder)?;
            let (work, cancel) = (&attempt.job.work, attempt.cancel);
            Ok::<_, std::io::Error>(self.emulate(work, &folder, Beginning::Resume(&copy), cancel))
        };
        let end = run();
        let [console, results] = lines_of(&folder);
        let _ = fs::remove_dir_all(&folder);
        let before = lines[0].strip_suffix(&console[..])?;
        let same = matches!(end, Ok(End::Restarted)) && results == lines[1];
        same.then(|| state.after(before))
    }
}

/// What came out of the console and of the line of results.
fn lines_of(folder: &Path) -> [Vec<u8>; 2] {
    [CONSOLE, RESULTS].map(|name| fs::read(folder.join(name)).unwrap_or_default())
}

/// Makes way for another attempt.
fn clear(folder: &Path) {
    for name in [CONSOLE, RESULTS, WORDS] {
        let _ = fs::remove_file(folder.join(name));
    }
}

impl Runner<Work> for Emulation {
    fn run(&self, job: &Job<Work>, folder: &Path, cancel: &AtomicBool) -> Ending {
        let Some((states, boot)) = self.states.as_ref().zip(job.work.boot.as_ref()) else {
            return self.observe(job, folder, None, cancel);
        };
        let attempt = Attempt { job, folder, cancel };
        if let Some(ending) = self.resume(states, boot, &attempt) {
            return ending;
        }
        // A lab's first guest of a kernel only checks it, so it is the fastest one to prove a state with.
        if job.work.result == CHECK && states.is_wanted(boot) {
            return self.boot_and_save(states, boot, &attempt);
        }
        self.observe(job, folder, None, cancel)
    }

    fn confinement(&self, job: &Job<Work>) -> Vec<String> {
        self.confinement.in_force(&job.work.qemu)
    }

    fn state(&self, job: &Job<Work>) -> Option<String> {
        self.states.as_ref()?.used_by(&job.recipe.key())
    }
}

/// What came of a guest: its files are written to `folder`.
fn conclude(end: &End, job: &Job<Work>, folder: &Path) -> Ending {
    let [log, parcel] = lines_of(folder);
    // They served; a cell keeps what repeats, and the console.
    for name in [RESULTS, WORDS] {
        let _ = fs::remove_file(folder.join(name));
    }
    if !matches!(end, End::Restarted) {
        return of_host(end, &log).into();
    }
    let parcel = unpack(&parcel);
    // A panic ends a guest while it sends, or before.
    let Ok(items) = parcel else {
        return without_result(&log, &parcel.unwrap_err().to_string()).into();
    };
    match verify(&items, &log, job.work.result) {
        Err(failed) => {
            let _ = keep(folder, &items, &[FACTS, KERNEL_LOG]);
            failed.into()
        }
        Ok(mut run) => {
            if let Some(run) = &mut run {
                run.id = job.recipe.key().as_str()[..16].to_string();
            }
            let episodes = run.as_ref().and_then(|run| episodes_of(run, &items));
            let record = run.map(|run| Item::new(RUN, run.to_json()));
            let others = keep(folder, &items, &[CHECK, FACTS, KERNEL_LOG, DISTURBANCES]);
            let both: Vec<Item> = record.into_iter().chain(episodes).collect();
            let kept = keep(folder, &both, &[RUN, EPISODES]);
            match others.and(kept) {
                Ok(()) => Ending::Measured,
                Err(e) => {
                    let reason = format!("cannot write the results to {}: {e}", folder.display());
                    Failed::new(FailureKind::DiskFull, reason).into()
                }
            }
        }
    }
}

/// Whether what came out of a guest is a result; the run record, if it is one.
fn verify(items: &[Item], log: &[u8], wanted: &str) -> Result<Option<Run>, Failed> {
    let find = |name: &str| items.iter().find(|item| item.name == name).map(|item| &item.bytes[..]);
    let facts = find(FACTS).and_then(|bytes| serde_json::from_slice::<Facts>(bytes).ok());
    let facts = facts.ok_or_else(|| without_result(log, "the guest sent no result"))?;
    let kernel_log = find(KERNEL_LOG).unwrap_or_default();
    if let Some(verdict) = trouble(log).or_else(|| trouble(kernel_log)) {
        return Err(Failed::new(FailureKind::Oops, verdict.what).with_evidence(verdict.lines));
    }
    if let Some(error) = facts.error {
        let kind = if facts.time_up { FailureKind::VirtualTimeLimit } else { FailureKind::Refused };
        return Err(Failed::new(kind, error).with_evidence(last_lines(kernel_log)));
    }
    let missing = || without_result(log, &format!("the guest sent no {wanted}"));
    let bytes = find(wanted).ok_or_else(missing)?;
    if wanted != RUN {
        return Ok(None);
    }
    let run = Run::from_json(bytes)
        .map_err(|e| Failed::new(FailureKind::NoResult, format!("of the guest's record: {e}")))?;
    if run.validity.verdict == Verdict::Invalid {
        let grave = run.validity.findings.iter().filter(|f| f.severity == Severity::Error);
        let messages: Vec<&str> = grave.map(|f| f.message.as_str()).collect();
        return Err(Failed::new(FailureKind::Refused, messages.join("; ")));
    }
    Ok(Some(run))
}

/// The longest file of episodes that is kept of a guest, bytes: ours send a quarter.
const EPISODES_MOST: usize = 1 << 20;

/// The episodes that a guest sent, which does not know what its run is called. What nobody could read is
/// not kept.
fn episodes_of(run: &Run, items: &[Item]) -> Option<Item> {
    let sent = items.iter().find(|item| item.name == EPISODES)?;
    let whole = sent.bytes.len() <= EPISODES_MOST;
    let end = sent.bytes.iter().position(|&byte| byte == b'\n').filter(|_| whole)?;
    let Ok(Entry::Head(mut head)) = Entry::read(&sent.bytes[..end]) else { return None };
    head.run.clone_from(&run.id);
    let mut bytes = Entry::Head(head).text().into_bytes();
    bytes.extend_from_slice(&sent.bytes[end + 1..]);
    Some(Item::new(EPISODES, bytes))
}

/// The failure of a guest that ended by itself and left nothing to read.
fn without_result(log: &[u8], why: &str) -> Failed {
    match trouble(log) {
        Some(verdict) => Failed::new(FailureKind::Panic, verdict.what).with_evidence(verdict.lines),
        None => Failed::new(FailureKind::Reboot, format!("the guest restarted; {why}"))
            .with_evidence(last_lines(log)),
    }
}

/// The failure of a guest that was ended from outside.
fn of_host(end: &End, log: &[u8]) -> Failed {
    let kind = match end {
        End::TimeUp(_) => FailureKind::HostTimeLimit,
        End::Flood => FailureKind::NoResult,
        End::Cancelled => FailureKind::Cancelled,
        End::NotStarted(e) if is_full(e) => FailureKind::DiskFull,
        End::Restarted | End::Killed(_) | End::Refused(_) | End::NotStarted(_) => {
            FailureKind::Emulator
        }
    };
    let lines = trouble(log).map_or_else(|| last_lines(log), |verdict| verdict.lines);
    Failed::new(kind, end.to_string()).with_evidence(lines)
}

/// Writes those of `items` that are among `names`.
fn keep(folder: &Path, items: &[Item], names: &[&str]) -> std::io::Result<()> {
    let wanted = items.iter().filter(|item| names.contains(&item.name.as_str()));
    wanted.into_iter().try_for_each(|item| write_new(&folder.join(&item.name), &item.bytes))
}

#[cfg(test)]
mod tests {
    use wakescope_core::plan::Stimulus;

    use super::*;
    use wakescope_core::episodes::Head;

    #[test]
    fn episodes_of_a_guest_are_given_the_id_of_its_run() {
        let run = Run { id: "0123456789abcdef".into(), ..Run::default() };
        let head = |run: &str| {
            let schema = wakescope_core::episodes::SCHEMA.into();
            let head = Head { schema, run: run.into(), ..Head::default() };
            Entry::Head(Box::new(head)).text()
        };
        let kept = |text: &str| {
            let kept = episodes_of(&run, &[Item::new(RUN, "{}"), Item::new(EPISODES, text)]);
            kept.map(|item| String::from_utf8(item.bytes).unwrap())
        };
        let lines = "{\"a\":1}\nnot even JSON";
        let want = Some(format!("{}{lines}", head(&run.id)));
        assert_eq!(kept(&format!("{}{lines}", head(""))), want);
        assert_eq!(kept(&head("")), Some(head(&run.id)));
        // What no reader could use.
        for text in ["", "{}\n", lines, head("").trim_end()] {
            assert_eq!(kept(text), None, "{text}");
        }
        assert_eq!(kept(&(head("") + &"x".repeat(EPISODES_MOST))), None);
        assert_eq!(episodes_of(&run, &[Item::new(RUN, "{}")]), None);
    }

    /// The words that the kernel makes of the end of its command line, which may hold no other blanks.
    fn words(measurement: &Measurement) -> Vec<String> {
        measurement.arguments().split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_guest_gets_the_plan_of_its_run_as_it_is() {
        let mut plan = Plan::default();
        let load: LoadSet = "find+disturb-fifo-300us".parse().unwrap();
        let measurement = Measurement::of(&plan, &load, 7, 2);
        let all = words(&measurement);
        assert_eq!(all[..3], ["measure", "--seed", "7"]);
        assert_eq!(serde_json::from_str::<RunPlan>(&all[3]).unwrap(), measurement.run);
        assert_eq!((all.len(), measurement.run.cpus.as_slice()), (4, &[0, 1][..]));
        assert_eq!(measurement.run.load, ["find", "disturb-fifo-300us"]);
        assert_eq!(measurement.planned(), SpanNs(2_100_000_000));
        plan.stimulus = Stimulus::Futex;
        plan.priority = Some(50);
        (plan.explain, plan.above, plan.sections) = (true, Some("50us".parse().unwrap()), true);
        let measurement = Measurement::of(&plan, &load, 7, 1);
        let all = words(&measurement);
        assert_eq!(all[..6], ["explain", "--seed", "7", "--above", "50us", "--sections"]);
        let run: RunPlan = serde_json::from_str(&all[6]).unwrap();
        assert_eq!((run.stimulus, run.waker), (Stimulus::Futex, Some(Waker::of_probe(Some(50)))));
        // Kernels take 2,048 characters (x86, arm64), of which the rest takes some 300.
        assert!(measurement.arguments().len() < 1_000, "{all:?}");
    }
}
