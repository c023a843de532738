//! The first bad kernel of a list, and of a repository. The kernels are made up, their figures real.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use wakescope_core::lab::Cell;

use crate::common::bench::{Ended, skip};
use crate::common::lab::{Bench, Ran, first_lab};
use crate::common::made_up_kernel::MadeUp;

/// Kernels that send what another guest sent.
struct Figures {
    good: MadeUp,
    bad: MadeUp,
    /// A limit between them.
    limit: String,
}

impl Figures {
    /// Of the first lab: idle is good, find is bad.
    fn of(pool: &Bench, ran: &Ran) -> Self {
        let cell = |load: &str| {
            let is_it = |c: &&Cell| c.asked == "none" && c.load == load && c.seed == 1;
            ran.lab.cells.iter().find(is_it).unwrap()
        };
        let (idle, find) = (cell("idle"), cell("find"));
        assert!(idle.max_ns < find.max_ns, "{}", ran.json);
        let checks = pool.cells().into_iter().filter_map(|c| pool.bits(&c).remove("check.json"));
        let says_none = |text: &String| {
            let check: Value = serde_json::from_str(text).unwrap();
            check["preemption"]["model"] == "none"
        };
        let check = checks.map(|bytes| String::from_utf8(bytes).unwrap()).find(says_none).unwrap();
        let kernel = |cell: &Cell| {
            let run = fs::read_to_string(Path::new(cell.run.as_ref().unwrap()).join("run.json"));
            MadeUp::sends_files(&[("check.json", &check), ("run.json", &run.unwrap())])
        };
        let limit = format!("{}ns", u64::midpoint(idle.max_ns.unwrap(), find.max_ns.unwrap()));
        Self { good: kernel(idle), bad: kernel(find), limit }
    }

    /// The image of the kernel with this number, which is its release, too.
    fn image(&self, number: usize, is_bad: bool) -> Vec<u8> {
        let kernel = if is_bad { &self.bad } else { &self.good };
        MadeUp { release: format!("9.9.{number}"), ..kernel.clone() }.bytes()
    }
}

/// Runs `wakescope lab bisect` for what is common to all kernels here.
fn bisect(bench: &Bench, limit: &str, args: &[&str]) -> Ended {
    let common = ["bisect", "--arch", "amd64", "--preempt", "none", "--load", "idle"];
    let more = ["--seeds", "1", "--samples", "200", "--fail-above", limit];
    bench.lab(&[&common[..], &more, args].concat())
}

#[test]
fn the_first_bad_one_of_a_list_is_found() {
    let name = "the_first_bad_one_of_a_list_is_found";
    let Some((stock, pool, ran)) = first_lab(name) else { return };
    let figures = Figures::of(&pool, ran);
    let bench = Bench::new(stock, "bisected");
    let names: Vec<String> = (0..8).map(|i| format!("./{i}")).collect();
    let find = |first_bad: usize, broken: &[usize], args: &[&str]| {
        for number in 0..names.len() {
            let image = match broken.contains(&number) {
                true => MadeUp::says(format!("Kernel panic - not syncing: {number}\n")).bytes(),
                false => figures.image(number, number >= first_bad),
            };
            fs::write(bench.test.dir.join(number.to_string()), image).unwrap();
        }
        let list = names.join(",");
        bisect(&bench, &figures.limit, &[&["--kernel", &list], args].concat())
    };
    // Each has a configuration of its own, or none has.
    let configs: Vec<String> = (0..names.len()).map(|i| format!("--config=config-{i}")).collect();
    for i in 0..names.len() {
        let text = format!("CONFIG_HZ=250\nCONFIG_LOG_BUF_SHIFT={i}\n");
        fs::write(bench.test.dir.join(format!("config-{i}")), text).unwrap();
    }
    let configs: Vec<&str> = configs.iter().map(String::as_str).collect();
    let ended = find(5, &[], &[&["--json"][..], &configs].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&found["ending"], &found["first_bad"]),
        (&"found".into(), &names[5].clone().into())
    );
    assert_eq!(found["last_good"], names[4], "{found:#}");
    // Both ends, and then halves.
    assert!(found["steps"].as_array().unwrap().len() <= 5, "{found:#}");
    let ended = find(5, &[4], &[]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stdout.contains("One of 2 kernels"), "{}", ended.stdout);
    assert!(ended.stdout.contains("the kernel panicked: not syncing: 4"), "{}", ended.stdout);
    let ended = find(0, &[], &["--json"]);
    assert_eq!(ended.code, Some(1));
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(found["ending"], "first-is-bad", "{found:#}");
    assert_eq!((&found["last_good"], &found["first_bad"]), (&Value::Null, &Value::Null));
    assert_eq!(found["steps"].as_array().unwrap().len(), 1, "{found:#}");
    // What was not measured is not said to be good.
    let ended = find(8, &[], &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let ends = "The first and the last candidate are good; not measured:";
    let want = format!("{ends} {}.\n\n", names[1..7].join(", "));
    assert!(ended.stdout.starts_with(&want), "{ended:?}");
    assert_eq!(find(8, &[7], &[]).code, Some(2));
}

fn git(folder: &Path, args: &[&str]) -> bool {
    let mut command = Command::new("git");
    let identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"];
    command.arg("-C").arg(folder).args(identity).args(args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn the_first_bad_revision_is_found() {
    let name = "the_first_bad_revision_is_found";
    let Some((stock, pool, ran)) = first_lab(name) else { return };
    let figures = Figures::of(&pool, ran);
    let bench = Bench::new(stock, "revisions");
    let repo = bench.test.dir.join("linux");
    fs::create_dir(&repo).unwrap();
    if !git(&repo, &["init", "-q"]) {
        return skip(name, "there is no git");
    }
    for number in 0..6 {
        fs::write(repo.join("source"), figures.image(number, number >= 4)).unwrap();
        let message = format!("change {number}");
        assert!(git(&repo, &["add", "source"]) && git(&repo, &["commit", "-qm", &message]));
        assert!(git(&repo, &["tag", &format!("v{number}")]));
    }
    // What was built last must not be taken for what could not be built: revision 2.
    let build = "git checkout -q $REVISION && ! git tag --points-at | grep -q v2 && \
                 cp source bzImage";
    let place = repo.display().to_string();
    let args = ["--repo", &place, "--good", "v0", "--bad", "v5", "--build", build];
    let ended = bisect(&bench, &figures.limit, &[&args[..], &["--image", "bzImage"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let revision = Command::new("git").arg("-C").arg(&repo).args(["rev-parse", "v4"]).output();
    let revision = String::from_utf8(revision.unwrap().stdout).unwrap();
    let first_line = ended.stdout.lines().next().unwrap();
    let first_bad = first_line.strip_suffix(" is the first kernel that exceeds the limit.");
    assert!(first_bad.is_some_and(|name| name.starts_with(revision.trim())), "{ended:?}");
}
