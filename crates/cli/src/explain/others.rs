//! Following the wakeups of threads that are not ours.

use wakescope_core::plan::{Plan, Stimulus, Target};

use super::ExplainArgs;
use crate::{Failure, measure};

/// The plan to follow `target` for as long as was asked for.
pub(super) fn plan(args: &ExplainArgs, target: Target) -> Result<Plan, Failure> {
    let measured = measure::plan(&args.measure)?;
    let Some(duration_ns) = measured.duration_ns else {
        return Err(Failure::new("--samples does not apply to wakeups of other threads")
            .try_this("set how long to follow them: --duration"));
    };
    if !measured.load.is_empty() {
        return Err(Failure::new("--load does not apply to wakeups of other threads")
            .try_this("run the load separately: wakescope load"));
    }
    Ok(Plan {
        target,
        stimulus: Stimulus::Any,
        duration_ns: Some(duration_ns),
        cpus: Vec::new(),
        worst: measured.worst,
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        args: ExplainArgs,
    }

    /// Threads of others have no interval that it could be shorter than.
    #[test]
    fn others_are_followed_for_as_short_a_time_as_is_asked_for() {
        let given = ["explain", "--pid", "1", "--duration", "500us"];
        let Arguments { args } = clap::Parser::parse_from(given);
        let plan = plan(&args, Target::Process { pid: 1 }).unwrap();
        assert_eq!(plan.duration_ns, Some(500_000));
    }
}
