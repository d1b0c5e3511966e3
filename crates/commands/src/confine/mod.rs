//! Giving up privileges between opening and running: capabilities, gaining new ones, the system calls that a run makes
//! no use of, and files that are not its own.
//!
//! Contract: to be called by the only thread that there is, after everything is open: what is given up is a thread's
//! own, and threads that start later have it from this one. What the kernel does not have is reported once, and the
//! rest is given up all the same; under [`Privileges::Required`] it is an error. Nothing here can be taken back.
//!
//! Source: capabilities(7), prctl(2) (`PR_SET_NO_NEW_PRIVS`), seccomp(2), landlock(7).

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod files;
mod give_up;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(all(test, target_os = "linux"))]
mod tests;

pub(crate) use give_up::confine;
#[cfg(target_os = "linux")]
pub(crate) use give_up::keep_opening;
