//! Requests about the access list, the sets, and the connections.
//!
//! Contract: a request of changes is carried out as a whole or not at all, and is in force when it is answered. Each
//! has its bounds; larger changes and longer answers take several requests.

use conntrack::{Counters, Direction, Listed, Tuple, Wanted, has_ports};
use rules::ipset::{EditError, Edited, SavedSet};

use super::flows::wanted;
use crate::answers::{
    BansChanged, BansList, Conntrack, ConntrackEnded, Flow, FlowSide, Place, Refusal, Set, Sets,
    SetsRestored,
};
use crate::api::words::{BanAction, FlowWords};
use crate::forward::clock::now;
use crate::rules::owner::Rules;
use crate::workers::connections::Found;
use crate::workers::owner::Workers;
use dataplane::bans_text::{self, BansError};

/// Changes of the access list in one request, at most.
pub const MOST_CHANGES: usize = 10_000;

/// Elements of a set in one answer, at most.
const MOST_ELEMENTS: usize = 1 << 20;

/// Connections in one answer, at most.
const MOST_FLOWS: usize = 1024;

/// Answers `bans`.
pub(super) fn bans(
    text: &str,
    action: Option<BanAction>,
    line: usize,
    rules: &Rules,
) -> Result<BansChanged, Refusal> {
    let changes = bans_text::changes(text, action.map(Into::into), MOST_CHANGES);
    let changes = changes.map_err(|error| {
        let line = error.line.saturating_add(line.saturating_sub(1));
        Refusal::refused(BansError { line, ..error })
    })?;
    let banned = rules.change_bans(&changes)?;
    Ok(BansChanged { changes: changes.len(), banned_ranges: banned })
}

/// Answers `bans_list`.
pub(super) fn bans_list(from: usize, most: usize, rules: &Rules) -> BansList {
    let list = rules.access_list();
    let all = list.changes();
    let end = from.saturating_add(most.min(MOST_CHANGES)).min(all.len());
    BansList {
        banned_ranges: list.banned(),
        count: all.len(),
        changes: all.get(from..end).unwrap_or_default().iter().map(bans_text::line).collect(),
        next: (end < all.len()).then_some(end),
    }
}

/// Answers `sets_restore`.
pub(super) fn sets_restore(
    text: &str,
    line: usize,
    rules: &Rules,
) -> Result<SetsRestored, Refusal> {
    let edited = rules.change_sets(text)?.map_err(|error| {
        let before = u32::try_from(line.saturating_sub(1)).unwrap_or(u32::MAX);
        Refusal::refused(EditError { line: error.line.saturating_add(before), ..error })
    })?;
    let Edited { added, deleted, flushed, swapped } = edited;
    Ok(SetsRestored { added, deleted, flushed, swapped })
}

/// Answers `sets_list`.
pub(super) fn sets_list(set: Option<&str>, most: usize, rules: &Rules) -> Result<Sets, Refusal> {
    let shared = rules.published().shared();
    let most = most.min(MOST_ELEMENTS);
    let sets = shared.sets().map(|sets| sets.save(set, most, now())).unwrap_or_default();
    if let (Some(name), true) = (set, sets.is_empty()) {
        let name = packet::visible::word(name);
        return Err(Refusal::refused(format!(
            "The set with the given name does not exist: {name}"
        )));
    }
    let set = |SavedSet { name, kind, create, elements, some }: SavedSet| Set {
        name,
        kind: kind.to_owned(),
        create,
        entries: elements,
        members: some,
    };
    Ok(Sets { sets: sets.into_iter().map(set).collect() })
}

/// Answers `conntrack_list`.
pub(super) fn conntrack_list(
    flows: &FlowWords,
    from: Option<Place>,
    most: usize,
    workers: &Workers,
) -> Result<Conntrack, Refusal> {
    let wanted = wanted(flows)?;
    let count = workers.count_connections().map_err(Refusal::refused)?;
    let found = workers.connections(from.unwrap_or_default(), wanted, most.clamp(1, MOST_FLOWS));
    let Found { flows, next } = found.map_err(Refusal::refused)?;
    Ok(Conntrack { count, flows: flows.iter().map(flow).collect(), next })
}

/// Answers `conntrack_delete`.
pub(super) fn conntrack_delete(
    flows: &FlowWords,
    from: Option<Place>,
    workers: &Workers,
) -> Result<ConntrackEnded, Refusal> {
    let wanted = wanted(flows)?;
    if wanted.is_any() {
        return Err(Refusal::refused("expected which connections end: conntrack_flush ends all"));
    }
    end(wanted, from, workers)
}

/// Answers `conntrack_flush`.
pub(super) fn conntrack_flush(
    from: Option<Place>,
    workers: &Workers,
) -> Result<ConntrackEnded, Refusal> {
    end(Wanted::default(), from, workers)
}

fn end(wanted: Wanted, from: Option<Place>, workers: &Workers) -> Result<ConntrackEnded, Refusal> {
    let found = workers.end_connections(from.unwrap_or_default(), wanted);
    let Found { flows, next } = found.map_err(Refusal::refused)?;
    Ok(ConntrackEnded { ended: flows.len(), next })
}

/// A connection in an answer: its fields, and its line as `conntrack -L` prints it.
fn flow(flow: &Listed) -> Flow {
    let side = |way| side(flow.tuple(way), flow.counters(way));
    let tuple = flow.tuple(Direction::Original);
    Flow {
        protocol: tuple.protocol(),
        state: flow.state(),
        timeout: flow.seconds_left(),
        replied: flow.is_replied(),
        assured: flow.is_assured(),
        mark: flow.mark(),
        zone: tuple.zone(),
        original: side(Direction::Original),
        reply: side(Direction::Reply),
        text: flow.to_string(),
    }
}

fn side(tuple: &Tuple, counters: Option<Counters>) -> FlowSide {
    let has_ports = has_ports(tuple.protocol());
    FlowSide {
        src: tuple.source().to_string(),
        dst: tuple.destination().to_string(),
        sport: has_ports.then(|| tuple.source_part()),
        dport: has_ports.then(|| tuple.destination_part()),
        packets: counters.map(|counters| counters.packets),
        bytes: counters.map(|counters| counters.bytes),
    }
}
