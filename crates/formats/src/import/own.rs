//! What wakescope itself writes at the head of files in other programs' formats.

use wakescope_core::run::TimeDomain;
use wakescope_core::source::Quantity;

use super::Unit;

/// `wakescope 0.1.0: woken, virtual us, quantity gap, rows 300, kernel 6.12`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) unit: Option<Unit>,
    pub(super) domain: TimeDomain,
    /// What the values are.
    pub(super) quantity: Quantity,
    /// How many rows a histogram has that may end before its samples.
    pub(super) rows: Option<u64>,
}

impl Own {
    /// What such a head states; `None` if another program wrote it.
    pub(super) fn of(head: &str) -> Option<Self> {
        let (_, parts) = head.strip_prefix("wakescope ")?.split_once(": ")?;
        let mut own = Self {
            unit: None,
            domain: TimeDomain::Real,
            quantity: Quantity::WakeupLatency,
            rows: None,
        };
        for part in parts.split(", ").skip(1) {
            // What follows may be anybody's words.
            if part.starts_with("kernel ") {
                break;
            }
            let domains =
                [("virtual ", TimeDomain::Virtual), ("simulated ", TimeDomain::Simulated)];
            let found = domains.iter().find_map(|(word, d)| Some((part.strip_prefix(word)?, *d)));
            let (name, domain) = found.unwrap_or((part, TimeDomain::Real));
            let unit = match name {
                "ns" => Some(Unit::Ns),
                "us" => Some(Unit::Us),
                "ms" => Some(Unit::Ms),
                _ => None,
            };
            if let (Some(unit), None) = (unit, own.unit) {
                (own.unit, own.domain) = (Some(unit), domain);
            } else if let Some(name) = part.strip_prefix("quantity ") {
                own.quantity = serde_json::from_value(name.into()).unwrap_or(Quantity::Unknown);
            } else if let Some(rows) = part.strip_prefix("rows ") {
                own.rows = super::lines::number(rows);
            }
        }
        Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let of = |head| Own::of(head).map(|own| (own.unit, own.domain, own.quantity, own.rows));
        let wakeup = Quantity::WakeupLatency;
        for (head, want) in [
            ("cyclictest V 2.4", None),
            ("wakescope 0.1.0: woken, us", Some((Some(Unit::Us), TimeDomain::Real, wakeup, None))),
            (
                "wakescope 0.1.0: expiries, virtual ns, quantity gap, rows 3, kernel 6, ms",
                Some((Some(Unit::Ns), TimeDomain::Virtual, Quantity::Gap, Some(3))),
            ),
            (
                "wakescope 0.1.0: woken, ms, quantity unknown",
                Some((Some(Unit::Ms), TimeDomain::Real, Quantity::Unknown, None)),
            ),
        ] {
            assert_eq!(of(head), want, "{head}");
        }
    }
}
