//! The compiler that builds a module, and the packages that it comes in.
//!
//! Packages of headers name the compiler of their kernel's architecture. On a machine of that
//! architecture it is taken as it is named. On another one a cross compiler of the same version is.

use super::headers::{TOOLS, is_headers};
use crate::archive::Package;
use crate::kernel::Arch;

/// Which compiler builds a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compiler {
    /// The one that the kernel's headers depend on.
    Native,
    /// One that runs here, for kernels of another architecture.
    Cross {
        /// What runs here.
        host: Arch,
        /// What its programs' names begin with, without the dash at the end.
        triplet: &'static str,
    },
}

impl Compiler {
    /// The one for kernels of `arch` on a machine of `host`, or none. Debian's host programs for kernels
    /// of arm64 are the same as those of amd64; amd64's need `objtool`, which was not tried on arm64.
    pub(super) fn of(arch: Arch, host: Option<Arch>) -> Option<Self> {
        match (host?, arch) {
            (host, arch) if host == arch => Some(Self::Native),
            (host @ Arch::Amd64, Arch::Arm64) => {
                Some(Self::Cross { host, triplet: "aarch64-linux-gnu" })
            }
            _ => None,
        }
    }

    /// What make has to know. The headers themselves name the architecture.
    pub(super) fn make_arguments(self) -> Vec<String> {
        match self {
            Self::Native => Vec::new(),
            Self::Cross { triplet, .. } => vec![format!("CROSS_COMPILE={triplet}-")],
        }
    }
}

/// What a cross build needs, by the architecture of the archive that it is fetched from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CrossPackages {
    /// Headers, of the kernel's architecture.
    pub(super) headers: Vec<Package>,
    /// Names of programs, of this machine's architecture. Others follow, which they depend on.
    pub(super) programs: Vec<String>,
}

impl CrossPackages {
    /// Chooses from `closure`, the headers of a kernel with all that they depend on on its own architecture.
    /// The error says what is not in there.
    pub(super) fn choose(closure: Vec<Package>, triplet: &str) -> Result<Self, &'static str> {
        let version = closure.iter().find_map(|package| version_of_gcc(&package.name));
        let version = version.ok_or("name no compiler")?;
        let kbuild = closure.iter().find(|package| package.name.starts_with("linux-kbuild-"));
        let kbuild = kbuild.ok_or("name no programs to build with")?.name.clone();
        let tools = TOOLS.map(String::from);
        let programs = [kbuild, format!("gcc-{version}-{triplet}")].into_iter().chain(tools);
        let programs = programs.collect();
        let headers = closure.into_iter().filter(|package| is_headers(&package.name)).collect();
        Ok(Self { headers, programs })
    }
}

/// The version of the compiler in a package: `14` of `gcc-14`, and of `gcc-14-for-host`, which is the one of
/// the kernel's architecture as well.
fn version_of_gcc(package: &str) -> Option<&str> {
    let version = package.strip_prefix("gcc-")?;
    let version = version.strip_suffix("-for-host").unwrap_or(version);
    let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIPLET: &str = "aarch64-linux-gnu";

    #[test]
    fn the_compiler_depends_on_both_architectures() {
        let cross = Compiler::Cross { host: Arch::Amd64, triplet: TRIPLET };
        for (arch, host, want) in [
            (Arch::Amd64, Some(Arch::Amd64), Some(Compiler::Native)),
            (Arch::Arm64, Some(Arch::Arm64), Some(Compiler::Native)),
            (Arch::Arm64, Some(Arch::Amd64), Some(cross)),
            (Arch::Amd64, Some(Arch::Arm64), None),
            (Arch::Amd64, None, None),
        ] {
            assert_eq!(Compiler::of(arch, host), want, "{arch} on {host:?}");
        }
        assert_eq!(Compiler::Native.make_arguments(), [""; 0]);
        assert_eq!(cross.make_arguments(), ["CROSS_COMPILE=aarch64-linux-gnu-"]);
    }

    fn closure(names: &[&str]) -> Vec<Package> {
        let package = |name: &&str| Package { name: (*name).into(), ..Package::default() };
        names.iter().map(package).collect()
    }

    #[test]
    fn a_cross_build_takes_headers_of_the_kernel_and_programs_of_this_machine() {
        // As apt names them for 6.1, 6.12 and 7.2.
        for (release, common, kbuild, compiler, want) in [
            (
                "6.1.0-50-cloud-arm64",
                "linux-headers-6.1.0-50-common",
                "linux-kbuild-6.1",
                &["gcc-16-base", "gcc-12-base", "cpp-12", "gcc-12"][..],
                "gcc-12-aarch64-linux-gnu",
            ),
            (
                "6.12.117+deb13-rt-arm64",
                "linux-headers-6.12.117+deb13-common-rt",
                "linux-kbuild-6.12.117+deb13",
                &["gcc-16-base", "cpp-14", "gcc-14-aarch64-linux-gnu", "gcc-14"],
                "gcc-14-aarch64-linux-gnu",
            ),
            (
                "7.2.13+deb14-cloud-arm64",
                "linux-headers-7.2.13+deb14-common",
                "linux-kbuild-7.2.13+deb14",
                &["gcc-16-base", "gcc-16-aarch64-linux-gnu", "gcc-16-for-host"],
                "gcc-16-aarch64-linux-gnu",
            ),
        ] {
            let image = format!("linux-image-{release}");
            let own = format!("linux-headers-{release}");
            let names = [compiler, &[&image, "libc6", common, kbuild, &own]].concat();
            let chosen = CrossPackages::choose(closure(&names), TRIPLET).unwrap();
            assert_eq!(chosen.headers, closure(&[common, &own]), "{release}");
            assert_eq!(chosen.programs[..2], [kbuild, want], "{release}");
            assert_eq!(chosen.programs[2..], TOOLS, "{release}");
        }
    }

    #[test]
    fn headers_that_name_no_compiler_are_refused() {
        for (names, want) in [
            (&["linux-headers-x", "linux-kbuild-x", "gcc-14-base"][..], "name no compiler"),
            (&["linux-headers-x", "gcc-14"], "name no programs to build with"),
        ] {
            assert_eq!(CrossPackages::choose(closure(names), TRIPLET).unwrap_err(), want);
        }
    }
}
