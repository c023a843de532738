//! How kernels are called: by Debian's packages, by `uname -r`, and in the lab.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Arch;

/// What a kernel is built for, in Debian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// Any machine.
    Generic,
    /// Virtual machines: fewer drivers.
    Cloud,
    /// Real time.
    Rt,
}

impl Flavour {
    /// Every flavour of the lab.
    pub const ALL: [Self; 3] = [Self::Generic, Self::Cloud, Self::Rt];

    /// What it adds to a name.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Generic => "",
            Self::Cloud => "-cloud",
            Self::Rt => "-rt",
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Generic => "generic",
            Self::Cloud => "cloud",
            Self::Rt => "rt",
        })
    }
}

/// The longest name that makes sense.
const LONGEST: usize = 80;

/// A kernel of the distribution: `6.1.0-56`, `cloud`, `amd64`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Its version as it stands in its release: `6.1.0-56`, `6.12.95+deb12`.
    pub version: String,
    /// What it is built for.
    pub flavour: Flavour,
    /// What it runs on.
    pub arch: Arch,
}

impl Name {
    /// Reads a release, as `uname -r` prints it: `6.1.0-56-cloud-amd64`.
    pub(crate) fn of_release(release: &str) -> Option<Self> {
        let arch = Arch::ALL.into_iter().find(|a| release.ends_with(&format!("-{a}")))?;
        let rest = &release[..release.len() - arch.to_string().len() - 1];
        let (version, flavour) = divide(rest);
        is_version(version).then(|| Self { version: version.into(), flavour, arch })
    }

    /// Its release, as `uname -r` prints it: `6.1.0-56-cloud-amd64`.
    pub fn release(&self) -> String {
        format!("{}-{}", self.exact(), self.arch)
    }

    /// Its name in the lab: `6.1.0-56-cloud`.
    pub fn exact(&self) -> String {
        format!("{}{}", self.version, self.flavour.suffix())
    }

    /// The first two numbers of its version: `6.1`.
    pub fn series(&self) -> &str {
        let mut dots = self.version.match_indices('.');
        dots.nth(1).map_or(&self.version, |(at, _)| &self.version[..at])
    }

    /// The name of the newest kernel of its series and flavour: `6.1-cloud`.
    pub fn short(&self) -> String {
        format!("{}{}", self.series(), self.flavour.suffix())
    }

    /// Whether `text`, as a user writes it, means this kernel: by its short name, its exact name,
    /// that without what Debian adds to the version, or its release.
    pub(crate) fn answers_to(&self, text: &str) -> bool {
        let plain = self.version.split('+').next().unwrap_or_default();
        text == self.short()
            || text == self.exact()
            || text == self.release()
            || text == format!("{plain}{}", self.flavour.suffix())
    }
}

fn divide(text: &str) -> (&str, Flavour) {
    for flavour in [Flavour::Cloud, Flavour::Rt] {
        if let Some(version) = text.strip_suffix(flavour.suffix()) {
            return (version, flavour);
        }
    }
    (text, Flavour::Generic)
}

/// `6.1.0-56` and `6.12.90+deb12.1`, but neither `6.12`, which is no kernel but the name of a
/// package that depends on one, nor anything that could lead out of a folder.
fn is_version(text: &str) -> bool {
    let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (upstream, rest) = text.split_at(at);
    let known = |rest: &str| match rest.as_bytes().first() {
        None => true,
        Some(b'-') => number(&rest[1..]),
        Some(b'+') => rest[1..].bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.'),
        Some(_) => false,
    };
    text.len() <= LONGEST
        && upstream.split('.').count() == 3
        && upstream.split('.').all(number)
        && known(rest)
}

/// What a package holds of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// `linux-image-…`: everything, up to 6.18; then nothing but dependencies.
    Image,
    /// `linux-binary-…`: the image, from 6.19 on.
    Binary,
    /// `linux-base-…`: the configuration, from 6.19 on.
    Base,
    /// `linux-modules-…`, from 6.19 on.
    Modules,
}

