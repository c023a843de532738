//! Run folders on disk, and the one place that opens files to write.
//!
//! wakescope is often run as root in folders that others may write to. So nothing is written
//! through a link that somebody else made, into a file that somebody else put there, or into a
//! folder in which others may exchange files; and nothing waits for the reader of a FIFO.

mod output;
mod run_folder;
mod trust;

pub use output::{copy_new, create_output, open_lock, write_new};
pub use run_folder::{RECORD, RunFiles, RunFolderError, SAMPLES};
pub use trust::{Refused, check_folder, is_trusted_owner};
