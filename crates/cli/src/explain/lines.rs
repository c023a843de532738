//! Lines of source for the stacks of an explained run, from an image of its kernel and files of its
//! modules.

use std::path::{Path, PathBuf};

use wakescope_core::explain::{Frame, stacks_mut};
use wakescope_core::host::Host;
use wakescope_core::run::Run;
use wakescope_trace::{Image, MappedImage, NoImage, build_id_of_kernel};

use crate::Failure;

mod files;
mod modules;
mod wanted;

/// The begin of each text of a record that says which source lines it lacks.
const SOURCE_LINES: &str = "source lines";

/// The record of a run says this while source lines are looked up. Images have hundreds of megabytes.
pub(super) fn not_looked_up() -> String {
    format!("{SOURCE_LINES} (wakescope ended before it had found them)")
}

/// What a kernel is known by.
struct Kernel {
    build_id: Option<String>,
    release: String,
    version: String,
}

impl Kernel {
    fn running(host: &Host) -> Self {
        let Host { release, version, .. } = host.clone();
        Self { build_id: build_id_of_kernel(), release, version }
    }

    fn of(run: &Run) -> Self {
        let Host { release, version, .. } = run.host.clone();
        let build_id =
            run.explanation.as_ref().and_then(|explanation| explanation.build_id.clone());
        Self { build_id, release, version }
    }

    /// Why `image` is not this kernel's, if it is not.
    fn differs(&self, image: &Image<'_>) -> Option<String> {
        match (image.build_id(), &self.build_id) {
            (Some(own), Some(id)) if own == *id => None,
            (Some(own), Some(id)) => Some(format!("its build ID is {own}, the kernel's is {id}")),
            _ => self.differs_by_banner(image),
        }
    }

    /// The same where one of them has no build id: release and version tell builds apart, too.
    fn differs_by_banner(&self, image: &Image<'_>) -> Option<String> {
        let Some(banner) = image.banner() else {
            return Some("it cannot be checked: the image or the kernel has no build ID".into());
        };
        let same = !self.release.is_empty()
            && banner.starts_with(&format!("Linux version {} ", self.release))
            && banner.ends_with(&self.version);
        (!same)
            .then(|| format!("it is “{banner}”, the kernel is {} {}", self.release, self.version))
    }
}

/// Which image is to be used in the end.
pub(super) enum Chosen {
    /// The one that was named.
    Named(PathBuf),
    /// One that was found; `None` where there is none that fits, with those that do not.
    Found(Option<PathBuf>, Vec<String>),
}

/// Which image there is for the running kernel: the one that is `named`, which must fit, or one at
/// the usual places.
pub(super) fn choose(named: Option<&Path>, host: &Host) -> Result<Chosen, Failure> {
    let kernel = Kernel::running(host);
    if let Some(path) = named {
        let mapped = MappedImage::open(path).map_err(|e| unusable(path, &e))?;
        usable(path, &mapped, &kernel)?;
        return Ok(Chosen::Named(path.into()));
    }
    let mut others = Vec::new();
    for path in usual_places(&kernel) {
        let Ok(mapped) = MappedImage::open(&path) else { continue };
        let Ok(image) = mapped.image() else { continue };
        if image.has_lines().is_err() {
            continue;
        }
        match kernel.differs(&image) {
            None => return Ok(Chosen::Found(Some(path), others)),
            Some(why) => {
                others.push(format!(
                    "{SOURCE_LINES} ({} is another kernel's: {why})",
                    path.display()
                ));
            }
        }
    }
    Ok(Chosen::Found(None, others))
}

