//! How frames of a capture are to be read: its link type, as `packet` names it.

use packet::Link;
use pktio::LinkType;

/// How to read frames of a capture's link type, if tamis can.
#[must_use]
pub fn link_of(link_type: LinkType) -> Option<Link> {
    Some(match link_type {
        LinkType::ETHERNET => Link::Ethernet,
        LinkType::RAW | LinkType(12 | 14) => Link::Raw,
        LinkType::IPV4 => Link::Ipv4,
        LinkType::IPV6 => Link::Ipv6,
        LinkType::LINUX_SLL => Link::Sll,
        LinkType::LINUX_SLL2 => Link::Sll2,
        LinkType::NULL => Link::Null,
        LinkType::LOOP => Link::Loop,
        LinkType::NFLOG => Link::Nflog,
        _ => return None,
    })
}

/// Whether frames of this link type are packets of IP, with nothing before them.
pub fn is_ip(link_type: LinkType) -> bool {
    matches!(link_of(link_type), Some(Link::Raw | Link::Ipv4 | Link::Ipv6))
}
