//! Interfaces of the calling thread's namespace by name: which there are, whether they are up, and taking them up and
//! down.
//!
//! Contract: an answer holds for the moment; an interface may be removed at any time, which is an error then. Nothing
//! here receives or transmits.
//!
//! Source: `netdevice(7)`, `if_nameindex(3)`, `linux/ethtool.h`; what `IFF_RUNNING` means: Linux
//! `Documentation/networking/operstates.rst`.

mod interfaces;
mod sys;

pub use interfaces::{has_link, is_veth, leaves_work, names, set_up};
