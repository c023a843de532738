//! What a lab says about itself.

use std::fs;
use std::path::Path;

use serde_json::Value;
use wakescope_core::lab::Status;
use wakescope_core::preemption::Model;
use wakescope_core::run::{Run, TimeDomain};

use crate::common::lab::{Bench, FIRST, KERNEL, first_lab};
use crate::common::{Checker, assert_valid_run, read};

#[test]
fn the_record_of_a_lab_fits_its_schema() {
    let Some((_, _, ran)) = first_lab("the_record_of_a_lab_fits_its_schema") else { return };
    let schema = serde_json::from_str(&read("docs/reference/lab.schema.json")).unwrap();
    let value: Value = serde_json::from_str(&ran.json).unwrap();
    assert_eq!(Checker::closed(schema).fault(&value), None, "{}", ran.json);
    // none and full, idle and find, two seeds; and lazy, which is not run.
    assert_eq!(ran.lab.cells.len(), 12);
    let ok: Vec<_> = ran.lab.cells.iter().filter(|c| c.status == Status::Ok).collect();
    assert_eq!(ok.len(), 8, "{}", ran.json);
    for cell in ok {
        assert!(cell.count >= 200 && cell.max_ns >= cell.p50_ns, "{cell:?}");
        assert!(cell.min_ns > Some(0) && cell.min_ns <= cell.p50_ns, "{cell:?}");
        assert_eq!(cell.model.map(|model| model.to_string()), Some(cell.asked.clone()));
        assert_eq!(cell.throughput.is_some_and(|t| t > 0.0), cell.load == "find", "{cell:?}");
    }
    let sums: std::collections::BTreeSet<_> =
        ran.lab.cells.iter().filter_map(|cell| cell.histogram_sha256.clone()).collect();
    assert!(sums.len() > 4, "seeds, models and loads hardly differ: {}", ran.json);
}

#[test]
fn a_model_that_the_kernel_does_not_know_is_found_out() {
    let name = "a_model_that_the_kernel_does_not_know_is_found_out";
    let Some((_, pool, ran)) = first_lab(name) else { return };
    let lazy: Vec<_> = ran.lab.cells.iter().filter(|cell| cell.asked == "lazy").collect();
    assert_eq!(lazy.len(), 4);
    for cell in lazy {
        assert_eq!((cell.status, cell.max_ns), (Status::Ignored, None), "{cell:?}");
        assert_eq!(cell.model, Some(Model::Voluntary), "{cell:?}");
        assert!(cell.reason.contains("asked for lazy, the kernel runs voluntary"), "{cell:?}");
    }
    let args = [&["run", "--arch", "amd64"][..], &FIRST].concat();
    let shown = pool.lab(&args);
    assert_eq!(shown.code, ran.code, "{shown:?}");
    assert!(shown.stdout.contains("the kernel runs voluntary"), "{}", shown.stdout);
    assert!(shown.stdout.contains("virtual µs"), "{}", shown.stdout);
}

#[test]
fn the_record_of_a_cell_knows_nothing_of_the_host() {
    let name = "the_record_of_a_cell_knows_nothing_of_the_host";
    let Some((_, pool, ran)) = first_lab(name) else { return };
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let places = [pool.cache.display().to_string(), pool.test.dir.display().to_string()];
    let (mut records, keys) = (0, ran.keys());
    for key in &keys {
        let text = fs::read_to_string(pool.cache.join("cells").join(key).join("run.json")).unwrap();
        assert_valid_run(&text);
        let run = Run::from_json(text.as_bytes()).unwrap();
        assert_eq!(run.time_domain, TimeDomain::Virtual);
        assert!(run.started.starts_with("2002-03-01T00:00"), "{}", run.started);
        assert!(!text.contains(&format!("\"{}\"", host.trim())), "{text}");
        assert!(places.iter().all(|place| !text.contains(place)), "{text}");
        records += 1;
    }
    assert_eq!(records, 8);
}

#[test]
fn a_plan_in_a_file_names_the_same_cells() {
    let Some((_, pool, ran)) = first_lab("a_plan_in_a_file_names_the_same_cells") else { return };
    let plan = format!(
        "name = \"mine\"\nkernels = [\"{KERNEL}\"]\npreempt = [\"none\", \"full\", \"lazy\"]\n\
         loads = [\"idle\", \"find\"]\nseeds = 2\nsamples = 200\ncompare = [\"none:full\"]\n"
    );
    let path = pool.test.dir.join("mine.toml");
    fs::write(&path, plan).unwrap();
    let planned = pool.run(&["--plan", path.to_str().unwrap()]);
    assert_eq!(planned.lab.plan, "mine");
    assert_eq!(planned.result().cells, ran.result().cells);
    assert!(planned.lab.cells.iter().all(|cell| cell.cached || cell.status != Status::Ok));
    // Two seeds prove nothing.
    assert_eq!((planned.code, planned.lab.comparisons.len()), (Some(3), 2), "{}", planned.json);
}

#[test]
fn verify_runs_kept_cells_again_and_sees_a_changed_bit() {
    let name = "verify_runs_kept_cells_again_and_sees_a_changed_bit";
    let Some((stock, pool, ran)) = first_lab(name) else { return };
    let bench = Bench::new(stock, "verify");
    let meta = |key: &str| fs::read(pool.cache.join("cells").join(key).join("meta.json")).unwrap();
    let went_on =
        |key: &&String| serde_json::from_slice::<Value>(&meta(key)).unwrap()["state"].is_string();
    let keys = ran.keys();
    // What verifies a cell boots, so one that went on from a saved machine proves more. On a busy host there may
    // be none.
    let key = keys.iter().find(went_on).unwrap_or(&keys[0]);
    let folder = bench.cache.join("cells").join(key);
    copy(&pool.cache.join("cells").join(key), &folder);
    fs::create_dir(bench.cache.join("guests")).unwrap();
    copy(&pool.cache.join("guests"), &bench.cache.join("guests"));
    let verified = bench.lab(&["verify", "--jobs", "1"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(verified.stdout.contains("repeated to the bit"), "{}", verified.stdout);

    // A bit that was wrong already when the cell was kept: the sums know nothing of it.
    let run = folder.join("run.json");
    let text = fs::read_to_string(&run).unwrap();
    let other = text.replacen("\"min_ns\":", "\"min_ns\": ", 1);
    assert_ne!(text, other);
    fs::write(&run, &other).unwrap();
    let damaged = bench.lab(&["verify", "--jobs", "1"]);
    assert_eq!(damaged.code, Some(2), "{damaged:?}");
    let sums = fs::read_to_string(folder.join("sums")).unwrap();
    let sum = wakescope_lab::sum::of_bytes;
    let changed = sums.replace(&sum(text.as_bytes()), &sum(other.as_bytes()));
    assert_ne!(sums, changed);
    fs::write(folder.join("sums"), changed).unwrap();
    let differs = bench.lab(&["verify", "--jobs", "1"]);
    assert_eq!(differs.code, Some(1), "{differs:?}");
    assert!(differs.stdout.contains("run.json"), "{}", differs.stdout);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
