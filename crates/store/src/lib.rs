//! Run folders on disk, the one place that opens files to write, and the one rule of what may be
//! executed or believed.
//!
//! wakescope is often run as root in folders that others may write to. So nothing is written
//! through a link that somebody else made, into a file that somebody else put there, or into a
//! folder in which others may exchange files; and nothing waits for the reader of a FIFO.

mod contents;
mod growing;
#[cfg(test)]
mod link_tests;
mod output;
mod own;
mod roomy;
mod run_folder;
mod window_folder;

pub use contents::{Contents, check_runs_folder};
pub use growing::GrowingFile;
pub use output::{
    Output, check_output, copy_new, create_folder, create_new, create_output, is_full, open_lock,
    write_new,
};
pub use own::{check_own, make_own_folder, open_own_folder};
pub use run_folder::{
    EPISODES, EPISODES_FRESH, RECORD, RunFiles, RunFolderError, SAMPLES, SeriesFolder,
};
pub use window_folder::{AppendError, WindowFiles, WindowFolder, window_files};

pub use wakescope_sys::trust::{Refused, check_folder, is_trusted_owner};
pub use wakescope_sys::way::WayError;
