//! The arguments of the emulator, and the files that they name. It inherits the files open, so it needs no
//! permission for any folder.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use wakescope_store::create_new;
use wakescope_sys::file::sealed_copy;
use wakescope_sys::input::open_input;
use wakescope_sys::process::confined::FIRST_INHERITED;

use super::monitor::Monitor;
use super::parameters::LONGEST_LINE;
use super::state::{self, State};
use crate::guest::order;
use crate::kernel::Arch;
use crate::sum::Summed;

/// The place of the console among the files.
const CONSOLE: usize = 2;

/// What the emulator calls a set of descriptors of one file, before its number.
const FDSET: &str = "/dev/fdset/";

/// A boot that is being prepared.
#[derive(Debug)]
pub struct Boot {
    arguments: Vec<String>,
    files: Vec<File>,
}

/// A file that a guest boots from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where it is.
    pub path: PathBuf,
    /// The SHA-256 that the cell's recipe has for it, in hexadecimal.
    pub sha256: String,
}

/// The images of a boot, and where the guest's lines go.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// The kernel.
    pub kernel: &'a Image,
    /// The initramfs.
    pub guest: &'a Image,
    /// A root image, which is placed behind the initramfs.
    pub root: Option<&'a Image>,
    /// The file for the console, which is made.
    pub console: &'a Path,
    /// The file for results, which is made.
    pub results: &'a Path,
}

/// A plugin of the emulator, and its files.
#[derive(Clone, Debug)]
pub struct Observer {
    /// The plugin.
    pub plugin: PathBuf,
    /// A file that tells it what to look at, if it needs one.
    pub plan: Option<PathBuf>,
    /// Where it writes to.
    pub seen: PathBuf,
}

impl Boot {
    /// Boots a kernel with this command line on the machine that the arguments `machine` make. The emulator
    /// opens the images once more, as another user: of copies in memory, neither modes nor folders keep it
    /// from that.
    ///
    /// # Errors
    /// If the command line is longer than the kernel takes, which would cut off the order to the
    /// guest's program at its end; if a file cannot be read or made; or if an image is no longer the one that
    /// the recipe names.
    pub fn new(arch: Arch, machine: &[String], cmdline: &str, lines: Lines) -> io::Result<Self> {
        if cmdline.len() > LONGEST_LINE {
            return Err(io::Error::other(format!(
                "the kernel's command line has {} bytes, and kernels take {LONGEST_LINE}",
                cmdline.len()
            )));
        }
        let mut boot = Self { arguments: machine.to_vec(), files: Vec::new() };
        let kernel = boot.inherit(copy_of(&[lines.kernel])?);
        boot.add("-kernel", path_of(kernel));
        // The kernel unpacks one archive after the other.
        let guest: Vec<&Image> = [lines.guest].into_iter().chain(lines.root).collect();
        let guest = boot.inherit(copy_of(&guest)?);
        boot.add("-initrd", path_of(guest));
        boot.add("-append", cmdline.into());
        for (id, path) in [("console", lines.console), ("results", lines.results)] {
            let place = boot.inherit_to_write(create(path)?);
            // The emulator empties other files when it takes them, even inherited ones.
            boot.add("-chardev", format!("file,id={id},path={place},append=on"));
            match (arch, id) {
                (Arch::Amd64, _) => {
                    let index = u8::from(id == "results");
                    boot.add("-device", format!("isa-serial,chardev={id},index={index}"));
                }
                (Arch::Arm64, "console") => boot.add("-serial", format!("chardev:{id}")),
                // `virt` has a second line of its own from QEMU 9.1 on only; a card works in all.
                (Arch::Arm64, _) => boot.add("-device", format!("pci-serial,chardev={id}")),
            }
        }
        Ok(boot)
    }

    /// Has the machine give this order to its guest.
    ///
    /// # Errors
    /// If the order is too long.
    pub fn order(&mut self, text: &str) -> io::Result<()> {
        let file = order::pack(text).ok_or_else(|| io::Error::other("the order is too long"))?;
        let file = self.inherit(sealed_copy(&mut &file[..])?);
        self.add("-fw_cfg", format!("name={},file={}", order::NAME, path_of(file)));
        // What the guest reports as panics must not end the emulator.
        self.add("-action", "panic=none".into());
        Ok(())
    }

