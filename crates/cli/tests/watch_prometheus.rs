//! A real Prometheus that scrapes `wakescope watch`, and what `contrib/` has for it: `make test-prometheus`.

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::bench::{Running, Test, eventually_some, kill, skip};
use common::exported::{fetch, fetched, listening};
use common::following::can_follow;
use common::{read, root};
use serde_json::Value;
use wakescope_core::histogram::Bucket;
use wakescope_core::percentile::Percentile;
use wakescope_core::watch::{Waits, Window, packed};

mod common;

/// What turns the test on, for it takes ten seconds or more.
const ON: &str = "WAKESCOPE_TEST_PROMETHEUS";

/// A Prometheus of its own, with a folder of its own. It is killed in the end.
struct Prometheus {
    address: SocketAddr,
    _running: Running,
}

impl Prometheus {
    /// Starts it and has it scrape `target` each second.
    fn start(test: &Test, name: &str, target: SocketAddr, args: &[&str]) -> Self {
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: ['{}']\n\
             scrape_configs: [{{job_name: wakescope, static_configs: [{{targets: ['{target}']}}]}}]\n",
            root().join("contrib/wakescope-alerts.yml").display(),
        );
        let file = format!("{name}.yml");
        fs::write(test.dir.join(&file), config).unwrap();
        // Nobody else takes it in the moment in which it is free: ports are given out in turn.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut command = test.program("prometheus".as_ref());
        command.args(args).arg("--log.level=error").arg(format!("--config.file={file}"));
        command.arg(format!("--web.listen-address={address}"));
        command.arg(format!("--storage.tsdb.path={}", test.dir.join(name).display()));
        let running = Running::start(&mut command);
        Self { address, _running: running }
    }

    /// What it answers; `None` if it does not listen yet.
    fn get(&self, path: &str) -> Option<Value> {
        std::net::TcpStream::connect(self.address).ok()?;
        let answer =
            fetched(self.address, format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n").as_bytes());
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let value: Value = serde_json::from_str(body).ok()?;
        Some(value)
    }

    /// The results of a query, now or at a time.
    #[track_caller]
    fn query(&self, query: &str, time: Option<f64>) -> Vec<Value> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let time = time.map_or_else(String::new, |time| format!("&time={time}"));
        let answer = self.get(&format!("query?query={escaped}{time}")).unwrap();
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// The one result of a query, and when it was scraped.
    #[track_caller]
    fn number(&self, query: &str, time: f64) -> f64 {
        let results = self.query(query, Some(time));
        let [result] = results.as_slice() else { panic!("{query}: {results:?}") };
        result["value"][1].as_str().unwrap().parse().unwrap()
    }

    /// What it has at one moment, at which it has scraped more than `seconds` of a watch: how much that was,
    /// the number of waits and their 99.9th percentile, by these queries.
    fn figures(&self, seconds: f64, count: &str, percentile: &str) -> [f64; 3] {
        let watched = "wakescope_watched_seconds_total";
        let at = eventually_some("it has scraped", || {
            self.get("status/buildinfo")?;
            let stamp = format!("timestamp({watched} > {seconds})");
            let results = self.query(&stamp, None);
            results.first()?["value"][1].as_str()?.parse::<f64>().ok()
        });
        [watched, count, percentile].map(|query| self.number(query, at))
    }
}

/// Tasks that wait for each other's CPU.
struct Spinners(Arc<AtomicBool>, Vec<std::thread::JoinHandle<()>>);

impl Spinners {
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::black_box((0..1_000_000).sum::<u64>());
                }
            })
        };
        let threads = (0..4).map(spin).collect();
        Self(is_over, threads)
    }

    fn end(self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// The waits of all CPUs in the first so many seconds.
fn waits_until(lines: &str, seconds: f64) -> Waits {
    let (mut all, mut ns) = (Waits::default(), 0);
    for line in lines.lines() {
        let window: Window = packed::read(line.as_bytes()).unwrap();
        ns += window.window_ns;
        if ns as f64 / 1e9 > seconds + 1e-9 {
            break;
        }
        all = window.cpus.iter().fold(all, |sum, cpu| sum.merged(&cpu.waits));
    }
    all
}

fn names_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("wakescope_")).map(str::to_owned).collect()
}

