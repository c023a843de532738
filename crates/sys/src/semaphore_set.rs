//! System V semaphores: sets that belong to the system, and outlive who made them.

use std::io;

use crate::checked;

/// The number of a set, on this system until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetId(i32);

impl SetId {
    /// The set with this number, as /proc/sysvipc/sem lists it.
    pub fn of(number: i32) -> Self {
        Self(number)
    }

    /// Its number.
    pub fn number(self) -> i32 {
        self.0
    }
}

/// Makes a set of `count` semaphores, all 0, that has no key: nobody finds it who does not look for
/// it. Only this user may use it.
pub fn create(count: u16) -> io::Result<SetId> {
    // SAFETY: numbers only.
    let id = unsafe { libc::semget(libc::IPC_PRIVATE, libc::c_int::from(count), 0o600) };
    checked(id).map(SetId)
}

/// Removes a set. Whoever waits for one of its semaphores wakes with an error.
pub fn remove(set: SetId) -> io::Result<()> {
    // SAFETY: this command takes no further argument.
    checked(unsafe { libc::semctl(set.0, 0, libc::IPC_RMID) }).map(drop)
}

/// Sets a semaphore to `value`, 32,767 at most.
pub fn set_value(set: SetId, semaphore: u16, value: u16) -> io::Result<()> {
    let value = libc::c_int::from(value);
    // SAFETY: this command takes a number, which C libraries read as the union's first member.
    checked(unsafe { libc::semctl(set.0, libc::c_int::from(semaphore), libc::SETVAL, value) })
        .map(drop)
}

/// The value of a semaphore.
pub fn value(set: SetId, semaphore: u16) -> io::Result<u16> {
    // SAFETY: this command takes no further argument.
    let value =
        checked(unsafe { libc::semctl(set.0, libc::c_int::from(semaphore), libc::GETVAL) })?;
    u16::try_from(value).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Adds `change` to a semaphore; as long as it would become negative, waits.
#[inline]
pub fn add(set: SetId, semaphore: u16, change: i16) -> io::Result<()> {
    let mut operation = libc::sembuf { sem_num: semaphore, sem_op: change, sem_flg: 0 };
    // SAFETY: one operation, live for the call.
    checked(unsafe { libc::semop(set.0, &raw mut operation, 1) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_values_until_it_is_removed() {
        let set = match create(3) {
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => return,
            other => other.unwrap(),
        };
        set_value(set, 2, 32_767).unwrap();
        add(set, 0, 1).unwrap();
        assert_eq!([0, 1, 2].map(|at| value(set, at).unwrap()), [1, 0, 32_767]);
        add(set, 0, -1).unwrap();
        assert_eq!(value(set, 0).unwrap(), 0);
        remove(set).unwrap();
        assert!(value(set, 0).is_err() && remove(set).is_err());
    }
}
