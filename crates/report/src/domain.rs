//! Times, with the domain that they were measured in: virtual time is never shown as real.

use wakescope_core::run::TimeDomain;
use wakescope_core::units::SpanNs;

const VIRTUAL_TIME: &str = "Virtual time counts instructions: the order of kernels and \
    the differences between them are meaningful, absolute times are not. Caches, idle states and \
    firmware are not modelled.";

const EXPLAINED: &str = "The tracer that explains wakeups takes virtual time: it is in all figures of an explained \
    cell. Compare such cells only with each other.";

/// The caveats of all figures of this domain, a sentence or more each. `explained`: a tracer
/// followed wakeups of some of the runs.
pub(crate) fn caveats(domain: TimeDomain, explained: bool) -> impl Iterator<Item = &'static str> {
    let is_virtual = domain == TimeDomain::Virtual;
    let all = [(is_virtual, VIRTUAL_TIME), (is_virtual && explained, EXPLAINED)];
    all.into_iter().filter_map(|(is_said, caveat)| is_said.then_some(caveat))
}

/// `4.31 ms`, `238 virtual µs`
pub(crate) fn span(ns: u64, domain: TimeDomain) -> String {
    worded(&SpanNs(ns).to_string(), domain)
}

/// The same of a length that is written already, or of a dash.
pub(crate) fn worded(span: &str, domain: TimeDomain) -> String {
    match span.split_once(' ') {
        Some((number, unit)) => format!("{number} {}{unit}", domain.before_unit()),
        None => span.into(),
    }
}

/// The line above a table, whose cells have no room for the word.
pub(crate) fn caption(domain: TimeDomain) -> &'static str {
    match domain {
        TimeDomain::Real => "",
        TimeDomain::Virtual => " times are virtual: they count instructions\n",
        TimeDomain::Simulated => " times are simulated\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_virtual_time_has_caveats_and_a_tracer_adds_one() {
        use TimeDomain::{Real, Simulated, Virtual};
        for (domain, explained, want) in [
            (Real, true, &[][..]),
            (Simulated, true, &[]),
            (Virtual, false, &[VIRTUAL_TIME]),
            (Virtual, true, &[VIRTUAL_TIME, EXPLAINED]),
        ] {
            let got: Vec<&str> = caveats(domain, explained).collect();
            assert_eq!(got, want, "{domain:?}");
        }
    }
}
