//! What expressions read for a packet, one file for each kind. [`Load`] is what they have in common.

pub(super) mod connection;
pub(super) mod constant;
pub(super) mod fib;
pub(super) mod hash;
pub(super) mod lookup;
pub(super) mod meta;
pub(super) mod operation;
pub(super) mod part;
pub(super) mod payload;
pub(super) mod route;
pub(super) mod time;

use std::fmt::Debug;

use super::word::Loaded;
use rules::Transit;

/// Something that is read for a packet.
pub(crate) trait Load: Debug + Send + Sync {
    /// What it comes to for this packet.
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded;

    /// Whether a rule that reads it makes the kernel track connections.
    fn tracks(&self) -> bool {
        false
    }

    /// What is not evaluated of it, by name; everything else that it lacks is the packet's.
    fn lacks(&self) -> Option<&str> {
        None
    }

    /// What of the host or the capture it asks for, where that is what makes it unknown.
    fn asks_for(&self) -> Option<&'static str> {
        None
    }

    /// Whether it comes to something for every packet.
    fn always(&self) -> bool {
        false
    }

    /// Whether it says the same when it is asked twice about one packet.
    fn repeats(&self) -> bool {
        true
    }

    /// What the bytecode of the kernel loads for it, in words, for comparison with what nft makes of a rule.
    fn bytecode(&self, show: &mut dyn FnMut(String));
}

/// Whole bytes that hold `bits` bits.
pub(super) fn bytes(bits: u32) -> u32 {
    bits.div_ceil(8)
}
