//! Lengths: fixed, or how they are drawn.

use wakescope_core::budget::{Budget, Entry};

use super::super::length::{Bucket, Length};
use super::at::{At, Fields};
use super::error::Problem;
use super::limits;
use super::time::{some_ns, span_ns};

/// Gives the lengths of a run: the run, and which of its histograms.
pub type RunLengths<'a> = dyn Fn(&str, &str) -> Result<Vec<Bucket>, String> + 'a;

/// Reads lengths.
pub(super) struct Lengths<'a> {
    pub(super) of_runs: &'a RunLengths<'a>,
    pub(super) budget: Budget,
}

const KINDS: &[&str] = &["uniform", "exponential", "pareto", "mixture", "histogram", "run", "of"];

impl Lengths<'_> {
    pub(super) fn read(&self, at: &At<'_>) -> Result<Length, Problem> {
        self.nested(at, 0)
    }

    fn nested(&self, at: &At<'_>, mixtures: usize) -> Result<Length, Problem> {
        if at.text("").is_ok() {
            return Ok(Length::Fixed(span_ns(at)?));
        }
        let fields =
            at.fields("a length, as in \"3us\" or { uniform = [\"1us\", \"5us\"] }", KINDS)?;
        if fields.get("run").is_some() || fields.get("of").is_some() {
            return self.of_run(&fields);
        }
        let (kind, at) = fields.only()?;
        match kind {
            "uniform" => uniform(&at),
            "exponential" => Ok(Length::Exponential(some_ns(&at)?)),
            "pareto" => pareto(&at),
            "mixture" => self.mixture(&at, mixtures + 1),
            _ => self.histogram(&at),
        }
    }

    fn mixture(&self, at: &At<'_>, mixtures: usize) -> Result<Length, Problem> {
        if mixtures > limits::NESTED_MIXTURES {
            let most = limits::NESTED_MIXTURES;
            return Err(
                at.problem(format!("found mixtures within mixtures, expected at most {most}"))
            );
        }
        let mut parts = Vec::new();
        for part in at.list(limits::PARTS, "weights, each with a length")? {
            let [weight, length] = part.array("a weight and a length, as in [0.9, \"3us\"]")?;
            parts.push((weight.positive(1e9, "a weight")?, self.nested(&length, mixtures)?));
        }
        if parts.is_empty() {
            return Err(at.found_instead_of("at least one part"));
        }
        Ok(Length::Mixture(parts))
    }

    fn histogram(&self, at: &At<'_>) -> Result<Length, Problem> {
        let mut buckets = Vec::new();
        for entry in at.list(limits::BUCKETS, "buckets")? {
            let [lower, upper, count] = entry.array("a bucket, as in [\"1us\", \"2us\", 30]")?;
            let count = count.whole(1..=i64::MAX as u64, "how often it was seen")?;
            buckets.push(Bucket { lower: span_ns(&lower)?, upper: span_ns(&upper)?, count });
        }
        checked(at, buckets)
    }

    fn of_run(&self, fields: &Fields<'_>) -> Result<Length, Problem> {
        let run = fields.need("run")?;
        let of = fields.need("of")?;
        let name = run.text("the folder of a run")?;
        let buckets = (self.of_runs)(name, of.text("the name of a histogram")?)
            .map_err(|why| run.problem(why))?;
        if buckets.len() > limits::BUCKETS {
            let (found, most) = (buckets.len(), limits::BUCKETS);
            return Err(run.problem(format!("found {found} buckets, expected at most {most}")));
        }
        // A few bytes of a scenario name a file of megabytes.
        self.budget
            .keep(buckets.len() as u64, Entry::BUCKET)
            .map_err(|e| run.problem(e.to_string()))?;
        checked(&run, buckets)
    }
}

fn uniform(at: &At<'_>) -> Result<Length, Problem> {
    let [least, most] = at.array("the least and the most, as in [\"1us\", \"5us\"]")?;
    let (shortest, longest) = (span_ns(&least)?, span_ns(&most)?);
    if shortest > longest {
        return Err(most.found_instead_of("at least as long as the least"));
    }
    Ok(Length::Uniform(shortest, longest))
}

fn pareto(at: &At<'_>) -> Result<Length, Problem> {
    let fields = at.fields(
        "a Pareto distribution, as in { least = \"1us\", shape = 1.5, most = \"10ms\" }",
        &["least", "shape", "most"],
    )?;
    let (least, most) = (some_ns(&fields.need("least")?)?, fields.need("most")?);
    let shape = fields.need("shape")?.positive(100.0, "the shape")?;
    let longest = span_ns(&most)?;
    if least > longest {
        return Err(most.found_instead_of("at least as long as the least"));
    }
    Ok(Length::Pareto { least, shape, most: longest })
}

/// Buckets in order that hold something, none beyond an hour.
fn checked(at: &At<'_>, buckets: Vec<Bucket>) -> Result<Length, Problem> {
    let mut end = 0;
    let mut all: u64 = 0;
    for &Bucket { lower, upper, count } in &buckets {
        if lower < end || upper <= lower || upper > limits::LENGTH_NS {
            return Err(at.problem(format!(
                "found a bucket from {lower} to {upper} ns after one to {end} ns, \
                 expected them in order, within an hour"
            )));
        }
        end = upper;
        all = all
            .checked_add(count)
            .ok_or_else(|| at.problem(format!("found counts of more than {} in all", u64::MAX)))?;
    }
    if all == 0 {
        return Err(at.problem("found no lengths, expected at least one"));
    }
    Ok(Length::Histogram(buckets))
}
