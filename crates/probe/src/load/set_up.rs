//! Starts loads side by side, and waits until they are set up.

use std::path::Path;

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::validity::LeftOut;
use wakescope_sys::clock;

use super::disturb::{Disturbance, path_of_log};
use super::{Load, LoadError, Options, Spec, missing};

/// How long loads may take to be set up: making their files takes a slow flash disk a while.
const PATIENCE: SpanNs = SpanNs(120_000_000_000);

/// How often the user is asked meanwhile.
const LOOK: SpanNs = SpanNs(50_000_000);

/// Loads that are set up.
#[derive(Debug)]
pub struct SetUp {
    /// These, in the order in which they were asked for.
    pub loads: Vec<Load>,
    /// What of the requested ones was left out.
    pub left_out: Vec<LeftOut>,
}

/// Starts loads, whose set-up then goes on side by side.
pub fn start_all(specs: &[Spec], options: &Options) -> Result<Vec<Load>, LoadError> {
    check_log(specs, path_of_log().as_deref())?;
    specs.iter().map(|spec| Load::start(spec.clone(), options)).collect()
}

/// Of two disturbances, the one that ends last would put its log in place of the other's.
fn check_log(specs: &[Spec], log: Option<&Path>) -> Result<(), LoadError> {
    let is_disturbance = |spec: &&Spec| spec.name().parse::<Disturbance>().is_ok();
    let mut disturbances = specs.iter().filter(is_disturbance).map(Spec::to_string);
    match (log, disturbances.next(), disturbances.next()) {
        (Some(_), Some(first), Some(second)) => Err(LoadError::OneLog { first, second }),
        _ => Ok(()),
    }
}

/// Waits until all loads are set up. Those of a group that cannot run are left out, unless none of the loads can.
/// `None` if the user, who `has_ended` tells of, ends it before.
pub fn await_set_up(
    loads: Vec<Load>,
    mut has_ended: impl FnMut() -> bool,
) -> Result<Option<SetUp>, LoadError> {
    let deadline = clock::now().after(PATIENCE);
    let mut left_out = missing(loads.iter().map(Load::spec));
    let (mut ready, mut refused) = (Vec::new(), None);
    for mut load in loads {
        match await_ready(&mut load, deadline, &mut has_ended) {
            Ok(false) => return Ok(None),
            Ok(true) => {
                left_out.extend(load.omissions());
                ready.push(load);
            }
            Err(e) => {
                let Some(part) = load.can_be_left_out(&e) else { return Err(e) };
                left_out.push(part);
                refused.get_or_insert(e);
            }
        }
    }
    match refused {
        Some(e) if ready.is_empty() => Err(e),
        _ => Ok(Some(SetUp { loads: ready, left_out })),
    }
}

/// Waits until a load is set up. False if the user ends it before.
fn await_ready(
    load: &mut Load,
    deadline: MonoNs,
    has_ended: &mut impl FnMut() -> bool,
) -> Result<bool, LoadError> {
    loop {
        let error = match load.wait_ready(LOOK) {
            Ok(()) => return Ok(true),
            // It was set up, and died since. The end of the run reports that, as of a load that dies later.
            Err(_) if load.status().ready => return Ok(true),
            Err(e) => e,
        };
        match error {
            LoadError::NotReady { .. } if clock::now() < deadline => {}
            LoadError::NotReady { load, .. } => {
                return Err(LoadError::NotReady { load, patience: PATIENCE });
            }
            other => return Err(other),
        }
        if has_ended() {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::parse_list;

    /// The log of one load took the place of the other's without a word.
    #[test]
    fn two_disturbances_have_no_log_together() {
        let two = "disturb-fifo-300us,disturb-syscall-1ms";
        for (loads, log, want) in [
            ("disturb-fifo-300us,find", Some("f"), None),
            ("find,cpu", Some("f"), None),
            (two, None, None),
            (two, Some("f"), Some(("disturb-fifo-300us", "disturb-syscall-1ms"))),
        ] {
            let got = check_log(&parse_list(loads).unwrap(), log.map(Path::new));
            let got = got.err().map(|e| match e {
                LoadError::OneLog { first, second } => (first, second),
                other => panic!("{other}"),
            });
            let want = want.map(|(first, second)| (first.to_owned(), second.to_owned()));
            assert_eq!(got, want, "{loads} {log:?}");
        }
    }
}
