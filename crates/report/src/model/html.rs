//! What a page says of simulations beside their runs.

use super::{Drawn, PUBLISHED, Simulated};
use crate::html::answer::of_runs_beside;
use crate::html::element::{name, paragraph, section, text};
use crate::html::{NARROW, WIDE, figure_of};
use crate::picture::timeline::scene;
use crate::run_set::RunSet;

/// The answer, with the same doubts as in the text.
pub(crate) fn answer(simulated: &Simulated, run_set: &RunSet) -> String {
    let doubts = match simulated.runs.len() {
        // The page of one run says by itself what speaks against it.
        1 => Vec::new(),
        _ => simulated.doubts(),
    };
    of_runs_beside(run_set, &doubts)
}

/// The wakeups that were drawn, what was published, and how to repeat it.
pub(crate) fn results(simulated: &Simulated, drawn: &[Drawn<'_>]) -> String {
    let figure = |(at, of): (usize, &Drawn<'_>)| {
        let [wide, narrow] = [WIDE, NARROW].map(|room| scene(of.image, &of.timeline, room));
        let id = format!("timeline-{at}");
        paragraph("lead", &text(&format!("{}.", wide.title)))
            + &figure_of(&id, (&wide, &narrow), false)
    };
    let figures: String = drawn.iter().enumerate().map(figure).collect();
    let lines: String =
        simulated.published.iter().map(|line| format!("{}\n", name(line, 500))).collect();
    let published = match lines.is_empty() {
        true => lines,
        false => paragraph("caveat", &text(PUBLISHED)) + &format!("<pre>{lines}</pre>\n"),
    };
    let repeat = format!("<pre>{}</pre>\n", name(&simulated.repeat, 2_000));
    [
        section("timeline", "Wakeups under each model", &figures),
        section("published", "Published figures", &published),
        section("repeat", "How to simulate it again", &repeat),
    ]
    .concat()
}
