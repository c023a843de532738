//! Kernels that are built from revisions of a git repository, for a bisection.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wakescope_core::units::SpanNs;
use wakescope_lab::cache::Cache;
use wakescope_lab::sum;
use wakescope_report::style::clean;
use wakescope_sys::clock;
use wakescope_sys::input::open_input;
use wakescope_sys::process::{Apart, Child, Environment, Exit, Program, Start};
use wakescope_sys::signal::EndSignals;

use super::{failure_of_cache, shown};
use crate::input::read_file;
use crate::{Failure, output};

/// What `git bisect run` takes for "this one cannot be tested", and so do we.
const SKIP: i32 = 125;

/// The largest image of a kernel that is taken, bytes.
const LARGEST: u64 = 512 << 20;

/// How often a build is looked at; how long it has in any case, and may take, to end once it is asked to.
const LOOK: SpanNs = SpanNs(50_000_000);
const GRACE: SpanNs = SpanNs(1_000_000_000);
const PATIENCE: SpanNs = SpanNs(10_000_000_000);

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

    /// Builds `candidate`, if it is a revision. Its image is kept in `cache`, and not built again with the same
    /// configuration. A signal ends the build.
    pub(super) fn build(
        &self,
        candidate: &str,
        cache: &Cache,
        signals: &EndSignals,
    ) -> Result<Built, Failure> {
        let (Some(repo), Some(command), Some(image)) = (&self.repo, &self.build, &self.image)
        else {
            return Ok(Built::Named);
        };
        let recipe = || recipe(repo, command, image);
        let began_with = origin(cache, recipe()?);
        let kept = cache.built().join(format!("{candidate}-{began_with}"));
        if kept.is_file() {
            output::tell(&format!("built before, and kept: {}", shown(&kept)));
            return Ok(Built::Image(kept));
        }
        output::tell(&format!("building {}", clean(candidate, 80)));
        let ended = run_build(repo, command, candidate, signals)
            .map_err(|e| Failure::new(format!("cannot run the build in {}: {e}", shown(repo))))?;
        note_origin(cache, &recipe()?, &began_with)?;
        let interrupted = |why: &str| {
            Failure::new(format!("the build was interrupted{why}"))
                .try_this("run the same command again to resume")
        };
        let ended = ended.ok_or_else(|| interrupted(""))?;
        match ended {
            Exit::Status(0) => {}
            Exit::Status(SKIP) => {
                return Ok(Built::No("its build exited with the code for skipping".into()));
            }
            Exit::Status(_) => return Ok(Built::No(format!("its build failed: {ended}"))),
            Exit::Signal(_) | Exit::Unknown => return Err(interrupted(&format!(": {ended}"))),
        }
        let bytes = match read_image(&repo.join(image)) {
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
        cache.write(&kept, &bytes).map_err(|e| failure_of_cache(&e))?;
        Ok(Built::Image(kept))
    }
}

/// Builds a revision, in a group of its own: so a signal ends all of it. How it ended; `None` if a signal came.
fn run_build(
    repo: &Path,
    command: &str,
    revision: &str,
    signals: &EndSignals,
) -> io::Result<Option<Exit>> {
    // What a build says is no result.
    let (nothing, said) = (File::open("/dev/null")?, io::stderr());
    // The whole path: a relative one would be looked for in CDPATH first.
    let repo = fs::canonicalize(repo)?;
    let in_repo = "cd -- \"$1\" && export REVISION=\"$2\" && exec sh -c \"$3\"";
    let args = ["-c", in_repo, "sh"].map(OsStr::new);
    let args = args.into_iter().chain([repo.as_os_str(), revision.as_ref(), command.as_ref()]);
    let start = Start {
        program: &Program::new(Path::new("/bin/sh"), args)?,
        stdio: [nothing.as_fd(), said.as_fd(), said.as_fd()],
        apart: Apart::Session,
        dies_with_thread: false,
        environment: Environment::Inherited,
    };
    let mut build = start.run()?;
    let ended = loop {
        if let Some(ended) = build.try_wait() {
            break ended;
        }
        if signals.wait(LOOK).is_some() {
            end(build, signals);
            return Ok(None);
        }
    };
    // One that came last may be why the build failed.
    Ok(signals.wait(SpanNs(0)).is_none().then_some(ended))
}

