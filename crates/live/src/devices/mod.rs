//! Devices of a run: links that disappear and come back, and tunnels.

pub(crate) mod links;
pub(crate) mod owner;
