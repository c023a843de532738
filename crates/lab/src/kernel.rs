//! A kernel that can be booted: from the archive through the cache, or of one's own.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub mod catalogue;
pub mod fetch;
pub mod image;
pub mod name;
pub mod order;
pub mod own;
pub mod store;

/// An architecture that the lab can emulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// `x86_64`.
    Amd64,
    /// `aarch64`.
    Arm64,
}

impl Arch {
    /// Every architecture of the lab.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// The architecture of this program.
    pub fn of_this_program() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::Amd64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// As `uname -m` and QEMU name it.
    pub fn machine(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }
}

impl fmt::Display for Arch {
    /// As Debian names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        })
    }
}

impl FromStr for Arch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "amd64" | "x86_64" | "x86-64" => Ok(Self::Amd64),
            "arm64" | "aarch64" => Ok(Self::Arm64),
            _ => Err("the lab supports amd64 and arm64".into()),
        }
    }
}

/// A kernel that can be booted, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// How it is called in the lab: `6.1-cloud`, or the path that was given.
    pub name: String,
    /// What it is built for.
    pub arch: Arch,
    /// `uname -r`: `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// The rest of its version banner: `#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-01)`.
    pub version: String,
    /// The image that is booted: bzImage on amd64, Image (plain or gzip) on arm64.
    pub image: PathBuf,
    /// SHA-256 of the image, in hexadecimal.
    pub sha256: String,
    /// Its build configuration.
    pub config: Option<PathBuf>,
    /// Its modules: the folder that `/lib/modules/<release>` would be.
    pub modules: Option<PathBuf>,
    /// The package and its version, where it came from one.
    pub package: Option<String>,
}
