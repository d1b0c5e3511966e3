//! [`Wanted`]: which flows are meant by who lists or deletes some, in the words of conntrack(8).
//!
//! Contract: a field without a value fits every flow. Addresses and ports are those in a listing: of the original
//! direction, or of the reply where the name says so.

use std::net::IpAddr;

use crate::flow::Flow;
use crate::key::{Tuple, has_ports};

/// A prefix of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

/// Which flows are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Protocol number: `-p`.
    pub protocol: Option<u8>,
    /// `-s`.
    pub source: Option<Prefix>,
    /// `-d`.
    pub destination: Option<Prefix>,
    /// `--sport`; flows of protocols without ports have none.
    pub source_port: Option<u16>,
    /// `--dport`.
    pub destination_port: Option<u16>,
    /// `-r`.
    pub reply_source: Option<Prefix>,
    /// `-q`.
    pub reply_destination: Option<Prefix>,
    /// Mark and the bits of it that count: `-m`.
    pub mark: Option<(u32, u32)>,
}

impl Prefix {
    /// Reads `ADDRESS` or `ADDRESS/BITS`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse().ok()?,
            Some(_) => return None,
        };
        (bits <= most).then_some(Self { address, bits })
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        let shift = |most: u8| u32::from(most - self.bits);
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                differing.checked_shr(shift(128)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl Wanted {
    /// Whether every flow is meant.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this flow is.
    pub(crate) fn has(&self, flow: &Flow) -> bool {
        self.has_tuples(&flow.original, &flow.reply)
            && self.mark.is_none_or(|(mark, bits)| flow.mark & bits == mark)
    }

    fn has_tuples(&self, original: &Tuple, reply: &Tuple) -> bool {
        let addressed = |wanted: Option<Prefix>, address| wanted.is_none_or(|one| one.has(address));
        let ports = has_ports(original.protocol());
        let port = |wanted: Option<u16>, port| wanted.is_none_or(|one| ports && one == port);
        self.protocol.is_none_or(|protocol| protocol == original.protocol())
            && addressed(self.source, original.source())
            && addressed(self.destination, original.destination())
            && addressed(self.reply_source, reply.source())
            && addressed(self.reply_destination, reply.destination())
            && port(self.source_port, original.source_part())
            && port(self.destination_port, original.destination_part())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        Prefix::parse(text).unwrap()
    }

    #[test]
    fn prefixes_hold_what_their_bits_say() {
        let is_in = |text: &str, address: &str| prefix(text).has(address.parse().unwrap());
        assert!(is_in("10.0.0.1", "10.0.0.1") && !is_in("10.0.0.1", "10.0.0.2"));
        assert!(is_in("10.0.0.0/8", "10.255.0.1") && !is_in("10.0.0.0/8", "11.0.0.0"));
        assert!(is_in("0.0.0.0/0", "255.0.0.1") && !is_in("0.0.0.0/0", "::1"));
        assert!(is_in("::/0", "ffff::") && is_in("2001:db8::/32", "2001:db8:1::"));
        assert!(!is_in("2001:db8::/32", "2001:db9::"));
        for wrong in ["", "10.0.0.1/33", "::/129", "10.0.0.0/+8", "10.0.0/8", "10.0.0.0/"] {
            assert_eq!(Prefix::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn flows_are_told_apart_by_each_word() {
        let of =
            |protocol| Tuple::new([10, 0, 0, 1].into(), [10, 0, 0, 9].into(), protocol, [4000, 80]);
        let (tcp, any) = (of(6), Wanted::default());
        let has =
            |wanted: Wanted, tuple: Tuple| wanted.has_tuples(&tuple, &tuple.inverse().unwrap());
        assert!(
            any.is_any() && has(any, tcp) && has(any, of(1).with_destination([1; 4].into(), 8))
        );
        let cases = [
            (Wanted { protocol: Some(6), ..any }, Wanted { protocol: Some(17), ..any }),
            (
                Wanted { source: Some(prefix("10.0.0.0/31")), ..any },
                Wanted { source: Some(prefix("10.0.0.9")), ..any },
            ),
            (
                Wanted { destination: Some(prefix("10.0.0.9")), ..any },
                Wanted { destination: Some(prefix("10.0.0.1")), ..any },
            ),
            (
                Wanted { reply_source: Some(prefix("10.0.0.9")), ..any },
                Wanted { reply_source: Some(prefix("10.0.0.1")), ..any },
            ),
            (
                Wanted { reply_destination: Some(prefix("10.0.0.1")), ..any },
                Wanted { reply_destination: Some(prefix("10.0.0.9")), ..any },
            ),
            (Wanted { source_port: Some(4000), ..any }, Wanted { source_port: Some(80), ..any }),
            (
                Wanted { destination_port: Some(80), ..any },
                Wanted { destination_port: Some(4000), ..any },
            ),
        ];
        for (fits, does_not) in cases {
            assert!(has(fits, tcp) && !fits.is_any(), "{fits:?}");
            assert!(!has(does_not, tcp), "{does_not:?}");
        }
        assert!(!has(Wanted { source_port: Some(4000), ..any }, of(47)), "GRE has no ports");
    }
}
