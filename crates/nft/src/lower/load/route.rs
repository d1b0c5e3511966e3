//! `rt mtu`: the segment size that the packet's way carries, and the way back.
//!
//! Source: kernel `get_tcpmss` in `net/netfilter/nft_rt.c`.

use super::Load;
use crate::lower::word::Loaded;
use rules::Transit;
use rules::model::{Family, Hook};

/// What the kernel takes where the way carries no segment.
const LEAST: u32 = 536;

/// The largest segment of the way.
#[derive(Debug)]
pub(crate) struct SegmentSize;

impl Load for SegmentSize {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        if matches!(transit.hook, Hook::Prerouting) {
            // It has no route yet.
            return Loaded::nothing();
        }
        let headers = if transit.family == Family::Ipv6 { 60 } else { 40 };
        match transit.least_mtu() {
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
