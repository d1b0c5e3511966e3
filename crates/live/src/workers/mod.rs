//! Workers as a whole: built, watched, asked for their connections, counted.

pub(crate) mod builder;
pub(crate) mod connections;
pub(crate) mod division;
pub(crate) mod owner;
pub(crate) mod restart;
pub(crate) mod status;
pub(crate) mod watch;
