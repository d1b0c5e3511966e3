//! A run: opened from a configuration, started, seen to its end.

pub(crate) mod error;
mod files_apart;
pub(crate) mod life;
pub(crate) mod opened;
pub(crate) mod running;
pub(crate) mod wire_spec;
