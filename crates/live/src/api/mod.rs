//! The requests to a run and its answers, whatever the surface.

pub(crate) mod parts;
mod refusals;
pub(crate) mod request;
pub(crate) mod requests;
mod snapshot;
pub(crate) mod status;
pub(crate) mod watchers;
pub(crate) mod words;