    /// Has a plugin see what the guest does.
    pub fn observe(&mut self, observer: &Observer) -> io::Result<()> {
        let plugin = self.inherit(copy(&observer.plugin)?);
        let seen = self.inherit(create(&observer.seen)?);
        let mut plugin = format!("file={},out={seen}", path_of(plugin));
        if let Some(plan) = &observer.plan {
            plugin += &format!(",plan={}", self.inherit(copy(plan)?));
        }
        self.add("-plugin", plugin);
        Ok(())
    }

    /// Has a monitor halt the machine when its guest is ready, save it, and resume it.
    pub fn save(&mut self) -> io::Result<(Monitor, State)> {
        let state = State::empty()?;
        self.hold(&state)?;
        let (own, other) = UnixStream::pair()?;
        let other = self.inherit(OwnedFd::from(other).into());
        self.add("-chardev", format!("socket,id=monitor,fd={other}"));
        self.add("-mon", "chardev=monitor,mode=control".into());
        Ok((Monitor::new(own)?, state))
    }

    /// Resumes a saved machine instead of a boot.
    pub fn resume(&mut self, state: &State) -> io::Result<()> {
        self.hold(state)?;
        // The emulator appends to it.
        (&self.files[CONSOLE]).write_all(state.console())?;
        self.add("-loadvm", state::NAME.into());
        Ok(())
    }

    fn hold(&mut self, state: &State) -> io::Result<()> {
        let (own, read_only) = state.files()?;
        let place = self.inherit_to_write(own);
        // The emulator first opens a disk for reading only, and takes a descriptor of that kind for it.
        let (fd, set) = (self.inherit(read_only), place.trim_start_matches(FDSET).to_owned());
        self.add("-add-fd", format!("fd={fd},set={set}"));
        self.add("-drive", format!("if=none,id=state,format=qcow2,file={place}"));
        Ok(())
    }

    /// Another argument of the emulator, with its value.
    pub fn add(&mut self, flag: &str, value: String) {
        self.arguments.extend([flag.into(), value]);
    }

    /// The arguments of the emulator.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// The number that the emulator will have for this file.
    fn inherit(&mut self, file: File) -> RawFd {
        // There are eight at most, or the emulator is not started.
        let place = RawFd::try_from(self.files.len()).unwrap_or(RawFd::MAX);
        self.files.push(file);
        FIRST_INHERITED.saturating_add(place)
    }

    /// The name that the emulator writes to a file by, which it need not be able to open by any path.
    fn inherit_to_write(&mut self, file: File) -> String {
        let fd = self.inherit(file);
        self.add("-add-fd", format!("fd={fd},set={fd}"));
        format!("{FDSET}{fd}")
    }

    /// The files, in the order of their numbers.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.files.iter().map(File::as_fd).collect()
    }
}

/// The path of a descriptor, for the process that has it.
fn path_of(fd: RawFd) -> String {
    format!("/proc/self/fd/{fd}")
}

fn copy(path: &Path) -> io::Result<File> {
    let copy = open_input(path).and_then(|mut file| sealed_copy(&mut file));
    copy.map_err(named(path))
}

/// These images, one behind the other. What is summed is what is copied, so it is what the guest boots from.
fn copy_of(images: &[&Image]) -> io::Result<File> {
    let open =
        |image: &&Image| open_input(&image.path).map(Summed::new).map_err(named(&image.path));
    let mut files = images.iter().map(open).collect::<io::Result<Vec<_>>>()?;
    let nothing: Box<dyn Read> = Box::new(io::empty());
    let mut all = files.iter_mut().fold(nothing, |all, file| Box::new(all.chain(file)));
    let copy = sealed_copy(&mut all).map_err(named(&images[0].path));
    drop(all);
    let copy = copy?;
    match images.iter().zip(files).find(|(image, file)| file.sum() != image.sha256) {
        Some((image, _)) => Err(changed(&image.path)),
        None => Ok(copy),
    }
}

