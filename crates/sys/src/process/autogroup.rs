//! Groups in which the kernel schedules all tasks of a session (autogroups, Linux 2.6.38).

use std::{fs, io};

use super::Child;

impl Child {
    /// Gives the process's group `nice`, -20 to 19. Where kernels schedule each session as a group, the
    /// niceness of its tasks counts only among themselves.
    ///
    /// Fails on kernels without such groups, and as setpriority(2) does.
    pub fn set_autogroup_nice(&self, nice: i32) -> io::Result<()> {
        fs::write(format!("/proc/{}/autogroup", self.pid), nice.to_string())
    }
}