/// All queries of the dashboard, as Grafana would ask them.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("contrib/wakescope-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let query = |target: &Value| {
        let query = target["expr"].as_str().unwrap();
        let query = query.replace("$__rate_interval", "4s").replace("$instance", ".*");
        assert!(!query.contains('$'), "{query}");
        query
    };
    targets.map(query).collect()
}

#[track_caller]
fn promtool(args: &[&str], input: Option<&Path>) {
    let mut command = Command::new("promtool");
    command.args(args);
    if let Some(input) = input {
        command.stdin(fs::File::open(input).unwrap());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "promtool {args:?}: {output:?}");
}

#[test]
fn prometheus_has_the_figures_that_the_windows_have() {
    const NAME: &str = "prometheus_has_the_figures_that_the_windows_have";
    if std::env::var_os(ON).is_none() {
        return skip(NAME, "it takes long, and a Prometheus (make test-prometheus)");
    }
    if !can_follow(NAME) {
        return;
    }
    let test = Test::new("watch-prometheus");
    let watch = ["watch", "--listen", "127.0.0.1:0", "--json", "--interval", "500ms"];
    let mut running = test.start_command(&[&watch[..], &["--audit"]].concat());
    let target = listening(&mut running);
    let spinners = Spinners::start();
    let classic = Prometheus::start(&test, "classic", target, &[]);
    let native =
        Prometheus::start(&test, "native", target, &["--enable-feature=native-histograms"]);

    let count = "sum(wakescope_cpu_wait_seconds_count)";
    let percentile = "histogram_quantile(0.999, sum by (le) (wakescope_cpu_wait_seconds_bucket))";
    let of_classic = classic.figures(8.0, count, percentile);
    let count = "histogram_count(sum(wakescope_cpu_wait_seconds))";
    let percentile = "histogram_quantile(0.999, sum(wakescope_cpu_wait_seconds))";
    let of_native = native.figures(8.0, count, percentile);

    for query in queries() {
        assert!(!classic.query(&query, None).is_empty(), "{query}");
    }
    let rules = eventually_some("the rules were tried", || {
        let rules = classic.get("rules").unwrap()["data"]["groups"][0]["rules"].take();
        let is_tried = |rule: &Value| rule["health"] != "unknown";
        rules.as_array().unwrap().iter().all(is_tried).then_some(rules)
    });
    assert!(rules.as_array().unwrap().iter().all(|rule| rule["health"] == "ok"), "{rules}");

    let page = fetch(target, "text/plain");
    fs::write(test.dir.join("page"), &page).unwrap();
    promtool(&["check", "metrics"], Some(&test.dir.join("page")));
    let rules = root().join("contrib/wakescope-alerts.yml");
    promtool(&["check", "rules", rules.to_str().unwrap()], None);
    let there = names_in(&page);
    let asked = names_in(&(read("contrib/wakescope-alerts.yml") + &queries().join(" ")));
    assert!(asked.is_subset(&there), "{:?}", asked.difference(&there));

    kill("INT", &[running.pid()]);
    let ended = running.output();
    spinners.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let p999: Percentile = "p99.9".parse().unwrap();
    let check = |[watched, count, got]: [f64; 3], within: &dyn Fn(Bucket) -> (f64, f64)| {
        let waits = waits_until(&ended.stdout, watched);
        assert_eq!(count, waits.count as f64);
        let bucket = waits.histogram.bucket_of_percentile(p999).unwrap();
        let (least, most) = within(bucket);
        assert!(least <= got && got <= most, "{got} of {least} to {most}: {bucket:?}");
    };
    // In the same octave, of those of one microsecond and more.
    check(of_classic, &|Bucket { lower, .. }| {
        let octave = 1_u64 << lower.max(1).ilog2();
        (
            if octave < 1_024 { 0.0 } else { (octave - 1) as f64 / 1e9 },
            (2 * octave.max(512)) as f64 / 1e9,
        )
    });
    // As near as HELP says.
    check(of_native, &|Bucket { lower, upper, .. }| {
        ((upper - 1) as f64 / 1e9 / 1.0443, lower as f64 / 1e9 * 1.109)
    });
}
