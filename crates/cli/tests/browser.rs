//! The page of `wakescope report` in a browser: what no reading of its source can tell.

use std::fs;
use std::process::Command;

use common::bench::{Test, skip};
use common::measured::{RECORD, histogram_of, record};
use common::root;

mod common;

/// Browsers that can be driven.
const BROWSERS: [&str; 4] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success())
}

#[test]
fn pages_work_in_a_browser() {
    let Some(browser) = BROWSERS.into_iter().find(|b| is_there(b)) else {
        skip("pages in a browser", "no chromium is installed (make test-browser does it)");
        return;
    };
    if !is_there("python3") {
        skip("pages in a browser", "python3 is not installed");
        return;
    }
    let test = Test::new("browser");
    let ended = test.measure(&["--samples", "300", "--load", "cpu", "--out", "one"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut run = record(&test.dir.join("one"));
    let samples: Vec<u64> =
        (0..5_000).map(|i: u64| 4_000 + i * i % 7_919).chain([310_000, 4_310_225]).collect();
    run.threads.truncate(1);
    let d = &mut run.threads[0].expiries;
    d.histogram = histogram_of(&samples);
    (d.count, d.min_ns, d.max_ns) = (5_002, samples.iter().min().copied(), Some(4_310_225));
    d.sum_ns = samples.iter().sum();
    let course = &mut run.threads[0].maxima.as_mut().unwrap().max_ns;
    course.iter_mut().flatten().for_each(|ns| *ns = 4_000.max(*ns).min(310_000));
    course[1] = Some(4_310_225);
    run.threads[0].woken = run.threads[0].expiries.clone();
    (run.threads[0].missed, run.worst) = (0, vec![]);
    run.duration_ns = 5_002 * run.plan.interval_ns;
    run.plan.fail_above = vec!["p99=9us".into(), "p99.9=1ms".into(), "max=3ms".into()];
    run.summarize();
    let hostile = "<img src=x onerror=alert(1)>\"'&\u{5d0}\u{5d1}";
    run.host.release = format!("{hostile}{}", "long".repeat(60));
    fs::create_dir(test.dir.join("two")).unwrap();
    fs::write(test.dir.join("two").join(RECORD), run.to_json()).unwrap();
    // Rows of a microsecond are wider than a band below 16 µs, and as wide as some above.
    let rows: String = (5..61).map(|us| format!("{us:06} 000020\n")).collect();
    let rows = format!(
        "# Histogram\n{rows}# Total: 000001120\n# Min Latencies: 00005\n# Avg Latencies: 00032\n\
         # Max Latencies: 00060\n# Histogram Overflows: 00000\n"
    );
    fs::write(test.dir.join("rows.txt"), rows).unwrap();
    for (args, page) in [
        (&["two"][..], "one.html"),
        (&["two", "one", "--title", hostile], "two.html"),
        (&["rows.txt"], "rows.html"),
    ] {
        let args = [&["report"], args, &["-o", page]].concat();
        let ended = test.start_command(&args).output();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let mut script = test.program("python3".as_ref());
    script.arg("-B").arg(root().join("scripts/browse.py")).args([browser, "one.html", "two.html"]);
    let ended = script.args(["two/run.json", "rows.html"]).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{text}");
}
