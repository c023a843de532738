//! Where Debian's archive is, and whose signature it bears.

use std::env;
use std::path::PathBuf;

/// Debian's archive, wherever one is.
const MIRROR: &str = "http://deb.debian.org/debian";

/// The keys that Debian signs its archive with. The second name is that of newer releases.
const KEYS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// Where the archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The address of the archive.
    pub(super) main: String,
    /// The address of its security updates.
    pub(super) security: String,
    /// The keys that it must be signed with.
    pub(super) keys: PathBuf,
}

/// What is wrong with the address of a mirror.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("$WAKESCOPE_MIRROR is not the address of an archive: {0}")]
pub struct SiteError(String);

impl Site {
    /// Debian's own archive, or the mirror that `$WAKESCOPE_MIRROR` names, as in
    /// `http://mirror.example/debian`. Security updates are beside it, in
    /// `http://mirror.example/debian-security`, unless a second address follows after a blank.
    /// A mirror that signs with keys of its own names their file in `$WAKESCOPE_KEYRING`.
    pub fn from_env() -> Result<Self, SiteError> {
        let keys = env::var_os("WAKESCOPE_KEYRING").filter(|v| !v.is_empty()).map(PathBuf::from);
        let mirror = env::var_os("WAKESCOPE_MIRROR").unwrap_or_default();
        let mirror = mirror.to_str().ok_or_else(|| SiteError("it is not UTF-8".into()))?;
        Self::of(mirror, keys)
    }

    /// The archive at `mirror`, as [`Site::from_env`] reads it; Debian's own if that is empty.
    pub fn of(mirror: &str, keys: Option<PathBuf>) -> Result<Self, SiteError> {
        let mut words = mirror.split_whitespace();
        let main = words.next().unwrap_or(MIRROR).trim_end_matches('/').to_owned();
        let security = words.next().map(|s| s.trim_end_matches('/').to_owned());
        let security = security.unwrap_or_else(|| format!("{main}-security"));
        if words.next().is_some() {
            return Err(SiteError("it has more than two addresses".into()));
        }
        for address in [&main, &security] {
            check(address)?;
        }
        let keys = keys.unwrap_or_else(|| {
            let there = KEYS.iter().map(PathBuf::from).find(|path| path.is_file());
            there.unwrap_or_else(|| KEYS[0].into())
        });
        Ok(Self { main, security, keys })
    }
}

fn check(address: &str) -> Result<(), SiteError> {
    let known = ["http://", "https://", "file:///"].iter().any(|s| address.starts_with(s));
    if !known {
        return Err(SiteError(format!(
            "`{address}` does not begin with http://, https:// or file:///"
        )));
    }
    // It becomes a line of a file that apt reads.
    match address.chars().find(|c| c.is_control() || "\"';{}[]".contains(*c)) {
        Some(c) => Err(SiteError(format!("`{}` is in it", c.escape_default()))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mirror: &str, want: Option<(&str, &str)>) {
        let got = Site::of(mirror, None).ok();
        assert_eq!(got.as_ref().map(|s| (&*s.main, &*s.security)), want, "{mirror}");
    }

    #[test]
    fn mirrors_are_read() {
        check("", Some(("http://deb.debian.org/debian", "http://deb.debian.org/debian-security")));
        check("https://m/d/", Some(("https://m/d", "https://m/d-security")));
        check("file:///a  file:///b", Some(("file:///a", "file:///b")));
        check("m/debian", None);
        check("cdrom:x", None);
        check("http://m/a\"b", None);
        check("http://a http://b http://c", None);
    }
}
