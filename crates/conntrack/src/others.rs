//! The protocols with little state: ICMP and ICMPv6 queries, GRE, and every protocol without a tracker.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_icmp.c`, `nf_conntrack_proto_icmpv6.c`,
//! `nf_conntrack_proto_gre.c`, `nf_conntrack_proto_generic.c`.

use crate::config::Timeouts;
use crate::flow::Flow;
use crate::status::Status;
use crate::step::{Arrival, Step};

/// An ICMP query or answer. Flows begin with echo, timestamp, information and address mask requests.
pub(crate) fn icmp(flow: &mut Flow, arrival: &Arrival, timeouts: &Timeouts) -> Step {
    let [kind, _] = flow.original.destination_part().to_be_bytes();
    if flow.original.is_ipv6() || !matches!(kind, 8 | 13 | 15 | 17) {
        return Step::Invalid;
    }
    flow.refresh(arrival.direction, arrival.now, timeouts.icmp, arrival.bytes);
    Step::Accept
}

/// An ICMPv6 query or answer. Flows begin with echo and node information requests.
pub(crate) fn icmpv6(flow: &mut Flow, arrival: &Arrival, timeouts: &Timeouts) -> Step {
    let [kind, _] = flow.original.destination_part().to_be_bytes();
    let may_begin = flow.is_confirmed() || matches!(kind, 128 | 139);
    if !flow.original.is_ipv6() || !may_begin {
        return Step::Invalid;
    }
    flow.refresh(arrival.direction, arrival.now, timeouts.icmpv6, arrival.bytes);
    Step::Accept
}

/// A packet of a tunnel. Answered ones live longer and are assured.
pub(crate) fn gre(flow: &mut Flow, arrival: &Arrival, timeouts: &Timeouts) -> Step {
    let timeout = if flow.status.contains(Status::SEEN_REPLY) {
        flow.status.set(Status::ASSURED);
        timeouts.gre_stream
    } else {
        timeouts.gre
    };
    flow.refresh(arrival.direction, arrival.now, timeout, arrival.bytes);
    Step::Accept
}

/// A packet of any other protocol.
pub(crate) fn generic(flow: &mut Flow, arrival: &Arrival, timeouts: &Timeouts) -> Step {
    flow.refresh(arrival.direction, arrival.now, timeouts.generic, arrival.bytes);
    Step::Accept
}
