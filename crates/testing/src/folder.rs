use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

/// A temporary folder of one test, new and empty. It is removed with all that is in it when it is
/// dropped, also if the test fails.
///
/// Only its owner may write to it, whatever the umask. It can be used like a [`Path`].
pub struct Folder(PathBuf);

impl Folder {
    /// Makes one whose name has `test` in it. No two are the same, whatever they are named.
    ///
    /// # Panics
    /// If it cannot be made.
    #[track_caller]
    pub fn new(test: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let path = loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("wakescope-{test}-{}-{number}", process::id());
            let path = env::temp_dir().join(name);
            match fs::create_dir(&path) {
                // What a test that was killed left, whose process had the same number.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made.map(|()| path).unwrap(),
            }
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    /// Writes the file `path` in it, and makes the folders that lead there. Returns where it is.
    ///
    /// # Panics
    /// If it cannot be written.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Where it is, for what does not take the folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_folder_is_a_new_one_and_goes_with_all_that_is_in_it_also_if_its_test_fails() {
    let (one, other) = (Folder::new("one"), Folder::new("one"));
    let file = one.write("a/b/file", "text");
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
    assert_eq!(file, one.join("a/b/file"));
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    let path = one.to_path_buf();
    let failed = std::panic::catch_unwind(move || {
        let _one = one;
        panic!("as a test that fails");
    });
    assert!(failed.is_err() && !path.exists());
    assert!(other.exists());
}

#[test]
fn others_may_look_into_a_folder_and_not_write_to_it_whatever_the_umask() {
    const INSIDE: &str = "WAKESCOPE_TEST_UMASK";
    if env::var_os(INSIDE).is_some() {
        let mode = fs::metadata(Folder::new("umask")).unwrap().permissions().mode();
        return assert_eq!(mode & 0o7777, 0o755);
    }
    // In a process of its own: the umask is that of all its threads.
    let name = "others_may_look_into_a_folder_and_not_write_to_it_whatever_the_umask";
    for umask in ["0", "077"] {
        let mut again = process::Command::new("sh");
        again.args(["-c", &format!("umask {umask}; exec \"$0\" {name}")]);
        let ended = again.arg(env::current_exe().unwrap()).env(INSIDE, "").output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "{umask}: {said}");
    }
}
