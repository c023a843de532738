//! Kernels that are built from revisions of a git repository, for a bisection.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wakescope_lab::cache::Cache;
use wakescope_report::style::clean;
use wakescope_sys::input::open_input;

use super::{failure_of_cache, shown};
use crate::{Failure, output};

/// What `git bisect run` takes for "this one cannot be tested", and so do we.
const SKIP: i32 = 125;

/// The largest image of a kernel that is taken, bytes.
const LARGEST: u64 = 512 << 20;

/// A longer list is surely not the one that was meant.
const MOST: usize = 1_000_000;

/// The arguments that say how kernels are built.
#[derive(clap::Args)]
pub(super) struct Building {
    /// Git repository: bisect its revisions instead of a list of kernels
    #[arg(long, value_name = "DIR", requires_all = ["good", "bad", "build", "image"], conflicts_with = "kernel")]
    repo: Option<PathBuf>,

    /// A revision that keeps the limit
    #[arg(long, value_name = "REVISION", requires = "repo", allow_hyphen_values = false)]
    good: Option<String>,

    /// A later revision that exceeds the limit
    #[arg(long, value_name = "REVISION", requires = "repo", allow_hyphen_values = false)]
    bad: Option<String>,

    /// Shell command that checks out and builds $REVISION, run in the repository. If it fails or
    /// exits with 125, the revision is skipped
    #[arg(long, value_name = "COMMAND", requires = "repo")]
    build: Option<String>,

    /// Path of the built kernel image, relative to the repository
    #[arg(long, value_name = "FILE", requires = "repo")]
    image: Option<PathBuf>,
}

/// What to boot for a candidate.
pub(super) enum Built {
    /// The kernel of that name.
    Named,
    /// This image.
    Image(PathBuf),
    /// Nothing, for this reason.
    No(String),
}

impl Building {
    /// The revisions from the good to the bad one, in order, if they are what is to be bisected.
    pub(super) fn revisions(&self) -> Result<Option<Vec<String>>, Failure> {
        let (Some(repo), Some(good), Some(bad)) = (&self.repo, &self.good, &self.bad) else {
            return Ok(None);
        };
        let first = git(repo, &["rev-parse", "--verify", "--end-of-options", &commit(good)])?;
        let range = format!("{}..{}", commit(good), commit(bad));
        let rest = git(
            repo,
            &["rev-list", "--reverse", "--first-parent", "--end-of-options", &range, "--"],
        )?;
        let revisions: Vec<String> =
            first.lines().chain(rest.lines()).map(str::to_string).take(MOST).collect();
        if revisions.len() < 2 {
            return Err(Failure::new(format!(
                "there is no first-parent path from {} to {}",
                clean(good, 80),
                clean(bad, 80)
            ))
            .try_this("name a --bad that is a first-parent descendant of --good"));
        }
        Ok(Some(revisions))
    }

    /// Builds `candidate`, if it is a revision. Its image is kept in `cache`, and not built again.
    pub(super) fn build(&self, candidate: &str, cache: &Cache) -> Result<Built, Failure> {
        let (Some(repo), Some(command), Some(image)) = (&self.repo, &self.build, &self.image)
        else {
            return Ok(Built::Named);
        };
        let key = wakescope_lab::sum::of_bytes(
            [command.as_bytes(), b"\0", image.as_os_str().as_encoded_bytes()].concat().as_slice(),
        );
        let kept = cache.built().join(format!("{candidate}-{}", &key[..12]));
        if kept.is_file() {
            return Ok(Built::Image(kept));
        }
        output::tell(&format!("building {}", clean(candidate, 80)));
        let ended = Command::new("sh")
            .arg("-c")
            .arg(command)
            .current_dir(repo)
            .env("REVISION", candidate)
            .stdin(Stdio::null())
            // What a build says is no result.
            .stdout(std::io::stderr())
            .status()
            .map_err(|e| Failure::new(format!("cannot run the build in {}: {e}", shown(repo))))?;
        if !ended.success() {
            return Ok(Built::No(match ended.code() {
                Some(SKIP) => "its build exited with the code for skipping".into(),
                Some(_) => format!("its build failed: {ended}"),
                // Ctrl-C reaches the build, too.
                None => {
                    return Err(Failure::new(format!("the build was interrupted: {ended}"))
                        .try_this("run the same command again to resume"));
                }
            }));
        }
        let mut bytes = Vec::new();
        let left = open_input(&repo.join(image))
            .and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
        let bytes = match left.map(|_| bytes) {
            Ok(bytes) => bytes,
            Err(e) => {
                return Err(Failure::new(format!(
                    "the build of {} produced no kernel: {}: {e}",
                    clean(candidate, 80),
                    shown(&repo.join(image))
                ))
                .try_this(
                    "name its image, relative to the repository: --image arch/x86/boot/bzImage",
                ));
            }
        };
        Cache::write(&kept, &bytes).map_err(|e| failure_of_cache(&e))?;
        Ok(Built::Image(kept))
    }
}

/// A text that can only be a revision of a commit.
fn commit(revision: &str) -> String {
    format!("{revision}^{{commit}}")
}

/// What git prints.
fn git(repo: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repo)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Failure::new(format!("cannot run git: {e}")).try_this("install git"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("git cannot list revisions of {}", shown(repo)))
        .because(clean(said.lines().next().unwrap_or("it gave no reason"), 300))
        .try_this(
            "name a repository and two of its revisions: --repo linux --good v6.11 --bad v6.12",
        ))
}
