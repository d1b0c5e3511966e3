//! Fragments for the host itself where no connections are tracked: IPv4 reassembles them between routing and INPUT.
//!
//! PREROUTING sees each fragment; fragments that it accepts wait here, and INPUT sees the packet that they make. Its
//! mark is the mark of the fragment at offset 0, its input interface the one of the last fragment to arrive. IPv6
//! reassembles fragments after INPUT, which so sees each of them.
//!
//! Source: Linux 6.18 `ip_local_deliver` (`net/ipv4/ip_input.c`), `ip_frag_reasm` (`net/ipv4/ip_fragment.c`: `skb->dev =
//! dev`), `inet_frag_reasm_prepare` (`net/ipv4/inet_fragment.c`: `skb_morph`), `ip6_input_finish` (`net/ipv6/ip6_input.c`).

use conntrack::SECOND;
use conntrack::defrag::{Carried, Defrag, Defragged, Limits, Whole};
use host::Host;
use packet::ipv6_ext::{self, Find};
use packet::{L3, L4, Packet, Read};
use rules::Iface;
use rules::model::{Family, Hook};

use crate::disposition::{DropReason, FinalVerdict, Skip, Why};
use crate::observer::Observer;
use crate::walk::Walk;

/// The limits that the host's settings set for fragments.
pub(crate) fn limits(host: &Host) -> Limits {
    let usual = Limits::default();
    let number = |name| host.sysctl.as_ref()?.number(name);
    let seconds = |name| u64::try_from(number(name)?).ok()?.checked_mul(SECOND);
    let memory = number("net.ipv4.ipfrag_high_thresh");
    let distance = number("net.ipv4.ipfrag_max_dist");
    Limits {
        v4_lifetime: seconds("net.ipv4.ipfrag_time").unwrap_or(usual.v4_lifetime),
        v6_lifetime: seconds("net.netfilter.nf_conntrack_frag6_timeout")
            .unwrap_or(usual.v6_lifetime),
        memory: memory.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usual.memory),
        max_distance: distance
            .and_then(|most| u32::try_from(most).ok())
            .unwrap_or(usual.max_distance),
    }
}

/// Fragments that wait for others before INPUT.
#[derive(Debug, Default)]
pub(crate) struct Delivery(Option<Defrag>);

/// The result of delivering a packet to the host.
pub(crate) enum Delivered {
    /// The packet is no fragment that waits here: it is at INPUT.
    AsItIs,
    /// The packet got this verdict without INPUT.
    Ended(FinalVerdict),
    /// The fragment completed this packet, which is at INPUT in its place.
    Whole(Whole),
}

impl Delivery {
    /// Takes a packet that routing gives to the host.
    pub(crate) fn take(
        &mut self,
        walk: &mut Walk<'_, '_, '_>,
        host: &Host,
        observer: &mut impl Observer,
    ) -> Delivered {
        if !walk.is_alive() || walk.family() != Family::Ipv4 || walk.tracks() {
            return Delivered::AsItIs;
        }
        if !is_fragment(walk.packet()) {
            return Delivered::AsItIs;
        }
        let defrag = self.0.get_or_insert_with(|| Defrag::new(limits(host)));
        let carried = Carried { mark: walk.mark(), is_certain: walk.is_certain() };
        match defrag.push_with(walk.packet(), walk.now(), 0, carried) {
            Defragged::Pass => Delivered::AsItIs,
            Defragged::Whole(whole) => Delivered::Whole(whole),
            // A fragment that may have been dropped before may wait here.
            Defragged::Held if !walk.is_certain() => Delivered::Ended(walk.verdict()),
            Defragged::Held => Delivered::Ended(FinalVerdict::Skip(Skip::Fragment)),
            Defragged::Dropped(_) => {
                walk.drop_as(DropReason::Reassembly);
                Delivered::Ended(walk.verdict())
            }
            Defragged::Unknown => {
                observer.depends_on(Why::Fragment);
                Delivered::Ended(FinalVerdict::Unknown)
            }
        }
    }
}

/// Walks a reassembled packet on.
pub(crate) fn deliver<'a>(
    walk: &mut Walk<'a, '_, '_>,
    input: Iface<'a>,
    is_certain: bool,
    observer: &mut impl Observer,
) -> FinalVerdict {
    if !is_certain {
        walk.may_be_missing(observer);
    }
    walk.hook(Hook::Input, input, Iface::Absent, observer);
    walk.confirm(observer);
    walk.verdict()
}

/// Whether a packet is a fragment of any kind, including the first.
#[must_use]
pub fn is_fragment(packet: &Packet<'_>) -> bool {
    match packet.headers().l3 {
        L3::Ipv4 { .. } => match packet.net::<2>(6) {
            // More fragments, or an offset.
            Read::Known(field) => u16::from_be_bytes(field) & 0x3fff != 0,
            // A packet spec of a fragment says so, and its field is known; in other specs DF alone is not.
            _ => packet.described().is_none(),
        },
        L3::Ipv6 => {
            let network = packet.headers().network;
            match ipv6_ext::find(packet, network, Some(ipv6_ext::FRAGMENT)) {
                Find::Found { .. } | Find::Unknown => true,
                Find::Missing => matches!(packet.headers().l4, L4::Fragment { .. }),
                Find::Truncated => false,
            }
        }
        _ => false,
    }
}
