//! Full disks.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use wakescope_core::run::{Run, State};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;

use crate::common::bench::{Disk, Ended, Running, Test, eventually, kill};
use crate::common::measured::{
    RECORD, assert_found, assert_not_found, await_samples_in, names, record,
};

/// A small disk below the test's directory; `None`, and so said for `name`, if there can be none.
fn small_disk(test: &Test, size: &str, name: &str) -> Option<(PathBuf, Disk)> {
    let place = test.dir.join("disk");
    fs::create_dir(&place).unwrap();
    let disk = Disk::mount(&place, size, name)?;
    Some((place, disk))
}

#[test]
fn help_that_could_not_be_written_is_no_success() {
    let test = Test::new("full-help");
    for args in [&["--help"][..], &["--version"], &["measure", "--help"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = test.command(args).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains("No space left on device"), "{args:?}: {told}");
    }
}

#[test]
fn what_is_saved_and_could_not_be_printed_is_named() {
    let test = Test::new("full-output");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let series = ["--stimulus", "pipe", "--between", "both"];
    for (out, more, saved) in
        [("cl", &[][..], "the run is saved"), ("both", &series, "the runs are saved")]
    {
        let args =
            [&["measure", "--samples", "20", "--warmup", "1ms", "--out", out], more].concat();
        let ended = test.command(&args).stdout(full()).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{told}");
        let want = format!("\n  {saved}\n  → show it: wakescope report {out}\n");
        assert!(told.ends_with(&want), "{told}");
        assert!(!told.contains("run the command again"), "{told}");
        assert_eq!(test.ended(&["report", out]).code, Some(0));
    }
}

#[test]
fn a_series_for_which_there_is_no_room_is_no_success() {
    let test = Test::new("full-series");
    let name = "a_series_for_which_there_is_no_room_is_no_success";
    let Some((place, _disk)) = small_disk(&test, "size=64k", name) else { return };
    for (limit, code) in [("1h", 2), ("1ns", 1)] {
        let out = place.join(limit).display().to_string();
        let args = ["--stimulus", "all", "--samples", "20", "--fail-above", limit, "--out", &out];
        let ended = test.measure(&args);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
        assert!(ended.stdout.contains("not every run of the series was measured"), "{ended:?}");
        fs::remove_dir_all(place.join(limit)).unwrap();
    }
}

/// Takes all the room that there is.
fn fill(filler: &mut File) {
    while filler.write_all(&[1; 4096]).is_ok() {}
    while filler.write_all(&[1]).is_ok() {}
}

fn filler(disk: &Path) -> File {
    File::options().append(true).create(true).open(disk.join("filler")).unwrap()
}

#[test]
fn a_disk_full_at_the_start_is_refused_and_nothing_stays() {
    let test = Test::new("full-start");
    let Some((place, _disk)) = small_disk(&test, "size=64k", "a_disk_full_at_the_start") else {
        return;
    };
    fill(&mut filler(&place));
    for args in [&[][..], &["--out", "a/b"], &["--save-samples"]] {
        let mut command = test.command(&[&["measure"], args].concat());
        let ended = Running::start(command.current_dir(&place)).output();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
        assert!(ended.stderr.contains("--out"), "{}", ended.stderr);
        assert_eq!(names(&place), ["filler"]);
    }
}

/// Runs a measurement on a disk of `size` that others fill, again and again, once the record has samples. How
/// it ended, and its record; `None`, and so said for `name`, if there can be no such disk.
fn on_a_disk_that_fills_up(size: &str, name: &str) -> Option<(Ended, Run)> {
    let test = Test::new("full-later");
    let (place, _disk) = small_disk(&test, size, name)?;
    let folder = place.join("run");
    let args = ["--duration", "2s", "--out", &folder.display().to_string()];
    let mut running = test.start_measure(&args);
    await_samples_in(&folder);
    let mut filler = filler(&place);
    eventually("it is over", || {
        fill(&mut filler);
        // Readable at every moment, or this fails.
        let at_this_moment = fs::read(folder.join(RECORD)).unwrap();
        assert!(!Run::from_json(&at_this_moment).unwrap().threads.is_empty());
        running.has_ended()
    });
    let ended = running.output();
    assert!(ended.stdout.starts_with("Worst wakeup "), "{ended:?}");
    assert_eq!(names(&folder), [RECORD]);
    Some((ended, record(&folder)))
}

