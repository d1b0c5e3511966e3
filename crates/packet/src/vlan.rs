//! VLAN tags: the tag control information and the EtherType after it.
//!
//! Source: IEEE 802.1Q and 802.1ad.

use crate::ethertype;
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
