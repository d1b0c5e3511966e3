//! Packets that a rule of the firewall itself recorded (NFLOG): each walks on from the hook of that rule.
//!
//! Contract: the record names hook, interfaces and mark, and nothing else is asked for them. Everything before that
//! hook is done: its rules count nothing, the time to live is lowered in FORWARD, fragments are reassembled. Tracking
//! treats the connection of such a packet as begun before the capture.
//!
//! Source: `net/netfilter/nfnetlink_log.c`, `__build_packet_message`; hooks of `linux/netfilter.h`.

use packet::Link;
use packet::nflog::Record;
use rules::Iface;
use rules::model::Hook;

use crate::arrival::{Arrival, Hooked, Origin};
use crate::config::Config;
use crate::observer::Observer;
use crate::routing::path::Path;
use crate::routing::way::Way;
use crate::walk::Walk;

/// The arrival of a packet that a rule recorded, as its record says.
pub(crate) fn arrival<'a>(
    bytes: &[u8],
    arrival: &Arrival<'a>,
    config: &'a Config,
) -> Option<Arrival<'a>> {
    let record = (arrival.link == Link::Nflog).then(|| Record::read(bytes))??;
    let name = |index: Option<u32>| config.host.links.at(index?).map(|link| &*link.name);
    let (origin, at) = place(&record).unwrap_or((arrival.origin, None));
    Some(Arrival {
        origin,
        at,
        // The listener of the netlink group is no interface.
        interface: None,
        input: name(record.input),
        output: name(record.output),
        mark: record.mark,
        mark_given: true,
        ..*arrival
    })
}

/// The origin of a packet, if its frame is the record of a rule.
pub(crate) fn origin(bytes: &[u8], link: Link) -> Option<Origin> {
    let record = (link == Link::Nflog).then(|| Record::read(bytes))??;
    place(&record).map(|(origin, _)| origin)
}

/// The origin of a packet, and its hook and path, as its record says.
fn place(record: &Record) -> Option<(Origin, Option<Hooked>)> {
    let at = |hook, path| Some(Hooked { hook, path });
    Some(match record.hook {
        Some(0) => (Origin::Wire, None),
        Some(1) => (Origin::Wire, at(Hook::Input, Path::Input)),
        Some(2) => (Origin::Wire, at(Hook::Forward, Path::Forward)),
        Some(3) => (Origin::Host, None),
        Some(4) if record.input.is_some() => (Origin::Wire, at(Hook::Postrouting, Path::Forward)),
        Some(4) => (Origin::Host, at(Hook::Postrouting, Path::Output)),
        _ => return None,
    })
}

/// Walks the packet on from its hook.
pub(crate) fn pass<'n: 'a, 'a>(
    walk: &mut Walk<'a, '_, '_>,
    hook: Hook,
    way: &Way<'n>,
    observer: &mut impl Observer,
) {
    let Way { path, input, output, .. } = *way;
    walk.follow(way);
    walk.was_tracked(path == Path::Output, observer);
    match hook {
        Hook::Input => walk.hook(Hook::Input, input, Iface::Absent, observer),
        Hook::Forward => walk.hook(Hook::Forward, input, output, observer),
        _ => {}
    }
    if hook != Hook::Input {
        walk.hook(Hook::Postrouting, input, output, observer);
    }
    walk.confirm(observer);
}
