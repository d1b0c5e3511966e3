//! A block of addresses: a prefix such as `10.0.0.0/8`, or one address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First and last address of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// A block of IPv4.
    V4((u32, u32)),
    /// A block of IPv6.
    V6((u128, u128)),
}

/// Writes the block as [`Block::parse`] reads it.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // First and last address differ in the bits after the prefix.
        match *self {
            Self::V4((low, high)) => {
                write!(f, "{}/{}", Ipv4Addr::from(low), (low ^ high).leading_zeros())
            }
            Self::V6((low, high)) => {
                write!(f, "{}/{}", Ipv6Addr::from(low), (low ^ high).leading_zeros())
            }
        }
    }
}

impl Block {
    /// Reads `ADDRESS` or `ADDRESS/BITS`; bits after the prefix do not count.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let whole = |most: u32| match bits {
            None => Some(0),
            Some(bits) if bits.bytes().all(|c| c.is_ascii_digit()) => {
                most.checked_sub(bits.parse().ok()?)
            }
            Some(_) => None,
        };
        Some(match address.parse().ok()? {
            IpAddr::V4(address) => {
                let host = u32::MAX.checked_shr(32 - whole(32)?).unwrap_or(0);
                Self::V4((address.to_bits() & !host, address.to_bits() | host))
            }
            IpAddr::V6(address) => {
                let host = u128::MAX.checked_shr(128 - whole(128)?).unwrap_or(0);
                Self::V6((address.to_bits() & !host, address.to_bits() | host))
            }
        })
    }

    /// Whether both are of one family.
    #[must_use]
    pub fn is_family_of(self, other: Self) -> bool {
        matches!((self, other), (Self::V4(_), Self::V4(_)) | (Self::V6(_), Self::V6(_)))
    }

    pub(super) fn v4(self) -> Option<(u32, u32)> {
        if let Self::V4(block) = self { Some(block) } else { None }
    }

    pub(super) fn v6(self) -> Option<(u128, u128)> {
        if let Self::V6(block) = self { Some(block) } else { None }
    }
}
