//! A lab of real programs: curl, nginx, nmap and their like talk through this machine's kernel, which counts; what
//! tcpdump recorded meanwhile is replayed, and each counter compared.
//!
//! A scene is a shell script of its own (`scenes/NAME.sh`): a firewall in the namespace `r`, rules, programs around
//! it. [`stage::play`] runs it inside mount, PID and network namespaces that end with it, and leaves a [`Recording`]:
//! the host's folder, captures of several kinds, and what the kernel counted. [`compare::compare`] runs a `tamis`
//! binary over one [`Way`] of recording. A counter is *surely wrong* when the kernel's value is not within
//! `packets ..= packets + maybe`.

pub mod compare;
pub mod counters;
pub mod listing;
pub mod recording;
pub mod scenes;
pub mod shuffle;
pub mod stage;

pub use compare::{Comparison, Wrong};
pub use recording::{Act, Recording, Way};
pub use scenes::{SCENES, Scene};
