//! What a directory and a relay on a host of its own say to each other: the bodies of messages 12 to 15, and the [`Series`] of all
//! orders.
//!
//! The directory orders: each order is about one pair of nodes, and its transaction is its number. The relay says how far it
//! has come: so a lost order is repeated, and a repeated or late one does nothing.

use std::net::SocketAddr;

use tunnel::PublicKey;

use crate::name::Name;
use crate::paths::Pair;
use crate::wire::{Malformed, Reader, Writer};

/// Orders that are counted together: after a restart of either side it is another one, which begins with all paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Series {
    /// The number that the start of who orders drew.
    pub by: u64,
    /// The number that the start of who carries them out drew.
    pub to: u64,
    /// Which one of the first one's start: 1 and more; 0 is none.
    pub number: u64,
}

/// What a relay says about itself; also its keepalive. Its transaction rises with each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relaying {
    /// A number that each start of the relay draws: after another one, it has no path.
    pub started: u64,
    /// The orders that it follows.
    pub series: Series,
    /// How many of them it has carried out.
    pub done: u64,
    /// The first and the last port that it serves.
    pub ports: (u16, u16),
    /// Datagrams that it forwarded, and dropped.
    pub counts: (u64, u64),
}

/// The order to forward between two nodes, which may be known already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The orders that it is of.
    pub series: Series,
    /// The relay's port.
    pub port: u16,
    /// The two nodes, in the order of their names.
    pub ends: [End; 2],
}

/// A node of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The node, by its name.
    pub name: Name,
    /// The key of the node in the tunnel.
    pub key: PublicKey,
    /// Where its session with the directory comes from, if that is known.
    pub at: Option<SocketAddr>,
}

impl Series {
    pub(crate) fn write(self, to: &mut Writer) {
        to.number(self.by).number(self.to).number(self.number);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut number = || from.number("a number of 8 bytes");
        Ok(Self { by: number()?, to: number()?, number: number()? })
    }
}

impl Relaying {
    pub(crate) fn write(&self, to: &mut Writer) {
        to.number(self.started);
        self.series.write(to);
        to.number(self.done);
        to.bytes(&self.ports.0.to_le_bytes()).bytes(&self.ports.1.to_le_bytes());
        to.number(self.counts.0).number(self.counts.1);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let started = from.number("a number of 8 bytes")?;
        let series = Series::read(from)?;
        let done = from.number("a number of 8 bytes")?;
        let mut port = || from.array("a port of 2 bytes").map(u16::from_le_bytes);
        let ports = (port()?, port()?);
        let mut count = || from.number("a count of 8 bytes");
        Ok(Self { started, series, done, ports, counts: (count()?, count()?) })
    }
}

impl Join {
    /// The nodes.
    #[must_use]
    pub fn pair(&self) -> Pair {
        Pair::of(&self.ends[0].name, &self.ends[1].name)
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        self.series.write(to);
        to.bytes(&self.port.to_le_bytes());
        for End { name, key, at } in &self.ends {
            to.text(name.as_str()).bytes(key.as_bytes()).endpoints(at.as_slice());
        }
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let series = Series::read(from)?;
        let port = u16::from_le_bytes(from.array("a port of 2 bytes")?);
        let first = End::read(from)?;
        let at = from.at();
        let ends = [first, End::read(from)?];
        match ends[0].name < ends[1].name {
            true => Ok(Self { series, port, ends }),
            false => Err(Malformed { at, expected: "a later name than the first" }),
        }
    }
}

impl End {
    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let name = Name::read(from)?;
        let key = PublicKey::new(from.array("a public key of 32 bytes")?);
        let at = from.endpoints(1, "at most one address and port")?.pop();
        Ok(Self { name, key, at })
    }
}

impl Pair {
    pub(crate) fn write(&self, to: &mut Writer) {
        to.text(self.0.as_str()).text(self.1.as_str());
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let first = Name::read(from)?;
        let at = from.at();
        let second = Name::read(from)?;
        match first < second {
            true => Ok(Self(first, second)),
            false => Err(Malformed { at, expected: "a later name than the first" }),
        }
    }
}

impl Name {
    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (at, expected) = (from.at(), "a name of a node");
        from.text(expected)?.parse().map_err(|_| Malformed { at, expected })
    }
}
