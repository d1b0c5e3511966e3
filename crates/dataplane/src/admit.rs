//! What happens to a frame before its packet is routed: rules are found for it, it is admitted, and fragments are put together.
//!
//! Contract: each stage either lets the packet go on or ends it with its verdict; what ends here has met no rule but those of a
//! bridge.

use access::list::{Denied, List};
use conntrack::defrag::{Carried, Defragged, Whole};
use packet::{Checksums, L3, Link, Packet};
use rules::Chance;
use rules::ipset::Sets;
use rules::model::Family;

use crate::arrival::{Arrival, Origin};
use crate::config::Config;
use crate::disposition::{Disposition, DropReason, FinalVerdict, Skip, Why};
use crate::observer::Observer;
use crate::program::{Plan, Program};
use crate::routing::interfaces;
use crate::routing::way::addresses;
use crate::shared::Bans;
use crate::state::FamilyState;
use crate::walk::Below;

/// State of all families, lent to a packet.
pub(crate) struct Global<'h> {
    pub(crate) bans: Option<&'h mut Bans>,
    pub(crate) sets: &'h mut Option<Sets>,
    pub(crate) chance: Option<&'h Chance>,
}

/// The plan and the state of the family whose rules evaluate a packet, and the rules of the bridge that it crosses on a wire.
pub(crate) type Rooms<'a, 'h, 'w> = (&'a Plan, &'h mut FamilyState, Option<Below<'w>>);

/// Finds the rules for a packet of a family; `None` where there are none.
#[inline(always)]
pub(crate) fn rooms<'w, 'a: 'w, 'h: 'w>(
    program: &'a Program,
    families: &'h mut [FamilyState],
    arrival: &Arrival<'_>,
    family: Option<Family>,
) -> Option<Rooms<'a, 'h, 'w>> {
    let (mut found, mut below) = (None, None);
    let crosses = arrival.wire.is_some() && arrival.link.is_ethernet();
    for (plan, state) in program.plans().iter().zip(families) {
        if Some(plan.family()) == family {
            found = Some((plan, state));
        } else if plan.family() == Family::Bridge && crosses {
            below = Some(Below::new(&plan.tables, &mut state.memories, arrival.mark));
        }
    }
    found.map(|(plan, state)| (plan, state, below))
}

/// Admits a packet: it is for this host's stack, no ban denies it, the bridge's rules let it in, and the stack takes its headers.
///
/// # Errors
/// The verdict that ends it.
#[inline(always)]
pub(crate) fn admit<'a>(
    packet: &mut Packet<'_>,
    (arrival, config): (&Arrival<'a>, &'a Config),
    global: &mut Global<'_>,
    below: Option<&mut Below<'_>>,
    end: &mut Disposition,
    observer: &mut impl Observer,
) -> Result<(), FinalVerdict> {
    let is_bridge = end.family == Some(Family::Bridge);
    let is_others = packet.headers().link.packet_type == Some(interfaces::OTHER_HOST);
    // A bridge's port gets what goes to all of its hosts, and its rules see it as the bridge's.
    if is_others && arrival.origin == Origin::Addresses && !is_bridge {
        return Err(FinalVerdict::Skip(Skip::OtherHost));
    }

    // The access list: what it denies no connection and no rule ever sees.
    if let Some(bans) = &mut global.bans {
        match denied(bans.at(arrival.time), packet) {
            Some(Ok(())) => {}
            Some(Err(why)) => return Err(FinalVerdict::Drop(DropReason::Denied(why))),
            None => return unknown(Why::NotCaptured, observer),
        }
    }

    // The rules of a bridge that see it before anybody looks at what it holds.
    if let Some(below) = below {
        let (sets, chance) = (global.sets.as_mut(), global.chance);
        if let Some(verdict) = below.comes_in(packet, arrival, config, sets, chance, observer) {
            end.family = Some(Family::Bridge);
            return Err(verdict);
        }
    }

    // What the kernel's stack refuses before any other hook.
    match packet.headers().l3 {
        L3::Fault(fault) => Err(FinalVerdict::Drop(DropReason::Stack(fault))),
        L3::Unknown => unknown(Why::NotCaptured, observer),
        _ => Ok(()),
    }
}

/// Puts fragments together where connections are tracked, with what goes with this one: the last one brings the packet.
///
/// # Errors
/// The verdict of a fragment that brings none.
#[inline(always)]
pub(crate) fn reassemble(
    packet: &mut Packet<'_>,
    (plan, state): (&Plan, &mut FamilyState),
    (arrival, config): (&Arrival<'_>, &Config),
    (carried, below): (Carried, Option<&mut Below<'_>>),
    observer: &mut impl Observer,
) -> Result<Option<Whole>, FinalVerdict> {
    // What a rule recorded is whole.
    if arrival.link == Link::Nflog {
        return Ok(None);
    }
    match state.defrag(plan, packet, arrival, carried, config) {
        Defragged::Pass => Ok(None),
        Defragged::Held => Err(FinalVerdict::Skip(Skip::Fragment)),
        Defragged::Dropped(_) => Err(FinalVerdict::Drop(DropReason::Conntrack)),
        Defragged::Unknown => unknown(Why::Fragment, observer),
        Defragged::Whole(whole) => {
            if let Some(below) = below {
                below.joins(&whole.carried);
            }
            Ok(Some(whole))
        }
    }
}

/// Parses a packet that was put together; bytes that no fragment brought are not known.
pub(crate) fn parsed<'b>(
    frame: &'b mut [u8],
    unknown: Vec<std::ops::Range<usize>>,
    link: Link,
    checksums: Checksums,
) -> Packet<'b> {
    let mut packet = Packet::put_together(frame, link, checksums);
    unknown.into_iter().for_each(|range| packet.forget(range));
    packet
}

/// Ends a packet whose verdict depends on this.
pub(crate) fn unknown<T>(why: Why, observer: &mut impl Observer) -> Result<T, FinalVerdict> {
    observer.depends_on(why);
    Err(FinalVerdict::Unknown)
}

/// What the access list says of a packet, if there is one; `None` if its addresses were not captured.
fn denied(list: Option<&List>, packet: &Packet<'_>) -> Option<Result<(), Denied>> {
    let is_ip = matches!(packet.headers().l3, L3::Ipv4 { .. } | L3::Ipv6);
    let Some(list) = list.filter(|_| is_ip) else { return Some(Ok(())) };
    let (source, destination) = addresses(packet)?;
    Some(list.decide(source, destination))
}
