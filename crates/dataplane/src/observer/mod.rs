//! [`Observer`]: who watches a packet on its way, and takes no part in it. Two of them make one, as a pair;
//! [`Events`] makes one of a function that is given every [`Event`].

mod event;
mod pair;

use conntrack::{CtView, Edit, Side, States};
use packet::Packet;
use rules::eval;
use rules::model::{Family, Hook};
use rules::nat::Translated;
use rules::{Iface, KnownFlow};

use crate::disposition::Why;
use crate::path::Path;

pub use event::{Event, Events};

/// Sees what a packet passes. Every method does nothing by default.
pub trait Observer: eval::Observer {
    /// The packet was parsed and starts its walk.
    fn starts(&mut self, _family: Family, _path: Path, _input: Iface<'_>, _output: Iface<'_>) {}

    /// From here on rules of this family evaluate it, which is another one than it was.
    fn evaluates(&mut self, _family: Family) {}

    /// The walk enters a built-in chain of a table.
    fn enters(&mut self, _table: u32, _hook: Hook) {}

    /// Time to live was lowered, or ran out.
    fn ttl(&mut self, _left: Option<u8>) {}

    /// Tracking found the packet's connection, or made it.
    fn tracked(&mut self, _view: &CtView, _flow: KnownFlow<'_>) {}

    /// An end of the packet was translated, to what is known or not.
    fn translated(&mut self, _side: Side, _to: Translated) {}

    /// A helper's connection is about to have this written into the packet.
    fn edited(&mut self, _packet: &Packet<'_>, _edit: &Edit) {}

    /// Its destination is another one, and so is its path, or an interface on it.
    fn rerouted(&mut self, _from: Path, _to: Path, _input: Iface<'_>, _output: Iface<'_>) {}

    /// The packet leaves, as rewritten so far; nothing rewrites it any more.
    fn leaves(&mut self, _packet: &Packet<'_>) {}

    /// The packet leaves; this is its connection now.
    fn settled(&mut self, _flow: KnownFlow<'_>) {}

    /// Its states do not agree on a verdict, which is that of these.
    fn taken(&mut self, _states: States) {}

    /// The verdict depends on this, which is no rule's doing.
    fn depends_on(&mut self, _why: Why) {}
}
