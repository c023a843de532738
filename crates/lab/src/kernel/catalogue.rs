//! The kernels that the archive has.

use serde::{Deserialize, Serialize};
use strsim::levenshtein;

use super::Arch;
use super::name::{Name, Part};
use super::order::compare;
use crate::archive::Package;

/// A kernel that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What it is called.
    pub name: Name,
    /// The version of its packages: `6.1.192-2`.
    pub version: String,
    /// What must be fetched; the image is in the first.
    pub packages: Vec<Package>,
    /// Whether that is all of it: the archive drops the configuration and the modules of an old
    /// kernel before its image.
    pub complete: bool,
}

impl Offer {
    /// How much must be fetched, bytes.
    pub fn size(&self) -> u64 {
        self.packages.iter().map(|p| p.size).sum()
    }
}

/// Everything that the archive has for an architecture, older kernels before newer ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    /// The kernels.
    pub offers: Vec<Offer>,
}

/// No kernel has the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("there is no kernel `{name}`")]
pub struct NoSuchKernel {
    /// The name.
    pub name: String,
    /// Names that are like it, the nearest first.
    pub nearest: Vec<String>,
}

impl Catalogue {
    /// Finds the kernels among packages: those with an image.
    pub fn of(packages: &[Package], arch: Arch) -> Self {
        let parts: Vec<(Part, Name, &Package)> = packages
            .iter()
            .filter_map(|p| Part::of_package(&p.name).map(|(part, name)| (part, name, p)))
            .filter(|(_, name, _)| name.arch == arch)
            .collect();
        let find = |part: Part, name: &Name| {
            parts.iter().find(|(p, n, _)| *p == part && n == name).map(|(_, _, package)| *package)
        };
        let mut offers: Vec<Offer> = parts
            .iter()
            .filter(|(part, _, _)| *part == Part::Image)
            .map(|(_, name, image)| {
                let (packages, complete) = match find(Part::Binary, name) {
                    // Older kernels have a `linux-base` too: documents.
                    None => (vec![*image], true),
                    Some(binary) => {
                        let others = [Part::Base, Part::Modules].map(|part| find(part, name));
                        let complete = others.iter().all(Option::is_some);
                        (
                            std::iter::once(binary).chain(others.into_iter().flatten()).collect(),
                            complete,
                        )
                    }
                };
                let packages = packages.into_iter().cloned().collect();
                Offer { name: name.clone(), version: image.version.clone(), packages, complete }
            })
            .collect();
        offers.sort_by(|a, b| {
            let series = || compare(a.name.series(), b.name.series());
            series()
                .then_with(|| a.name.flavour.cmp(&b.name.flavour))
                .then_with(|| compare(&a.version, &b.version))
                .then_with(|| compare(&a.name.version, &b.name.version))
        });
        Self { offers }
    }

    /// The newest kernel that answers to `text`: `6.1-cloud`, `6.1.0-56-cloud`. One that is
    /// complete comes before one that is not.
    pub fn find(&self, text: &str) -> Result<&Offer, NoSuchKernel> {
        let fitting = || self.offers.iter().rev().filter(|offer| offer.name.answers_to(text));
        let found = fitting().find(|offer| offer.complete).or_else(|| fitting().next());
        found.ok_or_else(|| NoSuchKernel::new(text, self.offers.iter().map(|o| &o.name)))
    }

    /// The kernels that short names mean: the newest of each series and flavour.
    pub fn newest(&self) -> impl Iterator<Item = &Offer> {
        let mut shorts: Vec<String> = self.offers.iter().map(|o| o.name.short()).collect();
        shorts.dedup();
        shorts.into_iter().filter_map(|short| self.find(&short).ok())
    }
}

