//! Maps of programs, taken out of what was loaded.

use std::os::fd::AsFd;

use aya::Ebpf;
use aya::maps::{Map, MapError};
use wakescope_sys::shared::Words;

use crate::error::TraceError;

/// The map of this name.
pub(crate) fn taken(programs: &mut Ebpf, name: &'static str) -> Result<Map, TraceError> {
    programs.take_map(name).ok_or(TraceError::Refused(name, "it has no such map".into()))
}

/// What is made of an error of the map of this name.
pub(crate) fn refused(name: &'static str) -> impl Fn(MapError) -> TraceError {
    move |e| TraceError::Refused(name, e.to_string())
}

/// The array of this name, mapped as so many words.
pub(crate) fn mapped(
    programs: &mut Ebpf,
    name: &'static str,
    words: usize,
) -> Result<Words, TraceError> {
    match taken(programs, name)? {
        Map::Array(data) => Words::map(data.fd().as_fd(), words)
            .map_err(|e| TraceError::Refused(name, e.to_string())),
        _ => Err(TraceError::Refused(name, "it is no array".into())),
    }
}
