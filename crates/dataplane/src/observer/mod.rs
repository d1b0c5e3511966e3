//! [`Observer`]: watches a packet on its way, and takes no part in it. Two observers make one, as a pair; [`Events`]
//! makes an observer of a function that is given every [`Event`].

mod event;
mod pair;

use conntrack::{CtView, Edit, Side, States};
use packet::Packet;
use rules::eval;
use rules::model::{Family, Hook};
use rules::nat::Translated;
use rules::{Iface, KnownFlow};

use crate::disposition::Why;
use crate::routing::path::Path;

pub use event::{Event, Events};

/// Sees what a packet passes. Every method does nothing by default.
pub trait Observer: eval::Observer {
    /// The packet was parsed and starts its walk.
    fn starts(&mut self, _family: Family, _path: Path, _input: Iface<'_>, _output: Iface<'_>) {}

    /// From here on the rules of this family evaluate the packet, instead of another family's.
    fn evaluates(&mut self, _family: Family) {}

    /// The walk enters a table by a base chain; by none where the table translates at the hook without one.
    fn enters(&mut self, _table: u32, _chain: Option<u32>, _hook: Hook) {}

    /// The time to live was lowered, or ran out.
    fn ttl(&mut self, _left: Option<u8>) {}

    /// Tracking found the packet's connection, or made it.
    fn tracked(&mut self, _view: &CtView, _flow: KnownFlow<'_>) {}

    /// An end of the packet was translated; the new value may be unknown.
    fn translated(&mut self, _side: Side, _to: Translated) {}

    /// A helper of the connection is about to write this into the packet.
    fn edited(&mut self, _packet: &Packet<'_>, _edit: &Edit) {}

    /// The packet's destination has changed, and so has its path, or an interface on it.
    fn rerouted(&mut self, _from: Path, _to: Path, _input: Iface<'_>, _output: Iface<'_>) {}

    /// The packet leaves, as rewritten so far; nothing rewrites it any more.
    fn leaves(&mut self, _packet: &Packet<'_>) {}

    /// The packet leaves; this is its connection now.
    fn settled(&mut self, _flow: KnownFlow<'_>) {}

    /// The packet's possible states do not agree on a verdict; the verdict is the one under these states.
    fn taken(&mut self, _states: States) {}

    /// The verdict depends on this, which is not a rule.
    fn depends_on(&mut self, _why: Why) {}

    /// Whether it wants to see what the segments of a superframe may have hit, of which there may be more than one.
    fn follows_segments(&self) -> bool {
        true
    }
}

impl Observer for eval::Nobody {}
