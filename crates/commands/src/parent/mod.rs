//! [`Parent`]: the process that opens devices for a run which has given up what that takes.
//!
//! Contract: started before the run opens anything, as another instance of this program, so that it shares no memory
//! with the run and has none of its descriptors but one end of a socket pair. It ends with the run. A parent that has
//! ended, or gives no answer for a second, is asked no more.
//!
//! Source: unix(7) (`SOCK_SEQPACKET`, `SCM_RIGHTS`).

mod message;
mod process;
mod serve;
#[cfg(test)]
mod tests;

pub(crate) use process::Parent;
pub(crate) use serve::{ParentArgs, run};
