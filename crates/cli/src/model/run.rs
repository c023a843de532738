//! `wakescope model run`

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use wakescope_core::plan::WORST;
use wakescope_core::run::{Episode, Run};
use wakescope_core::units::counted;
use wakescope_lab::plan::shell_quoted;
use wakescope_model::record::Experiment;
use wakescope_model::timeline::Timeline;
use wakescope_model::{Image, Rules, Scenario};
use wakescope_report::model as shown;
use wakescope_report::model::{Drawn, Ending, Figures, Simulated, Simulation};
use wakescope_report::style::clean;

use super::drawing::{Drawing, MOST, nothing_to_draw};
use super::scenario;
use super::simulating::{Ended, each};
use super::{rules, rules_or_all};
use crate::folder::{RunFolder, RunsFolder};
use crate::measure::time_now;
use crate::{Failure, Outcome, output};

/// Simulate a scenario under preemption models, and show how late its probes wake
///
/// Each simulation writes a run record, which `report`, `compare` and `trend` read. Exit codes: 0
/// success; 2 an error, or the simulated kernel broke a rule under one of the models; 3 a simulation
/// was ended or not begun, because its probes hardly ever ran or after Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope model run williams
  wakescope model run prune-dcache --preempt none,full,both -o prune.svg
  wakescope model run own.toml --preempt none,full --seeds 10 --out model
  wakescope compare model/full --against model/none")]
pub(super) struct RunArgs {
    /// A scenario of `wakescope model list`, or a file
    #[arg(value_name = "SCENARIO")]
    scenario: String,

    /// Preemption models: none, voluntary, full, both, lazy, rt [default: all of them]
    #[arg(long, value_name = "MODEL,…", value_delimiter = ',', value_parser = rules(), hide_possible_values = true)]
    preempt: Vec<Rules>,

    /// Number of simulations of each model, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: u32,

    /// The first seed. A seed sets the probes' phases and all that is drawn at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Wakeups of all probes together in each simulation
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    samples: u64,

    /// Simulations that run at a time [default: one for each CPU]. The figures do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// Folder of the run records [default: one named after the time, under runs/]
    #[arg(long, alias = "output", value_name = "DIR")]
    out: Option<PathBuf>,

    /// Do not explain the latest wakeups, which takes two thirds of the time
    #[arg(long)]
    no_explain: bool,

    /// Draw the latest wakeup of each model, or its Nth latest: what each CPU was at, and who held
    /// which lock. Below the table, or with -o into a file
    #[arg(long, value_name = "worst|N", num_args = 0..=1, require_equals = true, default_missing_value = "worst", value_parser = parse_place)]
    timeline: Option<usize>,

    /// Draw into a file: the wakeups to .svg or .png, or all to a page, .html. Implies --timeline
    #[arg(short = 'o', value_name = "FILE")]
    drawing: Option<PathBuf>,

    /// Print JSON: all figures
    #[arg(long)]
    json: bool,
}

