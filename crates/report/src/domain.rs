//! Times, with the domain that they were measured in: virtual time is never shown as real.

use wakescope_core::run::TimeDomain;
use wakescope_core::units::SpanNs;

/// What has to be said wherever figures in virtual time are shown.
pub(crate) const VIRTUAL_TIME: &str = "Virtual time counts instructions: the order of kernels and \
    the differences between them are meaningful, absolute times are not. Caches, idle states and \
    firmware are not modelled.";

/// What has to be said wherever figures of guests are shown that explained their wakeups.
pub(crate) const EXPLAINED: &str = "The guests explained their wakeups: the tracer takes virtual time, which is in all \
    figures. Compare them with those of explained cells only.";

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
