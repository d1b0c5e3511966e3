//! Address translation as the Linux kernel does it, on top of [`conntrack`].
//!
//! The nat chains decide once per flow how an end is translated. A target says what it makes of it ([`Translation`]),
//! the walk which target that is, and [`bind`] takes a mapping from its [`Range`]; a flow that none has claimed keeps
//! what it has. [`turn`] says what a packet meets at a hook:
//! the chains, or what they decided before. [`rewrite::packet`] then writes the flow's addresses and ports
//! into the packet, [`icmp_error::packet`] into an error and what it quotes,
//! [`payload::write()`] what a helper has rewritten. What the kernel drops instead `untranslatable` says.
//!
//! What cannot be known stays open: a mapping that the kernel draws at random, or takes from an interface of
//! which no address is given, is forgotten in the packet and indeterminate in the flow, unless a recording shows
//! what it was ([`Drawn`]).
//!
//! Source: Linux 6.18 `nf_nat_core.c` (`nf_nat_inet_fn`, `nf_nat_setup_info`), `nf_nat_proto.c`.

mod bind;
mod binding;
mod choose;
mod draw;
mod drawn;
mod forget;
pub mod icmp_error;
pub(crate) mod jhash;
pub mod payload;
mod range;
pub mod rewrite;
mod translation;
mod turn;
mod untranslatable;

pub use bind::{bind, bind_null, crowd, has_part, is_crowded, may_be_taken, may_move_source};
pub use binding::{Drawn, Redirected};
pub use drawn::{bind_drawn, undo, write_drawn};
pub use forget::{answers_any, forget, forget_address, forget_payload, is_translated};
pub use range::{Gives, Ports, Range};
pub use translation::{Mapping, Translation, masquerade, redirect};
pub use turn::{Turn, turn};

use crate::family::Hook;
use conntrack::Side;
use std::net::IpAddr;

/// Result of translating an end of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Translated {
    /// The end stays as it is.
    No,
    /// The end has this address, and this port or ICMP identifier, now.
    To(IpAddr, Option<u16>),
    /// What it is now is not known.
    Unknown,
    /// What it is now is not known, nor whether the kernel drops the packet: it does if this end is translated at
    /// all.
    UnknownOrDropped,
    /// The kernel drops the packet: it has nothing to write to, or would send its receiver to an address that is not
    /// what it seems.
    Dropped,
}

/// The end of a packet that is translated at a hook.
#[must_use]
pub fn side_at(hook: Hook) -> Side {
    match hook {
        Hook::Postrouting | Hook::Input => Side::Source,
        _ => Side::Destination,
    }
}
