//! [`cut`]: by the family of the packet.

use super::frames::{Cut, Frames};
use super::{v4, v6};
use crate::{L3, Packet, Read};

/// Cuts a packet and appends its fragments to `to`. False, and nothing is appended, where some byte of it is not
/// known, it is no IP packet, or `most` leaves no room for payload.
pub fn cut(packet: &Packet<'_>, cut: &Cut<'_>, to: &mut Frames) -> bool {
    let Read::Known(frame) = packet.read_slice(0, packet.headers().end) else { return false };
    match packet.headers().l3 {
        L3::Ipv4 { header_len } => v4::cut(frame, packet.network_offset(), header_len, cut, to),
        L3::Ipv6 => v6::cut(frame, packet.network_offset(), cut, to),
        _ => false,
    }
}
