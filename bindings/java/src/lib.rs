//! The native library of `dev.tamis`, tamis for Java: the functions of its class `Native`.
//!
//! Contract: [`natives`] is what the JVM calls, and it alone; what it calls knows no JVM. Nothing that Java hands over is
//! trusted: handles are looked up (`handles`), texts are read as on the command line, and what descriptors say
//! when they come back the hall looks into. No panic leaves the library (`entry`). It installs no handler of signals,
//! and starts no thread that runs Java; but for `invocation` (a feature), by which `tamis run` starts a JVM and calls handlers itself.

/// The command line's own module: the crates below it do not know each other.
#[cfg(feature = "dpdk")]
#[path = "../../../crates/commands/src/dpdk_ports.rs"]
mod dpdk_ports;
mod entry;
mod handles;
#[cfg(feature = "invocation")]
pub mod invocation;
mod live;
pub mod natives;
pub mod offline;
mod options;
mod places;

pub use entry::Thrown;