fn assert_saved(ended: &Ended, run: &Run) {
    assert_eq!((ended.code, run.state), (Some(0), State::Complete), "{ended:?}");
    assert_not_found(run, "unfinished");
    assert_not_found(run, "not-saved");
    assert!(ended.stdout.contains(" run: "), "{}", ended.stdout);
}

#[test]
fn a_disk_that_fills_up_takes_nothing_of_the_record() {
    let name = "a_disk_that_fills_up_takes_nothing_of_the_record";
    let Some((ended, run)) = on_a_disk_that_fills_up("size=2m", name) else { return };
    assert_saved(&ended, &run);
}

/// There is no room to be kept from the start. Then the end fits only if the room that the spare file gives
/// free is not taken by others before.
#[test]
fn a_disk_that_is_nearly_full_and_fills_up_loses_no_more_than_the_end() {
    let name = "a_disk_that_is_nearly_full_and_fills_up_loses_no_more_than_the_end";
    let Some((ended, run)) = on_a_disk_that_fills_up("size=192k", name) else { return };
    if ended.code == Some(0) {
        assert_saved(&ended, &run);
        return;
    }
    assert_eq!((ended.code, run.state), (Some(2), State::Running), "{ended:?}");
    assert_found(&run, "unfinished");
    assert!(ended.stderr.contains("No space left on device"), "{}", ended.stderr);
    let stored = SpanNs(run.duration_ns);
    let told = format!("the record in the folder has the first {stored} of the run");
    assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    assert!(!ended.stdout.contains(" run: "), "{}", ended.stdout);
}

#[test]
fn a_run_whose_folder_was_removed_says_so() {
    let test = Test::new("removed-folder");
    let folder = test.dir.join("run");
    let running = test.start_measure(&["--duration", "1h", "--out", &folder.display().to_string()]);
    await_samples_in(&folder);
    // A version of the record may come into it meanwhile.
    eventually("it is removed", || fs::remove_dir_all(&folder).is_ok());
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for words in ["No such file or directory", "was removed while it was measured", "--out"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("room") && !folder.exists(), "{}", ended.stderr);
}

#[test]
fn a_disk_that_has_room_again_at_the_end_is_as_good_as_any() {
    const PATIENCE: SpanNs = SpanNs(5_000_000_000);
    let test = Test::new("full-between");
    let name = "a_disk_that_has_room_again_at_the_end";
    let Some((place, _disk)) = small_disk(&test, "size=512k", name) else { return };
    let folder = place.join("run");
    let running = test.start_measure(&["--duration", "1h", "--out", &folder.display().to_string()]);
    await_samples_in(&folder);
    let mut filler = filler(&place);
    fill(&mut filler);
    let filled = clock::now();
    // A version that does not grow needs no room. In most runs one soon does.
    eventually("a version found no room", || {
        let run = record(&folder);
        let written = MonoNs(run.origin_ns + run.duration_ns);
        let now = clock::now();
        now.since(written) > SpanNs(2_500_000_000) || now.since(filled) > PATIENCE
    });
    filler.set_len(0).unwrap();
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run = record(&folder);
    assert_eq!(run.state, State::Interrupted);
    assert_not_found(&run, "not-saved");
}