impl Part {
    const PREFIXES: [(&'static str, Self); 4] = [
        ("linux-image-", Self::Image),
        ("linux-binary-", Self::Binary),
        ("linux-base-", Self::Base),
        ("linux-modules-", Self::Modules),
    ];

    /// Reads the name of a package. `None` for those that hold no part of a kernel of the lab:
    /// debugging symbols, images before they are signed, templates, other page sizes.
    pub(crate) fn of_package(package: &str) -> Option<(Self, Name)> {
        let (prefix, part) = Self::PREFIXES.into_iter().find(|(p, _)| package.starts_with(p))?;
        Name::of_release(&package[prefix.len()..]).map(|name| (part, name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(package: &str, want: Option<(Part, &str, &str)>) {
        let got = Part::of_package(package);
        let got = got.as_ref().map(|(part, name)| (*part, name.exact(), name.short()));
        assert_eq!(got, want.map(|(p, e, s)| (p, e.into(), s.into())), "{package}");
    }

    #[test]
    fn packages_are_recognized() {
        use Part::{Base, Binary, Image, Modules};
        check("linux-image-6.1.0-56-amd64", Some((Image, "6.1.0-56", "6.1")));
        check("linux-image-6.1.0-56-cloud-amd64", Some((Image, "6.1.0-56-cloud", "6.1-cloud")));
        check("linux-image-6.1.0-9-rt-arm64", Some((Image, "6.1.0-9-rt", "6.1-rt")));
        check(
            "linux-image-6.12.90+deb12.1-rt-amd64",
            Some((Image, "6.12.90+deb12.1-rt", "6.12-rt")),
        );
        check(
            "linux-binary-7.2.12+deb13-cloud-arm64",
            Some((Binary, "7.2.12+deb13-cloud", "7.2-cloud")),
        );
        check("linux-base-7.2.12+deb13-amd64", Some((Base, "7.2.12+deb13", "7.2")));
        check("linux-modules-7.2.12+deb13-amd64", Some((Modules, "7.2.12+deb13", "7.2")));
        for other in [
            "linux-image-amd64",
            "linux-image-cloud-amd64",
            "linux-image-6.12-amd64",
            "linux-image-6.12-cloud-amd64",
            "linux-image-6.1.0-56-amd64-dbg",
            "linux-image-6.1.0-56-amd64-unsigned",
            "linux-image-6.12-amd64-signed-template",
            "linux-image-6.12.95+deb12-arm64-16k",
            "linux-binary-unsigned-7.3.4+deb13-amd64",
            "linux-image-6.1.0-56-armmp",
            "linux-image-6.1.0-../x-amd64",
            "linux-image-6.1.0-/-amd64",
            "linux-image-6.1.0+/../x-amd64",
            "linux-image-6..0-amd64",
            "linux-base",
            "",
        ] {
            check(other, None);
        }
    }

    #[test]
    fn a_kernel_answers_to_its_names() {
        let name = Name::of_release("6.12.95+deb12-cloud-amd64").unwrap();
        for text in
            ["6.12-cloud", "6.12.95-cloud", "6.12.95+deb12-cloud", "6.12.95+deb12-cloud-amd64"]
        {
            assert!(name.answers_to(text), "{text}");
        }
        for text in ["6.12", "6.1-cloud", "6.12-rt", "6.12.9-cloud", "6.12.95+deb12", "cloud", ""] {
            assert!(!name.answers_to(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn names_are_read_back(
            version in "[1-9][.][0-9]{1,2}[.](0-[0-9]{1,2}|[0-9]{1,3}[+]deb1[0-9])",
            flavour in proptest::sample::select(Flavour::ALL.to_vec()),
            arch in proptest::sample::select(Arch::ALL.to_vec()),
        ) {
            let name = Name { version, flavour, arch };
            prop_assert_eq!(Name::of_release(&name.release()), Some(name));
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,40}") {
            let _ = Name::of_release(&text).map(|n| n.series().to_owned());
            let path = format!("{text}/-amd64");
            prop_assert!(Name::of_release(&path).is_none());
        }
    }
}
