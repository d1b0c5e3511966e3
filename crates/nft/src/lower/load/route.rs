//! `rt mtu`: the segment size that the packet's way carries, and the way back.
//!
//! Source: kernel `get_tcpmss` in `net/netfilter/nft_rt.c`.

use std::net::IpAddr;

use super::Load;
use crate::lower::word::Loaded;
use host::{Outgoing, Routed};
use packet::{ipv4, ipv6};
use rules::Transit;
use rules::model::{Family, Hook};

/// What the kernel takes where the way carries no segment.
const LEAST: u32 = 536;

/// The largest segment of the way.
#[derive(Debug)]
pub(crate) struct SegmentSize;

/// The smaller MTU of the packet's way and of the way back to its source. No way back counts for none.
fn path_mtu(transit: &Transit<'_, '_>) -> Option<u32> {
    if transit.path_mtu.is_some() {
        return transit.path_mtu;
    }
    let source = match transit.family {
        Family::Ipv6 => IpAddr::from(transit.net::<16>(ipv6::SOURCE.start).known()?),
        _ => IpAddr::from(transit.net::<4>(ipv4::SOURCE.start).known()?),
    };
    let (mark, protocol, ports) = (Some(0), Some(0), Some([0; 2]));
    let back = Outgoing { tos: Some(0), mark, protocol, ports, ..Outgoing::to(source) };
    let there = transit.mtu?;
    match transit.host.route_out(&back) {
        Routed::Forward { mtu, .. } => Some(mtu?.min(there)),
        Routed::Refused(_) => Some(there),
        Routed::Input(_) | Routed::Unknown(_) => None,
    }
}

impl Load for SegmentSize {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        if matches!(transit.hook, Hook::Prerouting) {
            // It has no route yet.
            return Loaded::nothing();
        }
        let headers = if transit.family == Family::Ipv6 { 60 } else { 40 };
        match path_mtu(transit) {
            None => Loaded::unknown(16),
            Some(mtu) if mtu <= headers || mtu > 0xffff => Loaded::known(LEAST.into()),
            Some(mtu) => Loaded::known((mtu - headers).into()),
        }
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("the MTU of the packet's way is not known")
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        show("rt load tcpmss".to_owned());
    }
}
