//! [`WalkOptions`]: how packets walk, as a caller says it, and what that makes of rules and configuration. The
//! command line and the bindings read it from what they are given, each value by [`words`].

mod files;
mod folder;
mod foreign;
pub mod geoip;
mod legacy;
pub mod names;
mod native;
mod options;
pub mod words;

pub use crate::setup::Setup;
pub use folder::HostFolder;
pub use options::{HostFacts, WalkOptions};
