//! Reads a module from a file that may be compressed.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use wakescope_sys::input::open_input;

use super::ModulesError;
use crate::archive::{ArchiveError, tool};
use crate::watch::Unwatched;

/// The largest module of Debian's (amdgpu) has a third of that.
const MODULE_MOST: u64 = 64 << 20;

/// How a module's file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    Gzip,
    Xz,
    Zstd,
}

impl Packing {
    /// Every packing that a kernel can be built with.
    pub(super) const ALL: [Self; 4] = [Self::None, Self::Gzip, Self::Xz, Self::Zstd];

    /// What the file's name ends with.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::None => ".ko",
            Self::Gzip => ".ko.gz",
            Self::Xz => ".ko.xz",
            Self::Zstd => ".ko.zst",
        }
    }
}

/// The module in `path`.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ModulesError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let packing = Packing::ALL.into_iter().find(|packing| name.ends_with(packing.suffix()));
    let failed = |e| ModulesError::Read(path.into(), e);
    // Also of what another program unpacks: it would wait for the writer of a FIFO.
    let file = open_input(path).map_err(failed)?;
    let bytes = match packing {
        None | Some(Packing::None) => bounded(file).map_err(failed)?,
        Some(Packing::Gzip) => bounded(MultiGzDecoder::new(file))
            .map_err(|e| ModulesError::Packed(path.into(), e.to_string()))?,
        Some(Packing::Xz) => unpacked_by("xz", path)?,
        Some(Packing::Zstd) => unpacked_by("zstd", path)?,
    };
    if bytes.len() as u64 > MODULE_MOST {
        return Err(ModulesError::NoModule(path.into(), "it is too large"));
    }
    Ok(bytes)
}

/// All of `file`, or more than a module may have.
fn bounded(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MODULE_MOST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What `program` makes of a file. Where modules are compressed in its way, it is there: a kernel's
/// build uses it to pack them.
fn unpacked_by(program: &'static str, path: &Path) -> Result<Vec<u8>, ModulesError> {
    let found = tool::find(program).ok_or_else(|| ModulesError::NoTool(path.into(), program))?;
    let tool = tool::Tool::new(found).args(["--decompress", "--stdout", "--quiet", "--"]).arg(path);
    let packed = |why: String| ModulesError::Packed(path.into(), why);
    // A reader that has enough leaves, and the program ends with its pipe.
    let ended = tool::run(&tool, bounded, &mut Unwatched, |_| Ok(()));
    let ended = ended.map_err(|e: ArchiveError| packed(e.to_string()))?;
    let success = ended.success();
    let bytes = ended.output.map_err(|e| packed(e.to_string()))?;
    if success || bytes.len() as u64 > MODULE_MOST {
        return Ok(bytes);
    }
    let said = ended.complaints.lines().next_back().map(str::to_owned);
    Err(packed(said.unwrap_or_else(|| ended.exit.to_string())))
}