/// Where distributions put images with debug information, and builders leave them.
fn usual_places(kernel: &Kernel) -> Vec<PathBuf> {
    let Kernel { release, build_id, .. } = kernel;
    let by_id = build_id.as_ref().and_then(|id| Some((id.get(..2)?, id.get(2..)?)));
    let by_id = by_id.map(|(first, rest)| format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"));
    let by_release = [
        format!("/usr/lib/debug/boot/vmlinux-{release}"),
        format!("/usr/lib/debug/boot/vmlinux-{release}.debug"),
        format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
        format!("/lib/modules/{release}/build/vmlinux"),
        format!("/lib/modules/{release}/vmlinux"),
        format!("/boot/vmlinux-{release}"),
    ];
    by_id.into_iter().chain(by_release).map(PathBuf::from).collect()
}

impl Chosen {
    /// Adds to the stacks of `run`, which has just been made, what is known of their lines.
    pub(super) fn complete(self, run: &mut Run) {
        let (path, mut unseen) = match self {
            Self::Named(path) => (Some(path), Vec::new()),
            Self::Found(path, others) => (path, others),
        };
        let mut root = None;
        if let Some(path) = &path {
            unseen.clear();
            let added = MappedImage::open(path)
                .and_then(|mapped| mapped.image().and_then(|image| add_of_kernel(run, &image)));
            match added {
                Ok(found) => root = found,
                Err(e) => unseen.push(format!("{SOURCE_LINES} ({}: {e})", path.display())),
            }
        }
        unseen.extend(modules::add_lines(run, path.as_deref(), root.as_deref()));
        run.explanation.iter_mut().for_each(|text| text.not_seen.append(&mut unseen));
    }
}

/// Adds to the stacks of the stored `run` their lines, from the image at `path`.
pub(super) fn add_to_stored(run: &mut Run, path: &Path) -> Result<(), Failure> {
    let kernel = Kernel::of(run);
    let mapped = MappedImage::open(path).map_err(|e| unusable(path, &e))?;
    let image = usable(path, &mapped, &kernel)?;
    let root = add_of_kernel(run, &image).map_err(|e| unusable(path, &e))?;
    let mut unseen = modules::add_lines(run, Some(path), root.as_deref());
    if let Some(explanation) = &mut run.explanation {
        // Lines that were lacking may be there now. Those that still are get a new text.
        explanation.not_seen.retain(|text| !text.starts_with(SOURCE_LINES));
        explanation.not_seen.append(&mut unseen);
    }
    Ok(())
}

/// The image, if it is that of `kernel` and has lines.
fn usable<'m>(path: &Path, mapped: &'m MappedImage, kernel: &Kernel) -> Result<Image<'m>, Failure> {
    let image = mapped.image().map_err(|e| unusable(path, &e))?;
    if let Some(why) = kernel.differs(&image) {
        let name = path.display();
        return Err(Failure::new(format!("{name} is not the image of the kernel that was traced"))
            .because(why)
            .try_this(format!(
                "name the vmlinux of the same build of {}, from its debug package",
                kernel.release
            )));
    }
    image.has_lines().map_err(|e| unusable(path, &e))?;
    Ok(image)
}

fn unusable(path: &Path, error: &NoImage) -> Failure {
    let failure = Failure::new(format!("cannot use the image {}: {error}", path.display()));
    match error {
        NoImage::Unreadable(_) => failure.try_this("name the kernel's vmlinux: --vmlinux FILE"),
        NoImage::NotElf | NoImage::Unlinked => failure.try_this(
            "name the uncompressed vmlinux, not the boot image",
        ),
        _ => failure.try_this(
            "take vmlinux from the debug package of the kernel: linux-image-…-dbg, kernel-debuginfo",
        ),
    }
}

/// Adds the lines of the kernel's own functions. Tells where its sources lay, if its image does.
fn add_of_kernel(run: &mut Run, image: &Image<'_>) -> Result<Option<String>, NoImage> {
    add_lines(run, image, None, None)
}

/// Adds to the frames of `run` in the kernel itself, or in `module`, the lines that `image` has. Tells
/// where the sources lay, as in [`Found`](wakescope_trace::Found).
fn add_lines(
    run: &mut Run,
    image: &Image<'_>,
    module: Option<&str>,
    root: Option<&str>,
) -> Result<Option<String>, NoImage> {
    let stacks: Vec<&mut [Frame]> = stacks_mut(run).collect();
    let frames: Vec<&[Frame]> = stacks.iter().map(|stack| &**stack).collect();
    let found = image.lines(&frames, module, root)?;
    for (stack, lines) in stacks.into_iter().zip(found.lines) {
        // What is known from elsewhere stays where there are no lines.
        stack.iter_mut().zip(lines).for_each(|(frame, lines)| frame.set_lines(lines));
    }
    Ok(found.root)
}