/// Ends a build with all that it started. make has time to remove what is half built, unless a second signal comes.
fn end(mut build: Child, signals: &EndSignals) {
    build.terminate();
    let mut is_hurried = signals.wait(GRACE).is_some();
    let until = clock::now().after(PATIENCE);
    while build.try_wait().is_none() {
        if is_hurried || clock::now() >= until {
            build.kill();
            build.wait();
            return;
        }
        is_hurried = signals.wait(LOOK).is_some();
    }
}

fn read_image(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_input(path)?;
    read_file(&file, file.metadata()?.len(), LARGEST)
}

/// What kernels of revisions are built with, as a checksum: the command, the name of the image and the repository's
/// configuration, if it has one.
fn recipe(repo: &Path, command: &str, image: &Path) -> Result<String, Failure> {
    let path = repo.join(".config");
    let config = match sum::of_file(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|e| Failure::new(format!("cannot read {}: {e}", shown(&path))))?,
    };
    let image = image.as_os_str().as_encoded_bytes();
    let parts = [command.as_bytes(), image, config.as_bytes()].join(&0);
    Ok(sum::of_bytes(&parts)[..12].into())
}

/// Where it is noted which recipe a bisection began with, before its builds made this one of it.
fn place_of_origin(cache: &Cache, recipe: &str) -> PathBuf {
    cache.built().join(format!("origin-{recipe}"))
}

/// The recipe that a bisection began with. A build may change the configuration, as `make olddefconfig` does for each
/// revision; images that were built before that are still those of the same bisection.
fn origin(cache: &Cache, recipe: String) -> String {
    fs::read_to_string(place_of_origin(cache, &recipe)).unwrap_or(recipe)
}

fn note_origin(cache: &Cache, recipe: &str, origin: &str) -> Result<(), Failure> {
    if recipe == origin {
        return Ok(());
    }
    cache
        .write(&place_of_origin(cache, recipe), origin.as_bytes())
        .map_err(|e| failure_of_cache(&e))
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

#[cfg(test)]
mod tests {
    use wakescope_testing::Folder;

    use super::*;

    /// A repository whose builds change its configuration and log what they build.
    struct Repository {
        folder: Folder,
        building: Building,
        cache: Cache,
    }

    impl Repository {
        fn new(build: &str) -> Self {
            let folder = Folder::new("building");
            let repo = folder.join("linux");
            fs::create_dir(&repo).unwrap();
            let building = Building {
                repo: Some(repo),
                good: None,
                bad: None,
                build: Some(build.into()),
                image: Some("bzImage".into()),
            };
            let cache = Cache::at(folder.join("cache"));
            Self { folder, building, cache }
        }

        fn configure(&self, text: &str) {
            fs::write(self.folder.join("linux/.config"), text).unwrap();
        }

        /// The configuration with which the image of `revision` was built, which says so.
        fn config_of(&self, revision: &str) -> String {
            let signals = EndSignals::block().unwrap();
            match self.building.build(revision, &self.cache, &signals).unwrap() {
                Built::Image(path) => fs::read_to_string(path).unwrap(),
                _ => panic!("no image of {revision}"),
            }
        }

        fn builds(&self) -> usize {
            fs::read_to_string(self.folder.join("linux/log")).unwrap().lines().count()
        }
    }

    #[test]
    fn kernels_are_built_once_for_each_configuration() {
        let repository = Repository::new(
            "cp .config bzImage && echo of $REVISION >> .config && echo built >> log",
        );
        repository.configure("a\n");
        assert_eq!(repository.config_of("r1"), "a\n");
        assert_eq!(repository.config_of("r2"), "a\nof r1\n");
        // The bisection begins again, with what the last build made of the configuration.
        assert_eq!(repository.config_of("r1"), "a\n");
        assert_eq!(repository.config_of("r2"), "a\nof r1\n");
        assert_eq!(repository.builds(), 2);
        repository.configure("b\n");
        assert_eq!(repository.config_of("r1"), "b\n");
        repository.configure("a\n");
        assert_eq!(repository.config_of("r1"), "a\n");
        assert_eq!(repository.builds(), 3);
    }

    #[test]
    fn half_an_image_is_not_taken() {
        let repository = Repository::new("truncate -s 513M bzImage");
        let signals = EndSignals::block().unwrap();
        let refused = repository.building.build("r1", &repository.cache, &signals).err().unwrap();
        let refused = refused.to_string();
        assert!(refused.contains("it is larger than 512 MiB"), "{refused}");
        assert!(!repository.cache.built().exists());
    }
}
