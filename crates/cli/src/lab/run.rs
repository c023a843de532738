//! `wakescope lab run`

use wakescope_core::lab::{Asked, Lab, Standing as LabStanding};
use wakescope_core::units::SpanNs;
use wakescope_lab::cache::Cache;
use wakescope_lab::farm::{Continue, Event, FarmError, Standing};
use wakescope_lab::kernel::fetch::Source;
use wakescope_lab::kernel::name::Flavour;
use wakescope_lab::matrix::{self, LabError, Phase};
use wakescope_lab::plan::{Kernels, Offer, Plan};
use wakescope_lab::scope::look_into_worst;
use wakescope_report::lab::{self as table, Extent};
use wakescope_report::style::clean;
use wakescope_sys::clock;

use super::asking::{Asking, failure_of_plan};
use super::equipping::Equipping;
use super::showing::Showing;
use super::waiting::Waiting;
use super::{cache, failure_of_archive, failure_of_cache, failure_of_store, site};
use crate::{Failure, Outcome, output};

/// Run kernels × preemption models × loads × seeds in virtual time, and compare them
///
/// Finished cells are cached and not run again. After Ctrl-C the same command resumes. Exit codes:
/// 0 success; 1 B is worse than A, or a limit was exceeded; 2 a guest failed, or no cell has a result; 3 inconclusive.
/// A model that a kernel does not run is no failure: its cells have no result.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab run --plan linux-journal
  wakescope lab run --kernel 6.1-cloud --preempt none,full --load find --seeds 10 --compare none:full
  wakescope lab run --kernel old/bzImage,new/bzImage --compare old/bzImage:new/bzImage")]
pub(super) struct RunArgs {
    #[command(flatten)]
    asking: Asking,

    #[command(flatten)]
    equipping: Equipping,

    /// Then run the cell with the latest wakeup of each kernel and model once more with `wakescope scope`,
    /// and show its longest sections with interrupts or preemption off. Takes about as long as these cells
    /// took, and a boot per kernel
    #[arg(long)]
    scope: bool,

    /// Show p99.9 and p50 beside the maximum, even if the table is wider than the screen
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    all_figures: bool,

    /// Print JSON: the record of the lab
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print Markdown, with all figures
    #[arg(long)]
    markdown: bool,
}

impl RunArgs {
    /// How much of the table is shown.
    fn extent(&self) -> Extent {
        if self.all_figures { Extent::All } else { Extent::Screen }
    }

    /// The command that asks the same.
    fn repeat(&self) -> String {
        let scope = if self.scope { " --scope" } else { "" };
        self.asking.repeat() + &self.equipping.repeat() + scope
    }
}

/// Runs `wakescope lab run`.
pub(super) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    let began = clock::now();
    let plan = args.asking.plan(args.equipping.has_programs())?;
    let cache = cache()?;
    let mut waiting = Waiting::new()?;
    let plan = expand(plan, &args.equipping, &cache, &mut waiting)?;
    let kernels = args.equipping.kernels(plan.kernel_names(), &cache, &mut waiting)?;
    let equipment = args.equipping.equipment(&kernels, &plan, cache, &mut waiting)?;
    let mut showing = Showing::new(waiting);
    let mut watch = watcher(&mut showing);
    let done = matrix::run(&plan, &kernels, args.repeat(), &equipment, &mut watch);
    let mut done = done.map_err(|e| failure_of_lab(&e))?;
    if (args.scope || plan.scope) && !done.stopped {
        let stopped = look_into_worst(&mut done.lab, &equipment, &mut watch);
        done.stopped = stopped.map_err(|e| failure_of_lab(&e))?;
    }
    drop(watch);
    drop(showing);
    show(&done.lab, args, clock::now().since(began))?;
    if done.stopped {
        output::tell("ended before its last cell; run the same command again to resume");
    }
    Ok(match done.lab.standing() {
        LabStanding::Done => Outcome::Done,
        LabStanding::Failed => Outcome::Failed,
        LabStanding::CouldNot => Outcome::Undone,
        LabStanding::Inconclusive => Outcome::Inconclusive,
    })
}

/// What a lab calls with all that happens: it is shown, and a signal ends the lab.
pub(super) fn watcher(
    showing: &mut Showing,
) -> impl FnMut(Phase, Event<'_>, &Standing) -> Continue + '_ {
    move |phase, event, standing| showing.attend(phase, &event, standing)
}

/// The plan with its kernels named, where it is about all that can be had.
fn expand(
    plan: Plan,
    equipping: &Equipping,
    cache: &Cache,
    waiting: &mut Waiting,
) -> Result<Plan, Failure> {
    let offers = match plan.kernels {
        Kernels::Named(_) => Vec::new(),
        Kernels::Every => offers(equipping, cache, waiting)?,
    };
    plan.expand(&offers).map_err(|e| failure_of_plan("the plan", &e))
}

/// The newest kernel of each series and flavour, and the models that are worth asking it for:
/// whether it knows them turns out in the guest.
fn offers(
    equipping: &Equipping,
    cache: &Cache,
    waiting: &mut Waiting,
) -> Result<Vec<Offer>, Failure> {
    let source = Source::new(cache, site()?, equipping.arch());
    let catalogue =
        source.catalogue(false, waiting).map_err(|e| failure_of_archive("list kernels", &e))?;
    let offer = |name: &wakescope_lab::kernel::name::Name| Offer {
        name: name.short(),
        preempt: match name.flavour {
            Flavour::Rt => vec![Asked::Rt],
            Flavour::Generic | Flavour::Cloud => {
                vec![Asked::None, Asked::Voluntary, Asked::Full, Asked::Lazy]
            }
        },
    };
    Ok(catalogue.newest().map(|newest| offer(&newest.name)).collect())
}

fn show(lab: &Lab, args: &RunArgs, spent: SpanNs) -> Result<(), Failure> {
    if args.json {
        let text = serde_json::to_string_pretty(lab)
            .map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
        return output::print(&format!("{text}\n"));
    }
    if args.markdown {
        return output::print(&table::markdown(lab));
    }
    output::print(&table::text(lab, args.extent(), output::style()))?;
    // What differs each time is no part of the result.
    output::tell(&table::footer(lab, Some(spent)));
    Ok(())
}

pub(super) fn failure_of_lab(e: &LabError) -> Failure {
    let failure = || Failure::new(clean(&e.to_string(), 400));
    match e {
        LabError::Guest(_) => failure()
            .because("a guest has no shared libraries, so its program must be static")
            .try_this("build a static wakescope (make build) and name it: --guest-program FILE"),
        LabError::Modules(e) => failure().try_this(e.remedy()),
        LabError::NoModules(_) => failure()
            .try_this("for a kernel given by file, name the folder of its modules: --modules DIR")
            .try_this(
                "for a Debian kernel, choose another: the archive has only the image of some",
            ),
        LabError::Cache(e) => failure_of_cache(e),
        LabError::Store(e) | LabError::Farm(FarmError::Store(e)) => failure_of_store(e),
        LabError::Farm(FarmError::Thread(_)) => failure().try_this("run fewer guests: --jobs 1"),
        LabError::Plan(e) => failure_of_plan("the plan", e),
        LabError::NoMachine(_) => failure(),
    }
}
