//! The second account of late wakeups: without the time that the hypervisor stole.

use std::collections::BTreeMap;

use crate::balance::{Balance, Books, net_of_all};
use crate::late::Late;
use crate::net_of_steal::Lateness::{NetOfSteal as Net, Whole};
use crate::{Seen, rank};
use wakescope_core::distribution::Distribution;
use wakescope_core::episodes::Attributed;
use wakescope_core::explain::{Above, NetOfSteal};
use wakescope_core::histogram::bucket_of;

/// The wakeups that are late without stolen time, among `all`, of which those from `above_ns` on are late
/// with it. `None` where nothing is known to be stolen of these: then both are the same.
///
/// Wakeups are `accounts` and what was abridged. How much was stolen of one that was not followed is not
/// known; so all of its lateness counts.
pub(super) fn net_of_steal(
    all: &Distribution,
    seen: &Seen,
    accounts: &[Attributed],
    (above_ns, asked): (u64, Above),
    (most, origin_ns): (usize, u64),
) -> Option<NetOfSteal> {
    let is_late = |account: &&Attributed| account.ns(Whole) >= above_ns && account.stolen_ns() > 0;
    let any_stolen = accounts.iter().any(|a| is_late(&a)) || seen.abridged.any_stolen(above_ns);
    // Without a count of it nobody knows which wakeups are the latest.
    if !any_stolen || seen.net_of_steal.count != seen.wakeup_latency.count {
        return None;
    }
    let all = net_of_all(all, &seen.wakeup_latency, &seen.net_of_steal);
    let (above_ns, above) = asked.least_of(&all);
    let mut late: Vec<&Attributed> = accounts.iter().filter(|a| a.ns(Net) >= above_ns).collect();
    late.sort_by_key(|account| std::cmp::Reverse(account.ns(Net)));
    let mut explained: BTreeMap<usize, u64> = seen.abridged.counts(above_ns, Net);
    for account in &late {
        *explained.entry(bucket_of(account.ns(Net))).or_default() += 1;
    }
    let balance = Balance::of(&Books {
        all: &all,
        followed: &seen.net_of_steal,
        explained,
        above_ns,
        // Those that are not late without stolen time leave the kernel, too.
        lost: asked.time_ns().map(|_| seen.lost_records),
        listed: &[],
    });
    let parts = late.iter().map(|account| account.part(Net));
    Some(NetOfSteal {
        above_ns,
        above: above.to_string(),
        late: balance.late,
        explained: balance.explained,
        late_not_followed: balance.late_not_followed,
        unexplained_ns: balance.unexplained_ns(),
        causes: rank(parts.chain(seen.abridged.parts(above_ns, Net)).chain(balance.parts())),
        worst: late.iter().take(most).map(|account| account.episode(origin_ns)).collect(),
    })
}
