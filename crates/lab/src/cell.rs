//! A cell: one guest that boots a kernel, does one task, and ends.

use std::sync::Arc;

use wakescope_core::lab::Asked;
use wakescope_core::units::SpanNs;

use crate::farm::Job;
use crate::guest::{CHECK, RUN, VERB};
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::machine::boot::Image;
use crate::machine::parameters::Parameters;
use crate::qemu::Qemu;
use crate::store::{Ingredients, Key, Label, ORDER, ROOT, Recipe};

mod again;
mod conclusion;
mod emulation;
mod measurement;

pub use again::{Again, Missing};
pub(crate) use conclusion::with_head;
pub use emulation::Emulation;
pub use measurement::{Explain, Measurement};

/// What a guest is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum GuestTask {
    /// Tell what model it runs, also from its behaviour.
    Check,
    /// Measure.
    Measure(Box<Measurement>),
}

/// What a guest is booted with.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The initramfs.
    pub image: Image,
    /// The modules in it, in the order in which they are loaded.
    pub modules: Vec<String>,
    /// What is placed behind it.
    pub root: Option<Image>,
}

/// The order to a guest that only reports the model of its kernel. Its cell has this word in place of a load.
const CHECKING: &str = "check";

/// What the runner needs to boot a guest.
#[derive(Clone, Debug)]
pub struct Work {
    qemu: Arc<Qemu>,
    /// The emulator's arguments that make the machine.
    machine: Vec<String>,
    kernel: Image,
    guest: Image,
    root: Option<Image>,
    cmdline: String,
    /// The guest's order, where the command line does not contain it.
    order: Option<String>,
    /// The key of all that the machine is until the guest reads the order, if its state can be saved.
    boot: Option<Key>,
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
        // In one word: a kernel panics if more than 32 follow `--` (init/main.c).
        if !guest.modules.is_empty() {
            arguments += &format!(" --module {}", guest.modules.join(","));
        }
        let task_words = match &task {
            GuestTask::Check => CHECKING.into(),
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
            guest_sha256: &guest.image.sha256,
            emulator: &format!("{} {}", self.qemu.banner, self.qemu.sha256),
            arguments: &machine.arguments(),
            command_line: &cmdline,
        });
        if let Some(root) = &guest.root {
            recipe = recipe.with(ROOT, &root.sha256);
        }
        // Of several CPUs none is recorded, so there is no moment at which all that they are could be saved.
        let boot = (order.is_some() && machine.cpus == 1).then(|| recipe.key());
        if let Some(order) = &order {
            recipe = recipe.with(ORDER, order);
        }
        let (load, seed) = match &task {
            GuestTask::Check => (CHECKING.into(), None),
            GuestTask::Measure(m) => (m.load.to_string(), Some(m.seed)),
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
                kernel: Image { path: kernel.image.clone(), sha256: kernel.sha256.clone() },
                guest: guest.image.clone(),
                root: guest.root.clone(),
                cmdline,
                order,
                boot,
                limit: self.limit,
            },
        }
    }
}

/// The file that the guest of this recipe must send. What it is to do is the end of its words, and a plan is no
/// such word.
fn result_of(recipe: &Recipe) -> &'static str {
    let words = recipe.part(ORDER).or(recipe.part("command_line")).unwrap_or_default();
    if words.split(' ').next_back() == Some(CHECKING) { CHECK } else { RUN }
}

/// What `preempt=` is told. RT kernels have one model, so asking for it is asking for nothing.
fn parameter(asked: Asked) -> Option<&'static str> {
    match asked {
        Asked::Default | Asked::Rt => None,
        Asked::None | Asked::Voluntary | Asked::Full | Asked::Lazy => Some(asked.word()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Arch;
    use crate::plan::{LoadSet, Plan};
    use crate::qemu::Version;

    /// The cell in which a guest with so many modules does this, its kernel with these parameters.
    fn job(parameters: &str, modules: usize, task: GuestTask) -> Job<Work> {
        let arch = Arch::Amd64;
        let qemu = Qemu {
            arch,
            command: Vec::new(),
            folder: "/".into(),
            program: "/bin/false".into(),
            version: Version(10, 0, 13),
            banner: "QEMU 10.0.13".into(),
            sha256: "3".repeat(64),
            data: Vec::new(),
            has_sandbox: true,
        };
        let workshop = Workshop {
            qemu: Arc::new(qemu),
            machine: Machine::new(arch),
            parameters: parameters.parse().unwrap(),
            limit: SpanNs(1),
        };
        let kernel = Kernel {
            name: "6.1-cloud".into(),
            arch,
            release: "6.1.0-56-cloud-amd64".into(),
            version: String::new(),
            image: "/kernel".into(),
            sha256: "1".repeat(64),
            config: None,
            modules: None,
            package: None,
        };
        let guest = Guest {
            image: Image { path: "/guest".into(), sha256: "2".repeat(64) },
            modules: (0..modules).map(|number| format!("m{number}.ko")).collect(),
            root: None,
        };
        workshop.job(&kernel, &guest, Asked::Default, task)
    }

    #[test]
    fn the_file_that_a_guest_sends_follows_from_its_recipe() {
        let measure =
            || Measurement::of(&Plan::default(), &"idle".parse::<LoadSet>().unwrap(), 1, 1);
        for parameters in ["", "lockdown=none"] {
            for (task, want) in
                [(GuestTask::Check, CHECK), (GuestTask::Measure(Box::new(measure())), RUN)]
            {
                let job = job(parameters, 0, task);
                assert_eq!(result_of(&job.recipe), want, "{parameters} {:?}", job.recipe);
            }
        }
    }

    #[test]
    fn modules_take_two_of_the_words_that_the_kernel_gives_to_its_first_process() {
        let words = |modules| {
            let cmdline = job("lockdown=none", modules, GuestTask::Check).work.cmdline;
            let (_, words) = cmdline.split_once(" -- ").unwrap();
            words.split(' ').map(str::to_owned).collect::<Vec<_>>()
        };
        let none = words(0);
        assert!(!none.contains(&"--module".into()), "{none:?}");
        for (modules, want) in [(1, "m0.ko"), (3, "m0.ko,m1.ko,m2.ko")] {
            let all = words(modules);
            assert_eq!(
                (all.len(), &all[3..5]),
                (none.len() + 2, &["--module", want].map(String::from)[..])
            );
        }
        // More than that, and the kernel panics.
        assert!(words(100).len() <= 32);
    }
}
