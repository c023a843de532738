//! Guests that are booted without the lab, by the recipes of its cells, as the benchmark does.

use std::fs;

use serde_json::Value;

use crate::common::lab::first_lab;
use crate::common::root;

const BOOTED: &str = "
import subprocess, sys
from pathlib import Path
sys.path.insert(0, 'benches')
import guests
cache, cell, folder = sys.argv[1:]
command = guests.command_of_cell(cache, cell, Path(folder, 'order'))
subprocess.run(guests.into(command, folder), env={}, check=True, timeout=300)
sys.stdout.buffer.write(guests.unpacked(Path(folder, 'results').read_bytes())['run.json'])
";

/// Benchmarks, and the score of a stopped CPU, boot guests by themselves. If these had other results than cells,
/// they would compare what is not the same.
#[test]
fn a_guest_that_is_booted_by_a_cells_recipe_gives_its_result() {
    let name = "a_guest_that_is_booted_by_a_cells_recipe_gives_its_result";
    let Some((_, pool, _)) = first_lab(name) else { return };
    let cell = pool.cache.join("cells").join(&pool.measurements()[0]);
    let mut python = pool.test.program("python3".as_ref());
    python.args(["-B", "-c", BOOTED]).args([&pool.cache, &cell]).arg(&*pool.test.dir);
    let ended = python.current_dir(root()).env_remove("WAKESCOPE_QEMU").output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    // The lab gives a run its name.
    let without_id = |bytes: &[u8]| {
        let mut run: Value = serde_json::from_slice(bytes).unwrap();
        run.as_object_mut().unwrap().remove("id");
        run
    };
    let (by_hand, by_lab) = (without_id(&ended.stdout), fs::read(cell.join("run.json")).unwrap());
    assert_eq!(by_hand, without_id(&by_lab));
}
