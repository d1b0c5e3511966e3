//! EtherTypes that the parser tells apart (IANA "IEEE 802 Numbers"), host byte order.

/// IPv4 (RFC 894).
pub const IPV4: u16 = 0x0800;
/// ARP (RFC 826).
pub const ARP: u16 = 0x0806;
/// IPv6 (RFC 2464).
pub const IPV6: u16 = 0x86dd;
/// 802.1Q customer tag.
pub const VLAN: u16 = 0x8100;
/// 802.1ad service tag.
pub const QINQ: u16 = 0x88a8;
/// Service tag of equipment older than 802.1ad.
pub const QINQ_OLD: u16 = 0x9100;
/// PPPoE session stage (RFC 2516).
pub const PPPOE: u16 = 0x8864;
/// The smallest EtherType: below it the field is the length of an 802.3 frame.
pub const MIN: u16 = 0x0600;