/// Runs `wakescope model run`.
pub(super) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    let drawing = args.drawing()?;
    let scenario = scenario::read(&args.scenario)?;
    let images = args.images(&scenario)?;
    let experiments = args.experiments(&scenario, &images);
    // Not after minutes of simulation.
    RunsFolder::check(args.out.as_deref(), &time_now(), experiments.iter().map(folder_of))?;
    let mut folder = None;
    let mut simulated = args.blank(&scenario, &experiments);
    let threads = crate::lab::parallel(args.jobs);
    let mut latest: Vec<Vec<(u64, u64)>> = vec![Vec::new(); experiments.len()];
    let mut complete = 0;
    each(&experiments, !args.no_explain, threads, |place, result| {
        let experiment = &experiments[place];
        simulated.runs[place].ending = match result {
            Ok(Ended { run, is_complete }) => {
                complete += usize::from(is_complete);
                let late = |e: &Episode| (e.wakeup_latency_ns, e.expiry_ns);
                latest[place] = run.worst.iter().map(late).collect();
                let name = experiment.image.rules.name;
                // Nothing is made before there is something to keep.
                let parent = match folder.take() {
                    Some(folder) => folder,
                    None => RunsFolder::create(args.out.as_deref(), &time_now())?,
                };
                let parent = folder.insert(parent).path();
                let path = parent.join(folder_of(experiment));
                let measured = scenario.measured.iter().find(|measured| measured.preempt == name);
                let figures = write(&path, &run)?.beside(measured, &run);
                Ending::Ok(Box::new(figures))
            }
            Err(broken) => Ending::Broken { reason: broken.to_string() },
        };
        Ok(())
    })?;
    show(args, &simulated, folder.as_ref().map(RunsFolder::path))?;
    if drawing.is_some() || args.timeline.is_some() {
        let nth = args.timeline.unwrap_or(0);
        let drawn = drawn(&images, &experiments, &latest, nth)?;
        if drawn.is_empty() {
            return Err(nothing_to_draw(&simulated, drawing));
        }
        tell_not_drawn(&images, &drawn, nth);
        match drawing {
            Some(drawing) => drawing.write(&simulated, &drawn)?,
            None => {
                for of in &drawn {
                    output::print(&format!("\n{}", shown::timeline(of)))?;
                }
            }
        }
    }
    let is_broken = simulated.runs.iter().any(|run| matches!(run.ending, Ending::Broken { .. }));
    Ok(match (is_broken, complete == experiments.len()) {
        (true, _) => Outcome::Undone,
        (false, false) => Outcome::Inconclusive,
        (false, true) => Outcome::Done,
    })
}

impl RunArgs {
    /// The scenario under each model, once for each.
    fn images(&self, scenario: &Scenario) -> Result<Vec<Image>, Failure> {
        let mut images = Vec::new();
        for rules in rules_or_all(&self.preempt) {
            let image = Image::new(scenario, rules).map_err(|e| {
                let name = clean(&self.scenario, 200);
                Failure::new(clean(&format!("cannot simulate {name}: {e}"), 400))
                    .try_this("docs/model/scenarios.md describes what a scenario may hold")
            })?;
            if image.probes().next().is_none() {
                return Err(Failure::new(format!("{} has no probe", clean(&self.scenario, 200)))
                    .because("only wakeups of tasks with a period are measured")
                    .try_this("give a task a period, as in: period = \"1ms\""));
            }
            images.push(image);
        }
        Ok(images)
    }

    fn experiments<'a>(&self, scenario: &'a Scenario, images: &'a [Image]) -> Vec<Experiment<'a>> {
        let seeds = || (0..u64::from(self.seeds)).map(|n| self.seed.wrapping_add(n));
        let of = |image: &'a Image| {
            let samples = self.samples;
            seeds().map(move |seed| Experiment { scenario, image, seed, samples })
        };
        images.iter().flat_map(of).collect()
    }

    fn blank(&self, scenario: &Scenario, experiments: &[Experiment<'_>]) -> Simulated {
        let mut simulated = Simulated::new(scenario, self.repeat());
        let of = |experiment: &Experiment<'_>| Simulation {
            preempt: experiment.image.rules.name.into(),
            seed: experiment.seed,
            ending: Ending::NotRun,
        };
        simulated.runs = experiments.iter().map(of).collect();
        simulated
    }

    /// The file to draw into, if there is one.
    fn drawing(&self) -> Result<Option<Drawing<'_>>, Failure> {
        let drawing = self.drawing.as_deref().map(Drawing::into).transpose()?;
        if self.json && self.timeline.is_some() && drawing.is_none() {
            return Err(Failure::new("--timeline draws where --json prints")
                .try_this("name a file for the drawing: -o FILE.svg"));
        }
        let models = rules_or_all(&self.preempt).len();
        let runs = models.saturating_mul(self.seeds as usize);
        if drawing.is_some_and(|drawing| drawing.is_page()) && runs > MOST {
            return Err(Failure::new(format!("{runs} runs are too many for a page"))
                .try_this(format!("simulate at most {MOST}: fewer --seeds, or fewer models"))
                .try_this("draw only the wakeups: -o FILE.svg"));
        }
        Ok(drawing)
    }

    /// The command that gives the same figures.
    fn repeat(&self) -> String {
        let mut words = vec![format!("wakescope model run {}", shell_quoted(&self.scenario))];
        if !self.preempt.is_empty() {
            let names: Vec<&str> = self.preempt.iter().map(|rules| rules.name).collect();
            words.push(format!("--preempt {}", names.join(",")));
        }
        words.push(format!("--seeds {} --seed {}", self.seeds, self.seed));
        words.push(format!("--samples {}", self.samples));
        words.join(" ")
    }
}

