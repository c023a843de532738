//! A pair of Unix stream sockets.

use std::io;
use std::os::unix::net::UnixStream;

use super::stream::{End, Stream};

pub(super) type Socketpair = Stream<UnixStream>;

impl End for UnixStream {
    fn both() -> io::Result<(Self, Self)> {
        Self::pair()
    }
}
