//! What becomes of a request.

use std::time::Instant;

use serde_json::{Value, json};

use super::super::live::Live;
use super::super::revisions::Peer;
use super::super::status;
use super::lists;
use super::peers;
use super::request::{Refusal, Request};
use super::rules;

/// The answer to a line, or why there is none.
pub(in crate::run) fn answer_to_line(line: &str, live: &Live) -> Value {
    answer(Request::from_line(line), None, live)
}

/// The answer to a request, if it is one.
pub(super) fn answer(request: Result<Request, Refusal>, who: Option<Peer>, live: &Live) -> Value {
    let answer = request.and_then(|request| carry_out(request, who, live));
    answer.unwrap_or_else(|refusal| refusal.json())
}

/// Carries a request out: its answer.
///
/// # Errors
/// The run refuses it.
pub(super) fn carry_out(
    request: Request,
    who: Option<Peer>,
    live: &Live,
) -> Result<Value, Refusal> {
    match request {
        Request::Status {} => Ok(live.status().json()),
        Request::Stop {} => {
            live.stop();
            Ok(json!({ "schema": "tamis.stop/1", "stopping": true }))
        }
        Request::Counters { save } => counters(save, live),
        Request::Apply { .. } => rules::apply(request, who, live),
        Request::Rollback { revision } => {
            live.revisions()?.rollback(revision, who, live.in_force())
        }
        Request::Get { revision } => live.revisions()?.get(revision),
        Request::Log {} => Ok(live.revisions()?.log()),
        Request::Confirm {} => live.revisions()?.confirm(),
        Request::Bans { text, action, line } => lists::bans(&text, action, line, live),
        Request::BansList { from, most } => Ok(lists::bans_list(from, most, live)),
        Request::SetsList { set, most } => lists::sets_list(set.as_deref(), most, live),
        Request::SetsRestore { text, line } => lists::sets_restore(&text, line, live),
        Request::ConntrackList { flows, from, most } => {
            lists::conntrack_list(&flows, from, most, live)
        }
        Request::ConntrackDelete { flows, from } => lists::conntrack_delete(&flows, from, live),
        Request::ConntrackFlush { from } => lists::conntrack_flush(from, live),
        Request::Peers {} => Ok(peers::told(live)),
        Request::AddPeer(peer) => peers::add(&peer, live),
        Request::RemovePeer { tunnel, peer } => peers::remove(tunnel.as_deref(), &peer, live),
        Request::Drops {} => Ok(drops(live)),
        Request::Snapshot {} => live.snapshot().map_err(Refusal::refused),
        Request::Watch(_) => Err(Refusal::refused("it is a stream")),
        Request::Shadow {} => Ok(live.shadow_json()),
        Request::ShadowStart { texts } => {
            live.shadow(texts).map_err(Refusal::refused)?;
            Ok(live.shadow_json())
        }
        Request::Promote {} => live.promote(who),
        Request::ShadowStop {} => {
            let last = live.shadow_json();
            live.shared.shadow.set(None);
            Ok(last)
        }
        Request::Talkers {} => Ok(live.shared.talkers.ask(Instant::now()).json()),
    }
}

fn drops(live: &Live) -> Value {
    let drops: Vec<_> = live.taps.drops().iter().map(|told| live.told(told, false)).collect();
    json!({ "schema": "tamis.drops/1", "drops": drops })
}

fn counters(save: bool, live: &Live) -> Result<Value, Refusal> {
    let snapshot = live.published.snapshot().map_err(Refusal::refused)?;
    Ok(match save {
        true => json!({ "schema": "tamis.counters/1", "text": status::saved(&snapshot) }),
        false => json!({
            "schema": "tamis.counters/1",
            "rules": status::hit(&snapshot),
            "policies": status::decided(&snapshot),
        }),
    })
}