/// That a file is another one than the recipe names, which was read when the lab began.
pub(crate) fn changed(path: &Path) -> io::Error {
    io::Error::other(format!("{} changed since the lab began", path.display()))
}

fn create(path: &Path) -> io::Result<File> {
    create_new(path).map_err(named(path))
}

/// The error with the file's name.
fn named(path: &Path) -> impl Fn(io::Error) -> io::Error + use<'_> {
    move |e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::machine::Machine;
    use crate::sum;
    use wakescope_testing::Folder;

    /// A file that holds its name.
    fn image(folder: &Folder, name: &str) -> Image {
        Image { path: folder.write(name, name), sha256: sum::of_bytes(name.as_bytes()) }
    }

    #[test]
    fn images_that_are_not_those_of_the_recipe_are_not_booted() {
        let folder = Folder::new("boot-changed");
        let images = ["kernel", "guest", "root"].map(|name| image(&folder, name));
        let [kernel, guest, root] = &images;
        let boot = |name: &str, root| {
            let [console, results] =
                ["console", "results"].map(|l| folder.join(format!("{name}-{l}")));
            let lines = Lines { kernel, guest, root, console: &console, results: &results };
            Boot::new(Arch::Amd64, &[], "", lines).map(|boot| {
                fs::read_to_string(format!("/proc/self/fd/{}", boot.files[1].as_raw_fd())).unwrap()
            })
        };
        assert_eq!(boot("bare", None).unwrap(), "guest");
        assert_eq!(boot("whole", Some(root)).unwrap(), "guestroot");
        for Image { path, .. } in &images {
            let own = fs::read(path).unwrap();
            // As long as before.
            fs::write(path, own.iter().rev().copied().collect::<Vec<u8>>()).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            let refused = boot(name, Some(root)).unwrap_err().to_string();
            assert_eq!(refused, format!("{} changed since the lab began", path.display()));
            fs::write(path, own).unwrap();
        }
    }

    #[test]
    fn files_are_named_by_their_descriptors() {
        let machine = Machine::new(Arch::Amd64).arguments();
        let folder = Folder::new("boot");
        let [console, results] = ["console", "results"].map(|name| folder.path().join(name));
        let image = &image(&folder, "image");
        let lines =
            Lines { kernel: image, guest: image, root: None, console: &console, results: &results };
        let mut boot = Boot::new(Arch::Amd64, &machine, "a,b", lines).unwrap();
        boot.order("check").unwrap();
        let (_monitor, _state) = boot.save().unwrap();
        assert_eq!(boot.arguments()[..machine.len()], machine);
        let own = boot.arguments()[machine.len()..].join(" ");
        expect_test::expect![[r#"
            -kernel /proc/self/fd/3
            -initrd /proc/self/fd/4
            -append a,b
            -add-fd fd=5,set=5
            -chardev file,id=console,path=/dev/fdset/5,append=on
            -device isa-serial,chardev=console,index=0
            -add-fd fd=6,set=6
            -chardev file,id=results,path=/dev/fdset/6,append=on
            -device isa-serial,chardev=results,index=1
            -fw_cfg name=opt/wakescope/order,file=/proc/self/fd/7
            -action panic=none
            -add-fd fd=8,set=8
            -add-fd fd=9,set=8
            -drive if=none,id=state,format=qcow2,file=/dev/fdset/8
            -chardev socket,id=monitor,fd=10
            -mon chardev=monitor,mode=control
        "#]]
        .assert_eq(&format!("{}\n", own.replace(" -", "\n-")));
        assert_eq!(boot.descriptors().len(), 8);
        assert!(boot.order(&"x".repeat(order::LENGTH + 1)).is_err());
        let long = "x".repeat(LONGEST_LINE + 1);
        let error = Boot::new(Arch::Amd64, &machine, &long, lines).unwrap_err().to_string();
        assert_eq!(error, "the kernel's command line has 2048 bytes, and kernels take 2047");
    }
}
