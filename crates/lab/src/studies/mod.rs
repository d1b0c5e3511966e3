//! What the studies built and tamis does not need: it is measured against it. The engines of access control
//! are a crate of their own, [`engines`], so that loom explores them without building the rest.

#[cfg(target_os = "linux")]
pub mod blob;
pub mod counters;
pub mod orchestrate;
#[cfg(target_os = "linux")]
pub mod overlay;
