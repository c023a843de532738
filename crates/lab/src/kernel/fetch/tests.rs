use std::process::Command;

use super::*;
use crate::archive::tool;
use crate::testing::{self, bzimage};
use crate::watch::Unwatched;
use wakescope_testing::Folder;

/// An archive with signed lists, as small as one can be, and a cache.
struct Mirror {
    folder: Folder,
    cache: Cache,
    notes: Vec<String>,
}

/// Notes what is said.
struct Notes<'a>(&'a mut Vec<String>);

impl Watch for Notes<'_> {
    fn step(&mut self, step: &Step<'_>) {
        if let Step::Note(text) = step {
            self.0.push((*text).to_owned());
        }
    }

    fn stopped(&mut self) -> bool {
        false
    }
}

const SUITES: [&str; 5] = ["bookworm", "bookworm-backports", "trixie", "trixie-backports", "sid"];

impl Mirror {
    /// `None`, with a word about it, where the tools to make an archive are missing.
    fn new(name: &str) -> Option<Self> {
        for tool in ["apt-get", "dpkg-deb", "dpkg-scanpackages", "gpg"] {
            if tool::find(tool).is_none() {
                wakescope_testing::skip(name, &format!("`{tool}` is not installed"));
                return None;
            }
        }
        let folder = Folder::new(name);
        let cache = Cache::at(folder.path().join("cache"));
        let site = Self { folder, cache, notes: Vec::new() };
        fs::create_dir_all(site.path("pool")).unwrap();
        fs::create_dir_all(site.path("gnupg")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(site.path("gnupg"), mode).unwrap();
        site.gpg(&["--quick-generate-key", "lab@example.com", "ed25519", "sign", "never"]);
        site.gpg(&["--output", &site.path("keys.gpg").display().to_string(), "--export"]);
        Some(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn gpg(&self, args: &[&str]) {
        let mut command = Command::new("gpg");
        command.args(["--batch", "--yes", "--quiet", "--passphrase", "", "--homedir"]);
        run(command.arg(self.path("gnupg")).args(args));
    }

    /// Puts a package into the pool.
    fn add(&self, name: &str, version: &str, files: &[(&str, &[u8])]) {
        let tree = self.path("tree");
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: x <x@x>\n\
             Description: x\n"
        );
        for (file, bytes) in files.iter().chain(&[("DEBIAN/control", control.as_bytes())]) {
            fs::create_dir_all(tree.join(file).parent().unwrap()).unwrap();
            fs::write(tree.join(file), bytes).unwrap();
        }
        let deb = self.path("pool").join(format!("{name}_{version}_amd64.deb"));
        run(Command::new("dpkg-deb").arg("--root-owner-group").arg("--build").args([&tree, &deb]));
        fs::remove_dir_all(tree).unwrap();
    }

    /// Puts a package into the pool whose archive has these entries.
    fn add_made_up(&self, name: &str, entries: &[(u8, &str, &str, u32, &[u8])]) {
        let control = format!(
            "Package: {name}\nVersion: 6.1.27-1\nArchitecture: amd64\nMaintainer: x <x@x>\n\
             Description: x\n"
        );
        let deb = self.path("pool").join(format!("{name}_6.1.27-1_amd64.deb"));
        fs::write(deb, testing::deb(&control, &testing::tar(entries))).unwrap();
    }

    /// Writes the lists anew, and signs them.
    fn publish(&self) {
        let mut scan = Command::new("dpkg-scanpackages");
        let packages = run(scan.args(["--multiversion", "pool"]).current_dir(self.folder.path()));
        let name = "main/binary-amd64/Packages";
        for suite in SUITES {
            let dist = self.path("dists").join(suite);
            fs::create_dir_all(dist.join("main/binary-amd64")).unwrap();
            let list = if suite == "trixie" { packages.as_slice() } else { b"" };
            fs::write(dist.join(name), list).unwrap();
            let release = format!(
                "Origin: Test\nSuite: {suite}\nCodename: {suite}\nArchitectures: amd64\n\
                 Components: main\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {} {} {name}\n",
                sum::of_bytes(list),
                list.len()
            );
            let (plain, signed) = (dist.join("Release"), dist.join("InRelease"));
            fs::write(&plain, release).unwrap();
            let text = |path: &Path| path.display().to_string();
            self.gpg(&["--output", &text(&signed), "--clearsign", &text(&plain)]);
            fs::remove_file(plain).unwrap();
        }
    }

    fn fetch(&mut self, name: &str, refresh: bool) -> Result<Fetched, FetchError> {
        let mirror = format!("file://{}", self.folder.path().display());
        // The same again for security updates: every suite must be there.
        for suite in ["bookworm-security", "trixie-security"] {
            let from = self.path("dists/sid");
            let _ = std::os::unix::fs::symlink(from, self.path("dists").join(suite));
        }
        let site = Site::of(&format!("{mirror} {mirror}"), Some(self.path("keys.gpg"))).unwrap();
        let source = Source::new(&self.cache, site, Arch::Amd64);
        source.fetch(name, refresh, &mut Notes(&mut self.notes))
    }

    fn stored(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cache.kernels(Arch::Amd64)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }
}

#[track_caller]
fn run(command: &mut Command) -> Vec<u8> {
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{command:?}: {text}");
    out.stdout
}

fn add_old_layout(site: &Mirror, version: &str, package_version: &str) {
    let release = format!("{version}-cloud-amd64");
    site.add(
        &format!("linux-image-{release}"),
        package_version,
        &[
            (&format!("boot/vmlinuz-{release}"), &bzimage(&release)),
            (&format!("boot/config-{release}"), b"CONFIG_PREEMPT_VOLUNTARY=y\n"),
            (
                &format!("boot/System.map-{release}"),
                b"ffffffffffffffff B The real one is not here\n",
            ),
            (&format!("lib/modules/{release}/kernel/fs/ext4.ko"), b"x"),
            (&format!("lib/modules/{release}/kernel/sound/hda/hda.ko"), b"x"),
        ],
    );
}

#[test]
fn kernels_of_both_layouts_are_fetched_and_stay() {
    let Some(mut site) = Mirror::new("layouts") else { return };
    add_old_layout(&site, "6.1.0-9", "6.1.27-1");
    add_old_layout(&site, "6.1.0-10", "6.1.37-1");
    let release = "7.2.12+deb13-rt-amd64";
    let dir = format!("usr/lib/modules/{release}");
    site.add(&format!("linux-image-{release}"), "7.2.12-1", &[]);
    site.add(
        &format!("linux-binary-{release}"),
        "7.2.12-1",
        &[(&format!("{dir}/vmlinuz"), &bzimage(release))],
    );
    site.add(
        &format!("linux-base-{release}"),
        "7.2.12-1",
        &[
            (&format!("{dir}/config"), b"CONFIG_PREEMPT_RT=y\n"),
            (&format!("{dir}/System.map"), b"ffffffff81000000 T f\n"),
        ],
    );
    site.add(
        &format!("linux-modules-{release}"),
        "7.2.12-1",
        &[(&format!("{dir}/kernel/fs/ext4.ko"), b"x")],
    );
    site.publish();

    let old = site.fetch("6.1-cloud", false).unwrap();
    assert!(!old.was_there && old.bytes > 0);
    assert_eq!(old.kernel.name, "6.1-cloud");
    assert_eq!(old.kernel.release, "6.1.0-10-cloud-amd64");
    assert_eq!(old.kernel.package.as_deref(), Some("linux-image-6.1.0-10-cloud-amd64 6.1.37-1"));
    let modules = old.kernel.modules.unwrap();
    assert!(
        modules.join("kernel/fs/ext4.ko").exists() && !modules.join("kernel/sound/hda").exists()
    );

    let new = site.fetch("7.2.12+deb13-rt", false).unwrap().kernel;
    assert!(new.config.is_some(), "{new:?}");
    // Nothing reads it, and caches of earlier versions have it.
    let map = new.image.with_file_name("System.map");
    assert!(!map.exists());
    fs::write(map, "ffffffff81000000 T f\n").unwrap();
    assert!(site.fetch("7.2.12+deb13-rt", false).unwrap().was_there);
    assert!(new.modules.unwrap().join("kernel/fs/ext4.ko").exists());
    assert_eq!(new.sha256, sum::of_bytes(&bzimage(release)));

    assert!(site.fetch("6.1-cloud", false).unwrap().was_there);
    let mut stored = site.stored();
    stored.sort();
    assert_eq!(stored, ["6.1.0-10-cloud", "7.2.12+deb13-rt"]);
    let Err(FetchError::NoSuchKernel(e)) = site.fetch("6.1-rt", false) else { panic!() };
    assert_eq!(e.nearest.first().map(String::as_str), Some("7.2-rt"));
    assert_eq!(site.notes, Vec::<String>::new());

    // The archive is gone.
    fs::remove_dir_all(site.path("dists")).unwrap();
    fs::remove_dir_all(site.path("pool")).unwrap();
    assert!(site.fetch("6.1-cloud", false).unwrap().was_there);
    assert!(site.fetch("6.1.0-10-cloud", true).unwrap().was_there);
    assert!(matches!(site.fetch("6.1.0-9-cloud", false), Err(FetchError::Archive(_))));
    fs::remove_dir_all(site.cache.apt()).unwrap();
    let kernel = site.fetch("6.1-cloud", false).unwrap().kernel;
    assert_eq!(kernel.release, "6.1.0-10-cloud-amd64");
    assert!(site.notes.iter().any(|note| note.contains("6.1.0-10-cloud from the cache")));
}

#[test]
fn an_archive_that_moves_on_is_looked_at_again() {
    let Some(mut site) = Mirror::new("moving") else { return };
    add_old_layout(&site, "6.1.0-9", "6.1.27-1");
    site.publish();
    // The list of today is remembered; then the kernel that is in it goes.
    let unknown = site.fetch("6.1-rt", false);
    assert!(matches!(unknown, Err(FetchError::NoSuchKernel(_))), "{unknown:?}");
    fs::remove_dir_all(site.path("pool")).unwrap();
    fs::create_dir(site.path("pool")).unwrap();
    add_old_layout(&site, "6.1.0-10", "6.1.37-1");
    site.publish();
    let kernel = site.fetch("6.1-cloud", false).unwrap().kernel;
    assert_eq!(kernel.release, "6.1.0-10-cloud-amd64");
}

#[test]
fn a_kernel_of_the_cache_is_used_where_the_archive_cannot_give_a_newer_one() {
    let Some(mut site) = Mirror::new("out-of-reach") else { return };
    add_old_layout(&site, "6.1.0-9", "6.1.27-1");
    site.publish();
    site.fetch("6.1-cloud", false).unwrap();
    add_old_layout(&site, "6.1.0-10", "6.1.37-1");
    site.publish();
    // The list has the newer one, and then there is no network.
    let unknown = site.fetch("6.1-rt", true);
    assert!(matches!(unknown, Err(FetchError::NoSuchKernel(_))), "{unknown:?}");
    for folder in ["dists", "pool"] {
        fs::remove_dir_all(site.path(folder)).unwrap();
    }
    let fetched = site.fetch("6.1-cloud", false).unwrap();
    assert_eq!((fetched.kernel.release.as_str(), fetched.was_there), ("6.1.0-9-cloud-amd64", true));
    let note = site.notes.last().unwrap();
    assert!(note.ends_with("; using 6.1.0-9-cloud from the cache"), "{note}");
}

#[test]
fn the_age_of_a_list_is_said_in_hours_or_days() {
    for (age_s, want) in [
        (PARTLY_GOOD_FOR_S, "1 hour"),
        (GOOD_FOR_S - 1, "23 hours"),
        (GOOD_FOR_S, "1 day"),
        (3 * GOOD_FOR_S, "3 days"),
    ] {
        assert_eq!(in_words(age_s), want);
    }
}

#[test]
fn what_is_not_signed_or_not_what_was_signed_is_refused() {
    let Some(mut site) = Mirror::new("signatures") else { return };
    add_old_layout(&site, "6.1.0-9", "6.1.27-1");
    site.publish();
    let deb = site.path("pool/linux-image-6.1.0-9-cloud-amd64_6.1.27-1_amd64.deb");
    let good = fs::read(&deb).unwrap();
    let mut bad = good.clone();
    let last = bad.len() - 10;
    bad[last] ^= 1;
    fs::write(&deb, bad).unwrap();
    let e = site.fetch("6.1-cloud", false).unwrap_err();
    assert!(matches!(&e, FetchError::Archive(ArchiveError::Failed { .. })), "{e:?}");
    assert_eq!(site.stored(), Vec::<String>::new());

    fs::write(&deb, good).unwrap();
    fs::remove_dir_all(site.cache.apt()).unwrap();
    let list = site.path("dists/trixie/InRelease");
    let text = fs::read_to_string(&list).unwrap().replace("Origin: Test", "Origin: Fake");
    fs::write(&list, text).unwrap();
    let e = site.fetch("6.1-cloud", false).unwrap_err();
    assert!(matches!(&e, FetchError::NoSuchKernel(_) | FetchError::Archive(_)), "{e:?}");
    assert_eq!(site.stored(), Vec::<String>::new());

    site.publish();
    site.fetch("6.1-cloud", true).unwrap();
    assert_eq!(site.stored(), ["6.1.0-9-cloud"]);
}

#[test]
fn a_package_that_lies_about_its_kernel_is_refused() {
    let Some(mut site) = Mirror::new("lies") else { return };
    let cut = &bzimage("6.1.0-9-cloud-amd64")[..2000];
    for (name, image) in [("6.1.0-9", cut), ("6.1.0-8", &bzimage("6.1.0-7-cloud-amd64"))] {
        let release = format!("{name}-cloud-amd64");
        let path = format!("boot/vmlinuz-{release}");
        site.add(&format!("linux-image-{release}"), "6.1.1", &[(&path, image)]);
    }
    site.publish();
    for (name, want) in
        [("6.1.0-9-cloud", "truncated"), ("6.1.0-8-cloud", "not the kernel that its package names")]
    {
        let e = site.fetch(name, false).unwrap_err().to_string();
        assert!(e.contains(want), "{e}");
    }
    assert_eq!(site.stored(), Vec::<String>::new());
}

#[test]
fn a_kernel_without_its_configuration_is_fetched_again() {
    let Some(mut site) = Mirror::new("no-config") else { return };
    add_old_layout(&site, "6.1.0-9", "6.1.27-1");
    site.publish();
    let kernel = site.fetch("6.1-cloud", false).unwrap().kernel;
    fs::remove_file(kernel.config.as_ref().unwrap()).unwrap();
    let mut memo = Memo::open(&site.cache);
    let e = Kernel::from_cache(&site.cache, Arch::Amd64, "6.1-cloud", &mut memo).unwrap_err();
    assert!(e.to_string().contains("its configuration is missing"), "{e}");
    let again = site.fetch("6.1-cloud", false).unwrap();
    assert_eq!((again.kernel, again.was_there), (kernel, false));
}

#[test]
fn an_image_that_was_changed_is_fetched_again() {
    let Some(mut site) = Mirror::new("changed") else { return };
    add_old_layout(&site, "6.1.0-9", "6.1.27-1");
    site.publish();
    let kernel = site.fetch("6.1-cloud", false).unwrap().kernel;
    fs::write(&kernel.image, "damaged").unwrap();
    let mut memo = Memo::open(&site.cache);
    let e = Kernel::from_cache(&site.cache, Arch::Amd64, "6.1-cloud", &mut memo).unwrap_err();
    assert!(e.to_string().contains("its image has changed"), "{e}");
    assert!(!site.fetch("6.1-cloud", false).unwrap().was_there);
    assert_eq!(
        Kernel::from_cache(&site.cache, Arch::Amd64, "6.1-cloud", &mut memo).unwrap(),
        kernel
    );
}

#[test]
fn two_labs_fetch_a_kernel_once() {
    let Some(site) = Mirror::new("twice") else { return };
    add_old_layout(&site, "6.1.0-9", "6.1.27-1");
    site.publish();
    let mirror = format!("file://{}", site.folder.path().display());
    let there = Site::of(&format!("{mirror} {mirror}"), Some(site.path("keys.gpg"))).unwrap();
    let fetch = || {
        let source = Source::new(&site.cache, there.clone(), Arch::Amd64);
        source.fetch("6.1-cloud", false, &mut Unwatched).unwrap().was_there
    };
    let mut was_there = std::thread::scope(|scope| {
        let threads = [scope.spawn(fetch), scope.spawn(fetch)];
        threads.map(|thread| thread.join().unwrap())
    });
    was_there.sort_unstable();
    assert_eq!(was_there, [false, true]);
    assert_eq!(site.stored(), ["6.1.0-9-cloud"]);
}

/// Everything below `folder`, with kinds and modes.
fn below(folder: &Path) -> Vec<(PathBuf, u32)> {
    use std::os::unix::fs::MetadataExt;
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(dir) = folders.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            found.push((path.strip_prefix(folder).unwrap().to_owned(), meta.mode()));
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn of_a_hostile_package_only_plain_files_come_in() {
    let Some(mut site) = Mirror::new("hostile-package") else { return };
    let release = "6.1.0-9-cloud-amd64";
    let (image, config) = (format!("./boot/vmlinuz-{release}"), format!("./boot/config-{release}"));
    let modules = format!("./lib/modules/{release}/kernel");
    let place = |name: &str| format!("{modules}/{name}");
    let bytes = bzimage(release);
    site.add_made_up(
        &format!("linux-image-{release}"),
        &[
            (b'0', &image, "", 0o6755, &bytes),
            (b'2', &config, "/etc/passwd", 0o777, b""),
            (b'5', &modules, "", 0o2777, b""),
            (b'0', &place("setuid.ko"), "", 0o6777, b"code"),
            (b'3', &place("null"), "", 0o666, b""),
            (b'6', &place("fifo"), "", 0o666, b""),
            (b'2', &place("link.ko"), "../../../../../../../../treasure", 0o777, b""),
            (b'0', "./etc/cron.d/job", "", 0o644, b"unwanted"),
        ],
    );
    site.publish();
    fs::write(site.path("treasure"), "treasure").unwrap();
    // The only configuration that it offers lies elsewhere.
    let e = site.fetch("6.1-cloud", false).unwrap_err().to_string();
    assert!(e.contains("contain no configuration"), "{e}");
    assert_eq!(site.stored(), [""; 0]);

    site.add_made_up(
        &format!("linux-image-{release}"),
        &[
            (b'0', &image, "", 0o6755, &bytes),
            (b'0', &config, "", 0o4666, b"CONFIG_PREEMPT=y\n"),
            (b'0', &place("setuid.ko"), "", 0o6777, b"code"),
            (b'3', &place("null"), "", 0o666, b""),
            (b'2', &place("link.ko"), "../../../../../../../../treasure", 0o777, b""),
        ],
    );
    site.publish();
    let kernel = site.fetch("6.1-cloud", true).unwrap().kernel;
    for (path, mode) in below(kernel.image.parent().unwrap()) {
        let want: &[u32] = &[0o040_755, 0o100_755, 0o100_644];
        assert!(want.contains(&mode), "{} {mode:o}", path.display());
    }
    assert_eq!(below(&kernel.modules.unwrap().join("kernel")).len(), 1);
}

#[test]
fn a_package_whose_folders_are_links_is_refused_whole() {
    for target in ["/etc", "../..", "../../../../outside", "boot"] {
        let Some(mut site) = Mirror::new("linked-package") else { return };
        fs::create_dir(site.path("outside")).unwrap();
        let release = "6.1.0-9-cloud-amd64";
        let name = |folder: &str, file: &str| format!("./{folder}/{file}-{release}");
        let module = format!("./lib/modules/{release}/kernel/evil.ko");
        let link = format!("./lib/modules/{release}");
        site.add_made_up(
            &format!("linux-image-{release}"),
            &[
                (b'0', &name("boot", "vmlinuz"), "", 0o644, &bzimage(release)),
                (b'0', &name("boot", "config"), "", 0o644, b"CONFIG_PREEMPT=y\n"),
                (b'2', "./lib", target, 0o777, b""),
                (b'2', &link, target, 0o777, b""),
                (b'0', &module, "", 0o644, b"code"),
            ],
        );
        site.publish();
        let e = site.fetch("6.1-cloud", false).unwrap_err();
        assert!(matches!(e, FetchError::Archive(ArchiveError::Package { .. })), "{e:?}");
        assert!(e.to_string().contains("evil.ko lies below a symbolic link"), "{e}");
        assert_eq!(site.stored(), [""; 0]);
        assert_eq!(below(&site.path("outside")), []);
        assert!(!Path::new("/etc").join(format!("modules/{release}")).exists());
    }
}
