//! What an authority and a directory on another host say to each other: the bodies of messages 18 to 20.
//!
//! The authority orders: each order says of one device what it is now, and its transaction is its number. The directory says
//! how far it has come. It learns of devices by no other way, and of what it missed once it is back: then all are named again,
//! those first that are revoked.

use std::net::{Ipv4Addr, Ipv6Addr};

use tunnel::PublicKey;

use crate::name::Name;
use crate::network::Network;
use crate::orders::Series;
use crate::record::Device;
use crate::wire::{Malformed, Reader, Writer};

/// What an authority says about itself; also its keepalive. Its transaction rises with each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certifying {
    /// A number that each start of the authority draws.
    pub started: u64,
    /// The orders that the directory is to follow.
    pub series: Series,
    /// Seconds after 1970 on the authority's clock.
    pub time: u64,
    /// The domain that it signs names for.
    pub domain: String,
    /// The pool of virtual IPv4 addresses.
    pub v4: (Ipv4Addr, u8),
    /// The pool of virtual IPv6 addresses.
    pub v6: (Ipv6Addr, u8),
}

/// What a directory answers. Its transaction rises with each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    /// A number that each start of the directory draws.
    pub started: u64,
    /// The orders that it follows.
    pub series: Series,
    /// How many of them it has carried out, which are on its disk.
    pub done: u64,
}

impl Certifying {
    /// Whether it is an authority of this network.
    #[must_use]
    pub fn is_of(&self, network: &Network) -> bool {
        (&self.domain, self.v4, self.v6) == (&network.domain, network.v4, network.v6)
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.number(self.started);
        self.series.write(to);
        to.number(self.time).text(&self.domain);
        to.bytes(&self.v4.0.octets()).bytes(&self.v6.0.octets()).bytes(&[self.v4.1, self.v6.1]);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let started = from.number("a number of 8 bytes")?;
        let series = Series::read(from)?;
        let time = from.number("a time of 8 bytes")?;
        let domain = from.text("a domain")?.to_owned();
        let v4 = from.array::<4>("an IPv4 address")?.into();
        let v6 = from.array::<16>("an IPv6 address")?.into();
        let bits = prefix_lengths(from)?;
        Ok(Self { started, series, time, domain, v4: (v4, bits.0), v6: (v6, bits.1) })
    }
}

impl Following {
    pub(crate) fn write(self, to: &mut Writer) {
        to.number(self.started);
        self.series.write(to);
        to.number(self.done);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let started = from.number("a number of 8 bytes")?;
        let series = Series::read(from)?;
        Ok(Self { started, series, done: from.number("a number of 8 bytes")? })
    }
}

impl Device {
    pub(crate) fn write(&self, to: &mut Writer) {
        to.text(self.name.as_str()).bytes(self.key.as_bytes());
        to.bytes(&self.number.to_le_bytes()).bytes(&[u8::from(self.revoked)]);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let name = Name::read(from)?;
        let key = PublicKey::new(from.array("a public key of 32 bytes")?);
        let number = u32::from_le_bytes(from.array("a number of 4 bytes")?);
        Ok(Self { name, key, number, revoked: from.flag("0, or 1 if it is revoked")? })
    }
}

/// The prefix lengths of an IPv4 and an IPv6 network.
pub(crate) fn prefix_lengths(from: &mut Reader<'_>) -> Result<(u8, u8), Malformed> {
    let at = from.at();
    match from.array("two prefix lengths")? {
        [v4, v6] if v4 <= 32 && v6 <= 128 => Ok((v4, v6)),
        _ => Err(Malformed { at, expected: "prefix lengths up to 32 and 128" }),
    }
}
