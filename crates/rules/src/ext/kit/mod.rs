//! What several extensions are made of: how options are declared, read and printed, and how headers are looked at.

pub(crate) mod args;
pub(crate) mod buckets;
pub(crate) mod host;
pub(crate) mod ipv6_chain;
pub(crate) mod named_lists;
pub(crate) mod native;
pub(crate) mod number;
pub(crate) mod opaque;
pub(crate) mod option_walk;
pub(crate) mod ports;
pub(crate) mod printer;
#[cfg(test)]
pub(crate) mod probe;
pub(crate) mod queued;
pub(crate) mod rate;
pub(crate) mod span;
pub(crate) mod tcp_header;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod verdict;
pub(crate) mod words;
pub(crate) mod work;
