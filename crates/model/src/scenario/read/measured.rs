//! Published figures as numbers.

use wakescope_core::percentile::Percentile;
use wakescope_core::run::TimeDomain;

use super::super::Measured;
use super::super::words::MEASURED;
use super::at::At;
use super::error::Problem;
use super::limits;
use super::time::some_ns;
use crate::rules::Rules;

pub(super) fn all(at: &At<'_>) -> Result<Vec<Measured>, Problem> {
    let mut all: Vec<Measured> = Vec::new();
    for at in at.list(limits::MEASURED, "published figures, each under [[measured]]")? {
        let one = one(&at)?;
        if all.iter().any(|other| other.preempt == one.preempt) {
            return Err(at.problem(format!("found a second kernel of `{}`", one.preempt)));
        }
        all.push(one);
    }
    Ok(all)
}

fn one(at: &At<'_>) -> Result<Measured, Problem> {
    let fields = at.fields("published figures", MEASURED)?;
    let time = |key| fields.get(key).as_ref().map(some_ns).transpose();
    let count = |at: At<'_>| at.whole(1..=u64::from(u32::MAX), "a number");
    Ok(Measured {
        preempt: preempt(&fields.need("preempt")?)?,
        kernel: fields.need("kernel")?.name(limits::NAME)?,
        time_domain: fields
            .get("time_domain")
            .map_or(Ok(TimeDomain::Real), |at| time_domain(&at))?,
        samples: count(fields.need("samples")?)?,
        max_ns: time("max")?,
        mean_ns: time("mean")?,
        stdev_ns: time("stdev")?,
        percentiles: fields.get("percentiles").map_or(Ok(Vec::new()), |at| percentiles(&at))?,
        buckets: fields.get("buckets").map(count).transpose()?,
        below: fields.get("below").map_or(Ok(Vec::new()), |at| below(&at))?,
    })
}

fn preempt(at: &At<'_>) -> Result<String, Problem> {
    let names = Rules::ALL.map(|rules| rules.name).join(", ");
    let expected = format!("a preemption model: {names}");
    let rules = Rules::named(at.text(&expected)?).ok_or_else(|| at.found_instead_of(&expected))?;
    Ok(rules.name.into())
}

fn time_domain(at: &At<'_>) -> Result<TimeDomain, Problem> {
    let expected = "real or virtual";
    match at.text(expected)? {
        "real" => Ok(TimeDomain::Real),
        "virtual" => Ok(TimeDomain::Virtual),
        _ => Err(at.found_instead_of(expected)),
    }
}

fn percentiles(at: &At<'_>) -> Result<Vec<(Percentile, u64)>, Problem> {
    let mut all: Vec<(Percentile, u64)> = Vec::new();
    for entry in at.list(limits::MEASURED, "percentiles, each with a time")? {
        let [percentile, time] =
            entry.array("a percentile and a time, as in [\"p99.9\", \"1ms\"]")?;
        let expected = "a percentile above the last, as p99.9";
        let of = percentile.text(expected)?.parse::<Percentile>().ok();
        let above = of.filter(|of| all.last().is_none_or(|(last, _)| last < of));
        all.push((above.ok_or_else(|| percentile.found_instead_of(expected))?, some_ns(&time)?));
    }
    Ok(all)
}

fn below(at: &At<'_>) -> Result<Vec<(u64, f64)>, Problem> {
    let mut shares: Vec<(u64, f64)> = Vec::new();
    for entry in at.list(limits::MEASURED, "thresholds, each with a share")? {
        let [threshold, share] = entry.array("a threshold and a share, as in [\"1ms\", 99.9]")?;
        let ns = some_ns(&threshold)?;
        if shares.last().is_some_and(|&(last, _)| last >= ns) {
            return Err(threshold.found_instead_of("a threshold above the last"));
        }
        shares.push((ns, share.positive(100.0, "a share in percent")?));
    }
    Ok(shares)
}
