//! [`Reached`]: how a node reaches a peer, by its own word: what the directory cannot see.

use crate::name::Name;
use crate::wire::{Malformed, Reader, Writer};

/// Peers that a message says it of, at most.
pub const MOST: usize = 12;

/// How a node reaches a peer. It is a word, and nothing depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The peer.
    pub name: Name,
    /// Without the relay.
    pub is_direct: bool,
    /// The round trip in microseconds, if it was measured.
    pub micros: Option<u32>,
}

impl Reached {
    pub(crate) fn write(&self, to: &mut Writer) {
        to.text(self.name.as_str()).bytes(&[u8::from(self.is_direct)]);
        to.bytes(&self.micros.unwrap_or_default().to_le_bytes());
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let name = Name::read(from)?;
        let is_direct = from.flag("0 by the relay, 1 directly")?;
        let micros = u32::from_le_bytes(from.array("microseconds of 4 bytes")?);
        Ok(Self { name, is_direct, micros: (micros != 0).then_some(micros) })
    }
}
