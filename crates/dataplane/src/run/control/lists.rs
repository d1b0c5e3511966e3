//! Requests about the access list, the sets, and the connections.
//!
//! Contract: a request of changes is carried out as a whole or not at all, and is in force when it is answered. Each has
//! its bounds; who has more to say or to ask says it in several.

use conntrack::{Counters, Direction, Listed, Tuple, Wanted, has_ports};
use rules::ipset::{EditError, Edited, SavedSet};
use serde_json::{Value, json};

use super::flows::wanted;
use super::request::Refusal;
use super::words::{BanAction, FlowWords};
use crate::bans_text::{self, BansError};
use crate::run::clock::now;
use crate::run::connections::Found;
use crate::run::live::Live;
use crate::run::place::Place;

/// Changes of the access list in one request.
pub const MOST_CHANGES: usize = 10_000;

/// Elements of a set in one answer.
const MOST_ELEMENTS: usize = 1 << 20;

/// Connections in one answer.
const MOST_FLOWS: usize = 1024;

/// `bans`.
pub(super) fn bans(
    text: &str,
    action: Option<BanAction>,
    line: usize,
    live: &Live,
) -> Result<Value, Refusal> {
    let changes = bans_text::changes(text, action.map(Into::into), MOST_CHANGES);
    let changes = changes.map_err(|error| {
        let line = error.line.saturating_add(line.saturating_sub(1));
        Refusal::refused(BansError { line, ..error })
    })?;
    let banned = match &live.revisions {
        Some(revisions) => revisions.change_bans(&changes, &live.published)?,
        None => live.published.change_bans(&changes),
    };
    Ok(json!({ "schema": "tamis.bans/1", "changes": changes.len(), "banned_ranges": banned }))
}

/// `bans_list`.
pub(super) fn bans_list(from: usize, most: usize, live: &Live) -> Value {
    let list = live.access_list();
    let all = list.changes();
    let end = from.saturating_add(most.min(MOST_CHANGES)).min(all.len());
    let lines: Vec<String> =
        all.get(from..end).unwrap_or_default().iter().map(bans_text::line).collect();
    json!({
        "schema": "tamis.bans_list/1",
        "banned_ranges": list.banned(),
        "count": all.len(),
        "changes": lines,
        "next": (end < all.len()).then_some(end),
    })
}

/// `sets_restore`.
pub(super) fn sets_restore(text: &str, line: usize, live: &Live) -> Result<Value, Refusal> {
    let edited = match &live.revisions {
        Some(revisions) => revisions.change_sets(text, &live.published)?,
        None => live.published.change_sets(text, now()),
    };
    let edited = edited.map_err(|error| {
        let before = u32::try_from(line.saturating_sub(1)).unwrap_or(u32::MAX);
        Refusal::refused(EditError { line: error.line.saturating_add(before), ..error })
    })?;
    let Edited { added, deleted, flushed, swapped } = edited;
    Ok(json!({
        "schema": "tamis.sets_restore/1",
        "added": added,
        "deleted": deleted,
        "flushed": flushed,
        "swapped": swapped,
    }))
}

/// `sets_list`.
pub(super) fn sets_list(set: Option<&str>, most: usize, live: &Live) -> Result<Value, Refusal> {
    let shared = live.published.shared();
    let most = most.min(MOST_ELEMENTS);
    let sets = shared.sets().map(|sets| sets.save(set, most, now())).unwrap_or_default();
    if let (Some(name), true) = (set, sets.is_empty()) {
        let name = packet::visible::word(name);
        return Err(Refusal::refused(format!(
            "The set with the given name does not exist: {name}"
        )));
    }
    let sets: Vec<Value> = sets.into_iter().map(saved_set).collect();
    Ok(json!({ "schema": "tamis.sets/1", "sets": sets }))
}

fn saved_set(SavedSet { name, kind, create, elements, some }: SavedSet) -> Value {
    json!({ "name": name, "type": kind, "create": create, "entries": elements, "members": some })
}

/// `conntrack_list`.
pub(super) fn conntrack_list(
    flows: &FlowWords,
    from: Option<Place>,
    most: usize,
    live: &Live,
) -> Result<Value, Refusal> {
    let wanted = wanted(flows)?;
    let count = live.count_connections().map_err(Refusal::refused)?;
    let found = live.connections(from.unwrap_or_default(), wanted, most.clamp(1, MOST_FLOWS));
    let Found { flows, next } = found.map_err(Refusal::refused)?;
    let flows: Vec<Value> = flows.iter().map(flow).collect();
    Ok(json!({ "schema": "tamis.conntrack/1", "count": count, "flows": flows, "next": next }))
}

/// `conntrack_delete`.
pub(super) fn conntrack_delete(
    flows: &FlowWords,
    from: Option<Place>,
    live: &Live,
) -> Result<Value, Refusal> {
    let wanted = wanted(flows)?;
    if wanted.is_any() {
        return Err(Refusal::refused("expected which connections end: conntrack_flush ends all"));
    }
    end(wanted, from, live)
}

/// `conntrack_flush`.
pub(super) fn conntrack_flush(from: Option<Place>, live: &Live) -> Result<Value, Refusal> {
    end(Wanted::default(), from, live)
}

fn end(wanted: Wanted, from: Option<Place>, live: &Live) -> Result<Value, Refusal> {
    let found = live.end_connections(from.unwrap_or_default(), wanted);
    let Found { flows, next } = found.map_err(Refusal::refused)?;
    Ok(json!({ "schema": "tamis.conntrack_ended/1", "ended": flows.len(), "next": next }))
}

/// A connection: its fields, and its line as `conntrack -L` prints it.
fn flow(flow: &Listed) -> Value {
    let [original, reply] = [Direction::Original, Direction::Reply]
        .map(|way| side(flow.tuple(way), flow.counters(way)));
    json!({
        "protocol": flow.tuple(Direction::Original).protocol(),
        "state": flow.state(),
        "timeout": flow.seconds_left(),
        "replied": flow.is_replied(),
        "assured": flow.is_assured(),
        "mark": flow.mark(),
        "zone": flow.tuple(Direction::Original).zone(),
        "original": original,
        "reply": reply,
        "text": flow.to_string(),
    })
}

fn side(tuple: &Tuple, counters: Option<Counters>) -> Value {
    let (source, destination) = (tuple.source(), tuple.destination());
    let mut side = json!({ "src": source.to_string(), "dst": destination.to_string() });
    if has_ports(tuple.protocol()) {
        side["sport"] = tuple.source_part().into();
        side["dport"] = tuple.destination_part().into();
    }
    if let Some(Counters { packets, bytes }) = counters {
        side["packets"] = packets.into();
        side["bytes"] = bytes.into();
    }
    side
}
