//! Routing: whose packet it is, and where it goes; once when it comes, again after its translation or its mark.
//!
//! `course` decides the first, `interfaces` the second, `reroute` both again, with what `host` says of its routes; a `Way` on
//! a `Path` is what they decide. `bridge` has what a frame's bridge passes on.

pub(crate) mod bridge;
pub(crate) mod course;
pub(crate) mod interfaces;
pub(crate) mod path;
pub(crate) mod reroute;
pub(crate) mod way;
