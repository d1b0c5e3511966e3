//! The hook OUTPUT, and what the kernel routes a packet again for after it.
//!
//! All of the hook sees the interface of the first route. The mangle table has a packet routed again whose mark, type of
//! service or addresses it changed, and nat one that goes elsewhere by it; each goes by the mark that the packet has then.
//! What raw, filter or nat chains make of the mark changes no route.
//!
//! Source: Linux 6.18 `iptable_mangle.c` (`ipt_mangle_out`), `ip6table_mangle.c`, `nf_nat_proto.c`
//! (`nf_nat_ipv4_local_fn`), measured.

use std::net::IpAddr;

use conntrack::CtView;
use packet::{Mark, Packet, Read};
use rules::eval::{Alive, Nobody};
use rules::model::{Family, Hook};
use rules::{Connection, Iface, Transit};

use super::packet_walk::Walk;
use super::tables::Attached;
use crate::observer::Observer;
use crate::routing::way::addresses;

/// What routes go by, of a packet on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Routed {
    addresses: Option<(IpAddr, IpAddr)>,
    mark: Mark,
    /// The start of its header: type of service, or traffic class and flow label; and the hop limit.
    service: Option<(u32, u8)>,
}

impl Routed {
    fn of(packet: &Packet<'_>, mark: Mark, family: Family) -> Self {
        let service = match (family, packet.net::<8>(0)) {
            (Family::Ipv6, Read::Known([a, b, c, d, .., hops])) => {
                Some((u32::from_be_bytes([a, b, c, d]), hops))
            }
            (_, Read::Known([_, service, ..])) => Some((service.into(), 0)),
            _ => None,
        };
        Self { addresses: addresses(packet), mark, service }
    }
}

impl<'p> Walk<'p, '_, '_> {
    /// The hook OUTPUT of a packet whose first route goes out by `output`: the mark by which it is routed again, if it
    /// may be.
    pub(crate) fn hook_output(
        &mut self,
        output: Iface<'p>,
        observer: &mut impl Observer,
    ) -> Option<Mark> {
        let tables = self.tables;
        if !tables.may_remark() && !tables.translates && !tables.has_foreign() {
            self.hook(Hook::Output, Iface::Absent, output, observer);
            return None;
        }
        self.stands_at(Hook::Output, Iface::Absent, output);
        let (before_tracking, after) = tables.at(Hook::Output);
        let mut again = None;
        for turn in before_tracking {
            again = self.output_turn(turn, observer).or(again);
        }
        self.meet(observer);
        for turn in after {
            again = self.output_turn(turn, observer).or(again);
        }
        again
    }

    /// The turn of a chain, or of foreign chains, at OUTPUT: the mark by which the packet is routed again, if it is.
    fn output_turn(&mut self, turn: &Attached, observer: &mut impl Observer) -> Option<Mark> {
        let tables = self.tables;
        let translates = turn.translates();
        if !translates && !tables.reroutes(turn) {
            self.turn(turn, observer);
            return None;
        }
        let came = self.routed();
        self.turn(turn, observer);
        let now = self.routed();
        let is_routed = came.addresses != now.addresses || !translates && came != now;
        is_routed.then_some(now.mark)
    }

    fn routed(&self) -> Routed {
        Routed::of(self.transit.packet, self.transit.mark, self.transit.family)
    }

    /// Whether a table will have the packet routed again, before it is at OUTPUT: `None` where that depends on
    /// its connection or its interface. Leaves no trace.
    pub(crate) fn will_be_remarked(&mut self) -> Option<bool> {
        let Some(last) = self.tables.remarks() else { return Some(false) };
        let mut snapshot = self.transit.packet.snapshot();
        let mut packet = snapshot.packet();
        let (family, host) = (self.transit.family, self.transit.host);
        let mut transit = Transit {
            mark: self.transit.mark,
            time: self.transit.time,
            ct: Connection { view: CtView::UNKNOWN, again: true, ..Connection::default() },
            input: Iface::Absent,
            ..Transit::new(&mut packet, family, Hook::Output, host)
        };
        let (before_tracking, after) = self.tables.at(Hook::Output);
        for turn in before_tracking.iter().chain(after) {
            // Foreign chains may change it.
            turn.role?;
            let came = Routed::of(transit.packet, transit.mark, family);
            let memories = &mut *self.memories;
            self.tables.walk(turn, &mut transit, Alive::Certain, memories, &mut Nobody);
            let now = Routed::of(transit.packet, transit.mark, family);
            if self.tables.reroutes(turn) {
                // It changes no addresses, known or not.
                let is_known = now.service.is_some() && came.mark.unknown | now.mark.unknown == 0;
                if !is_known || came != now || *turn == last {
                    return is_known.then_some(came != now);
                }
            }
        }
        Some(false)
    }
}