#[test]
fn samples_are_refused_where_they_would_take_the_room_of_the_record() {
    let test = Test::new("small-samples");
    let name = "samples_are_refused_where_they_would_take_the_room_of_the_record";
    let Some((place, _disk)) = small_disk(&test, "size=300k", name) else { return };
    let folder = place.join("run");
    let out = folder.display().to_string();
    let args = ["--interval", "50us", "--duration", "2s", "--save-samples", "--out", &out];
    let ended = test.start_measure(&args).output();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    for words in ["kB are free", "--out", "without --save-samples"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    assert!(names(&place).is_empty());
}

#[test]
fn samples_that_fill_the_disk_do_not_take_the_record_with_them() {
    let test = Test::new("full-samples");
    let name = "samples_that_fill_the_disk";
    let Some((place, _disk)) = small_disk(&test, "size=4m", name) else { return };
    let folder = place.join("run");
    let out = folder.display().to_string();
    let args = ["--interval", "50us", "--duration", "1h", "--save-samples", "--out", &out];
    let running = test.start_measure(&args);
    await_samples_in(&folder);
    let written = || fs::metadata(folder.join("samples.csv")).unwrap().len();
    let mut last = (record(&folder).duration_ns, written());
    // A second's samples are many blocks of the file.
    eventually("no more is written", || {
        let now = (record(&folder).duration_ns, written());
        if now.0 < last.0 + 1_000_000_000 {
            return false;
        }
        now.1 == std::mem::replace(&mut last, now).1
    });
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert!(ended.stdout.contains(" not-saved "), "{ended:?}");
    assert_eq!(names(&folder), [RECORD, "samples.csv"]);
    let run = record(&folder);
    assert_eq!((ended.code, run.state), (Some(0), State::Interrupted), "{ended:?}");
    let finding = assert_found(&run, "not-saved");
    assert!(finding.message.contains("samples.csv"), "{finding:?}");
}

#[test]
fn a_log_of_disturbances_for_which_there_is_no_room_is_missed() {
    let test = Test::new("full-log");
    let name = "a_log_of_disturbances_for_which_there_is_no_room_is_missed";
    let Some((place, _disk)) = small_disk(&test, "size=64k", name) else { return };
    let log = place.join("log");
    let folder = test.dir.join("run");
    let out = folder.display().to_string();
    let start =
        |args: &[&str]| Running::start(test.command(args).env("WAKESCOPE_DISTURBANCES", &log));
    let measuring = start(&["measure", "--load", LOGGED, "--duration", "1h", "--out", &out]);
    await_samples_in(&folder);
    fill(&mut filler(&place));
    kill("INT", &[measuring.pid()]);
    let ended = measuring.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains(" not-saved "), "{ended:?}");
    let run = record(&folder);
    let finding = assert_found(&run, "not-saved");
    for words in [LOGGED, &log.display().to_string(), "No space left on device"] {
        assert!(finding.message.contains(words), "{finding:?}");
    }
    // The file is there, and has no room to grow.
    let ended = start(&["load", LOGGED, "--duration", "300ms"]).output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stdout.contains(LOGGED), "{ended:?}");
    for words in ["could not be saved", "No space left on device", "WAKESCOPE_DISTURBANCES"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn a_load_without_room_for_its_files_names_the_directory_and_where_that_was_named() {
    let test = Test::new("full-loads");
    let name = "a_load_without_room_for_its_files_names_the_directory_and_where_that_was_named";
    let Some((place, _disk)) = small_disk(&test, "size=64k", name) else { return };
    fill(&mut filler(&place));
    let want = format!("{} (TMPDIR) has space for ", place.display());
    for load in ["find", "file-move", "fifos-mmap", "fs", "sync", "truncate"] {
        let args = ["load", load, "--duration", "1ms"];
        let ended = Running::start(test.command(&args).env("TMPDIR", &place)).output();
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(&want), "{}", ended.stderr);
        assert_eq!(names(&place), ["filler"], "{load}");
    }
}

/// A load with a log that everybody may run.
const LOGGED: &str = "disturb-syscall-100us";

#[test]
fn a_report_for_which_there_is_no_room_leaves_no_file_and_an_older_one_as_it_was() {
    let test = Test::new("full-report");
    let name = "a_report_for_which_there_is_no_room";
    let Some((place, _disk)) = small_disk(&test, "size=64k", name) else { return };
    assert_eq!(test.measure(&["--samples", "20", "--out", "run"]).code, Some(0));
    fs::write(place.join("old.html"), "older").unwrap();
    let mut filler = filler(&place);
    fill(&mut filler);
    let full = filler.metadata().unwrap().len();
    // A page that is left is less than a report needs, which only its end shows.
    let cases = ["new.html", "old.html", "new.html.gz"].map(|file| [(file, 0), (file, 4096)]);
    for (file, left) in cases.into_iter().flatten() {
        filler.set_len(full - left).unwrap();
        let file = place.join(file).display().to_string();
        let ended = test.start_command(&["report", "run", "-o", &file]).output();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        for word in ["No space left on device", "make room"] {
            assert!(ended.stderr.contains(word), "{}", ended.stderr);
        }
        assert_eq!(names(&place), ["filler", "old.html"]);
    }
    assert_eq!(fs::read_to_string(place.join("old.html")).unwrap(), "older");
}