/// What `--timeline` reads: a place among the latest wakeups, from 0.
fn parse_place(text: &str) -> Result<usize, String> {
    let kept = usize::from(WORST);
    match text {
        "worst" => Ok(0),
        number => match number.parse::<usize>() {
            Ok(nth) if (1..=kept).contains(&nth) => Ok(nth - 1),
            _ => Err(format!("expected worst, or a number from 1 to {kept}")),
        },
    }
}

/// The `nth` latest wakeup of each model that has so many, over all its simulations. `latest` has for each simulation
/// how late its latest wakeups were, and when they were due.
fn drawn<'a>(
    images: &'a [Image],
    experiments: &[Experiment<'a>],
    latest: &[Vec<(u64, u64)>],
    nth: usize,
) -> Result<Vec<Drawn<'a>>, Failure> {
    let mut all = Vec::new();
    for image in images {
        let is_own = |of: &(&Experiment<'a>, &Vec<(u64, u64)>)| of.0.image.rules == image.rules;
        let own = experiments.iter().zip(latest).filter(is_own);
        let mut wakeups: Vec<(u64, u64, u64)> = own
            .flat_map(|(of, late)| late.iter().map(|&(late, expiry)| (late, of.seed, expiry)))
            .collect();
        wakeups.sort_by_key(|wakeup| Reverse(wakeup.0));
        let Some(&(late_ns, seed, expiry_ns)) = wakeups.get(nth) else { continue };
        let timeline = Timeline::of(image, seed, expiry_ns, late_ns)
            .map_err(|broken| Failure::new(clean(&broken.to_string(), 400)))?;
        all.push(Drawn { image, timeline });
    }
    Ok(all)
}

/// Names the models that are not drawn.
fn tell_not_drawn(images: &[Image], drawn: &[Drawn<'_>], nth: usize) {
    let is_drawn = |image: &&Image| drawn.iter().any(|of| of.image.rules == image.rules);
    let others = images.iter().filter(|image| !is_drawn(image));
    let names: Vec<&str> = others.map(|image| image.rules.name).collect();
    if !names.is_empty() {
        let wakeups = counted(nth as u64 + 1, "wakeup");
        output::tell(&format!("not drawn, without {wakeups}: {}", names.join(", ")));
    }
}

/// The folder of an experiment's run, in that of all runs.
fn folder_of(experiment: &Experiment<'_>) -> PathBuf {
    Path::new(experiment.image.rules.name).join(experiment.seed.to_string())
}

/// Writes the record of a run into its folder.
fn write(path: &Path, run: &Run) -> Result<Figures, Failure> {
    let record = run.to_json();
    let folder = RunFolder::create(Some(path), &run.started, None, record.as_bytes())?;
    let path = folder.finish(record.as_bytes())?;
    Ok(Figures::of(run, Some(path.display().to_string())))
}

fn show(args: &RunArgs, simulated: &Simulated, folder: Option<&Path>) -> Result<(), Failure> {
    if args.json {
        let json = simulated
            .to_json()
            .map_err(|e| Failure::new(format!("cannot write the figures as JSON: {e}")))?;
        return output::print(&format!("{json}\n"));
    }
    let mut text = simulated.table(output::style());
    let is_any_kept = simulated.runs.iter().any(|run| matches!(run.ending, Ending::Ok(_)));
    if let Some(folder) = folder.filter(|_| is_any_kept) {
        let show = output::command("report", folder);
        text += &format!("\n runs: {}   show: {show}/*/*\n", folder.display());
    }
    output::print(&text)
}
