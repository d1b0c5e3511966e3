//! The atomic cell of `desk`, whose models put another one in its place.

pub(super) use crossbeam_utils::atomic::AtomicCell;
