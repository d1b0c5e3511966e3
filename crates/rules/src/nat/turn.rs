//! [`turn`]: what a packet meets at a hook where addresses are translated.
//!
//! Source: Linux 6.18 `nf_nat_core.c` (`nf_nat_inet_fn`), `nf_nat_proto.c` (`nf_nat_ipv4_fn`).

use crate::connection::Connection;
use crate::transit::Transit;
use conntrack::{CtState, Doubt, Flow, Side, Taken};
use packet::{L4, icmpv4, icmpv6};

/// What a packet meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing: it is part of no flow.
    Pass,
    /// The nat chains, which decide how this side of its flow is translated.
    Decide,
    /// What was decided is applied.
    Rewrite,
    /// What was decided is applied to an ICMP error about a flow.
    Error,
    /// Any of these: it is not known which.
    Doubt,
}

/// What the packet meets here, where `side` is translated.
#[must_use]
pub fn turn(transit: &Transit<'_, '_>, side: Side) -> Turn {
    let ct = &transit.ct;
    let state = match ct.view.taken {
        Taken::For(state) => Some(state),
        Taken::Seen | Taken::ForNone => ct.view.state(),
    };
    if ct.tracker.is_none() {
        return Turn::Doubt;
    }
    if matches!(ct.view.state(), Some(CtState::Invalid | CtState::Untracked)) {
        return Turn::Pass;
    }
    let (Some(state), Some(flow)) = (state, flow_of(ct)) else { return Turn::Doubt };
    let is_decided = flow.status().contains(side.decided());
    match state {
        CtState::Related if is_icmp(transit) => Turn::Error,
        // How a flow was translated whose beginning was not captured can be told only from its rules.
        _ if flow.is_assumed() && !is_decided => Turn::Doubt,
        // No list tells whether rules that translate were there when it began: a reset may be the first that they see.
        CtState::Related if flow.is_listed() && !flow.is_translated() => Turn::Doubt,
        CtState::New | CtState::Related if !is_decided => Turn::Decide,
        // Its beginning was before a restart, and how it was translated is decided once more.
        _ if flow.is_picked_up() && !is_decided => Turn::Decide,
        _ => Turn::Rewrite,
    }
}

/// The packet's flow, if nothing but its translation is unknown.
fn flow_of<'f>(ct: &'f Connection<'_>) -> Option<&'f Flow> {
    let (tracker, handle) = ct.tracker.as_ref().zip(ct.view.flow)?;
    tracker.flow(handle).filter(|flow| flow.doubt() == Doubt::None && !ct.doubtful)
}

fn is_icmp(transit: &Transit<'_, '_>) -> bool {
    match transit.packet.headers().l4 {
        L4::Upper(upper) => matches!(upper.protocol, icmpv4::PROTOCOL | icmpv6::PROTOCOL),
        _ => false,
    }
}
