//! VLAN tags: the tag control information and the EtherType after it.
//!
//! Source: IEEE 802.1Q and 802.1ad.

use crate::ethertype;
use crate::field::be16;
use std::ops::Range;

/// Tag control information, big endian: priority (3 bits), DEI (1), VLAN id (12).
pub const TCI: Range<usize> = 0..2;
/// EtherType of what follows the tag, big endian.
pub const TYPE: Range<usize> = 2..4;
/// Length in bytes of a tag, counted from the end of the EtherType that announces it.
pub const HEADER_LEN: usize = 4;

/// Whether an EtherType announces a VLAN tag.
#[inline]
#[must_use]
pub fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, ethertype::VLAN | ethertype::QINQ | ethertype::QINQ_OLD)
}

/// VLAN id of a tag's control information (0 is a priority tag).
#[inline]
#[must_use]
pub fn id(tci: u16) -> u16 {
    tci & 0x0fff
}

/// Priority (0..=7) of a tag's control information.
#[inline]
#[must_use]
pub fn priority(tci: u16) -> u8 {
    (tci >> 13) as u8
}

/// A VLAN tag, as it stands after the EtherType that announces it.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
}

impl<'a> Header<'a> {
    /// The tag at the start of `bytes`, if they hold all 4 bytes of it.
    #[inline]
    #[must_use]
    pub fn new_checked(bytes: &'a [u8]) -> Option<Self> {
        bytes.first_chunk().map(|fixed| Self { fixed })
    }

    /// Tag control information; [`id`] and [`priority`] take it apart.
    #[inline]
    #[must_use]
    pub fn tci(&self) -> u16 {
        be16(self.fixed, TCI)
    }

    /// EtherType of what follows.
    #[inline]
    #[must_use]
    pub fn ethertype(&self) -> u16 {
        be16(self.fixed, TYPE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_a_priority_an_id_and_a_type() {
        let header = Header::new_checked(&[0x60, 0x05, 0x08, 0x00]).unwrap();
        assert_eq!((priority(header.tci()), id(header.tci())), (3, 5));
        assert_eq!(header.ethertype(), ethertype::IPV4);
        assert!(Header::new_checked(&[0; 3]).is_none());
        assert!(is_tag(0x88a8) && !is_tag(0x0800));
    }
}
