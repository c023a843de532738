//! A pipe.

use std::fs::File;
use std::io;

use wakescope_sys::pipe::pipe;

use super::stream::{End, Stream};

pub(super) type Pipe = Stream<File>;

impl End for File {
    fn both() -> io::Result<(Self, Self)> {
        pipe()
    }
}
