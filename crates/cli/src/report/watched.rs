//! The folder of a watch: one table of all its windows.

use super::ReportArgs;
use super::format::Format;
use crate::runs::is_watch;
use crate::watch::STORED_VIEW;
use crate::watch::replay::{Range, Stored};
use crate::{Failure, Outcome, output};

/// Shows the folder of a watch, if one was named.
pub(super) fn run(args: &ReportArgs) -> Result<Option<Outcome>, Failure> {
    let Some(path) = args.run.iter().find(|path| is_watch(path)) else { return Ok(None) };
    let [_] = args.run[..] else {
        return Err(Failure::new(format!("{} is a watch, which is shown alone", path.display()))
            .try_this("name it alone"));
    };
    let format = super::format_of(args)?;
    super::refuse_what_means_nothing(args, format)?;
    super::refuse_options_of_runs(args, "a watch")?;
    let read = || Stored::read(path, Range::default(), args.redact, |_, _| Ok(true));
    let shown = match format {
        Format::Text => {
            let style = if args.output.is_none() { output::style() } else { Default::default() };
            read()?.table(STORED_VIEW, style)
        }
        Format::Json => crate::watch::json(&read()?.total)?,
        _ => {
            return Err(Failure::new(format!("--format {} does not show a watch", format.name()))
                .try_this("choose another format: text or json"));
        }
    };
    output::result_text(args.output.as_deref(), &shown)?;
    Ok(Some(Outcome::Done))
}