impl NoSuchKernel {
    /// Nobody among `names` answers to `text`.
    pub fn new<'a>(text: &str, names: impl Iterator<Item = &'a Name>) -> Self {
        // A short text gets short names, one with a third number gets exact ones.
        let exact = text.matches('.').count() > 1;
        let mut near: Vec<String> =
            names.map(|n| if exact { n.exact() } else { n.short() }).collect();
        near.sort();
        near.dedup();
        let text: String = text.chars().take(80).collect();
        // Where more of the characters differ, the names have nothing to do with each other.
        let is_near = |name: &str, changes| 3 * changes <= 2 * name.len().max(text.len());
        near.retain(|name| is_near(name, levenshtein(&text, name)));
        near.sort_by_cached_key(|name| levenshtein(&text, name));
        near.truncate(3);
        Self { name: text, nearest: near }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, size: u64) -> Package {
        Package { name: name.into(), version: version.into(), size }
    }

    fn catalogue() -> Catalogue {
        Catalogue::of(
            &[
                package("linux-image-cloud-amd64", "7.2.13-1", 1),
                package("linux-image-6.1.0-9-cloud-amd64", "6.1.27-1", 20),
                package("linux-image-6.1.0-56-cloud-amd64", "6.1.192-2", 21),
                package("linux-image-6.1.0-56-cloud-amd64-dbg", "6.1.192-2", 900),
                package("linux-image-6.1.0-56-amd64", "6.1.192-2", 60),
                package("linux-image-6.1.0-56-arm64", "6.1.192-2", 60),
                package("linux-image-6.12.117+deb12-cloud-amd64", "6.12.117-1~bpo12+1", 40),
                package("linux-image-6.12.117+deb13-cloud-amd64", "6.12.117-1", 41),
                package("linux-base-6.12.117+deb13-cloud-amd64", "6.12.117-1", 1),
                package("linux-image-7.2.12+deb13-cloud-amd64", "7.2.12-1~bpo13+1", 1),
                package("linux-modules-7.2.12+deb13-cloud-amd64", "7.2.12-1~bpo13+1", 30),
                package("linux-base-7.2.12+deb13-cloud-amd64", "7.2.12-1~bpo13+1", 2),
                package("linux-binary-7.2.12+deb13-cloud-amd64", "7.2.12-1~bpo13+1", 10),
                // Its image is not signed yet.
                package("linux-base-7.3.4+deb13-cloud-amd64", "7.3.4-1", 1),
                package("linux-binary-unsigned-7.3.4+deb13-cloud-amd64", "7.3.4-1", 1),
                // The archive has dropped the rest.
                package("linux-image-7.2.13+deb13-cloud-amd64", "7.2.13-1~bpo13+1", 1),
                package("linux-binary-7.2.13+deb13-cloud-amd64", "7.2.13-1~bpo13+1", 10),
                package("linux-image-7.1.8+deb13-amd64", "7.1.8-1", 1),
                package("linux-binary-7.1.8+deb13-amd64", "7.1.8-1", 9),
                package("linux-base-7.1.8+deb13-amd64", "7.1.8-1", 2),
            ],
            Arch::Amd64,
        )
    }

    #[test]
    fn kernels_are_found_by_their_names() {
        for (text, want) in [
            ("6.1-cloud", Some("6.1.0-56-cloud")),
            ("6.1", Some("6.1.0-56")),
            ("6.1.0-9-cloud", Some("6.1.0-9-cloud")),
            ("6.12-cloud", Some("6.12.117+deb13-cloud")),
            ("6.12.117-cloud", Some("6.12.117+deb13-cloud")),
            ("6.12.117+deb12-cloud", Some("6.12.117+deb12-cloud")),
            ("7.2.12+deb13-cloud-amd64", Some("7.2.12+deb13-cloud")),
            ("7.3-cloud", None),
            ("7.1", Some("7.1.8+deb13")),
            ("7.2.13-cloud", Some("7.2.13+deb13-cloud")),
            ("6.1-rt", None),
            ("6.1.0-56-cloud-arm64", None),
            ("", None),
        ] {
            let catalogue = catalogue();
            let got = catalogue.find(text).ok().map(|offer| offer.name.exact());
            assert_eq!(got.as_deref(), want, "{text}");
        }
    }

    #[test]
    fn the_packages_of_each_layout_are_chosen() {
        for (text, packages, size) in [
            ("6.1-cloud", &["linux-image-6.1.0-56-cloud-amd64"][..], 21),
            ("6.12-cloud", &["linux-image-6.12.117+deb13-cloud-amd64"], 41),
            ("7.1", &["linux-binary-7.1.8+deb13-amd64", "linux-base-7.1.8+deb13-amd64"], 11),
            (
                "7.2-cloud",
                &[
                    "linux-binary-7.2.12+deb13-cloud-amd64",
                    "linux-base-7.2.12+deb13-cloud-amd64",
                    "linux-modules-7.2.12+deb13-cloud-amd64",
                ],
                42,
            ),
        ] {
            let catalogue = catalogue();
            let offer = catalogue.find(text).unwrap();
            let names: Vec<&str> = offer.packages.iter().map(|p| &*p.name).collect();
            assert_eq!(offer.complete, text != "7.1");
            assert_eq!((&*names, offer.size()), (packages, size), "{text}");
        }
    }

    #[test]
    fn the_newest_of_each_series_and_flavour_are_listed_in_order() {
        let names: Vec<String> = catalogue().newest().map(|offer| offer.name.exact()).collect();
        assert_eq!(
            names,
            [
                "6.1.0-56",
                "6.1.0-56-cloud",
                "6.12.117+deb13-cloud",
                "7.1.8+deb13",
                "7.2.12+deb13-cloud",
            ]
        );
    }

    #[test]
    fn a_name_that_nobody_has_gets_near_ones() {
        for (text, nearest) in [
            ("6.1-clod", "6.1-cloud"),
            ("6.2", "6.1"),
            ("6.1.0-57-cloud", "6.1.0-56-cloud"),
            ("7.2-rt", "7.2-cloud"),
        ] {
            let e = catalogue().find(text).unwrap_err();
            assert!(e.nearest.iter().any(|n| n == nearest), "{text}: {e:?}");
            assert!(e.nearest.len() <= 3);
        }
        for text in ["foo", "linux", "debian", "vmlinuz"] {
            assert_eq!(catalogue().find(text).unwrap_err().nearest, [""; 0], "{text}");
        }
        let e = Catalogue::default().find(&"x".repeat(1000)).unwrap_err();
        assert!(e.nearest.is_empty() && e.name.len() == 80);
    }
}
