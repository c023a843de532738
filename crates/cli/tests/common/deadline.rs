//! Commands whose probes the kernel may have no room for, because other tests reserve CPU time, too.

use wakescope_core::run::Run;

use crate::common::bench::{Test, eventually_some};
use crate::common::measured::record;

/// Runs wakescope with `args` until the kernel admits its probes, and to a good end: the record, and
/// what was printed.
#[track_caller]
pub(crate) fn admitted(test: &Test, args: &[&str]) -> (Run, String) {
    eventually_some("no other measurement has reserved the CPUs", || {
        let ended = test.start_command(&[args, &["--out", "run"]].concat()).output();
        let is_taken = ended.stderr.contains("reserved the CPU time");
        assert!(ended.code == Some(0) || is_taken, "{ended:?}");
        (!is_taken).then(|| (record(&test.dir.join("run")), ended.stdout))
    })
}
