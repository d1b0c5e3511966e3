//! `tamis ctl`: a request to a run through its control socket. `command` has the commands and `control` what they share; each
//! group of commands is in a module, with its arguments, the request that they make, and the answer for a screen.

mod capture;
mod command;
mod control;
mod lists;
mod rules;
mod seen;
mod shadow;
mod snapshot;

pub(crate) use command::{CtlArgs, run};
pub(crate) use control::{nobody, refused};
