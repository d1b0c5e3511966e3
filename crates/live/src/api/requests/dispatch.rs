//! Dispatches a request to the part of the run that answers it.

use dataplane::publish::Snapshot;
use serde_json::Value;

use super::{apply, lists, peers};
use crate::answers::{Counters, Peers, Refusal, SavedCounters, Stopping, json};
use crate::api::parts::Parts;
use crate::api::request::Request;
use crate::rules::counters::{decided, hit, saved};
use crate::rules::owner::{Rules, shadow};
use crate::rules::revisions::Peer;

/// The answer to a line, or why there is none.
pub(crate) fn answer_to_line(line: &str, parts: &Parts) -> Value {
    answer(Request::from_line(line), None, parts)
}

/// The answer to a request, if it is one.
pub(crate) fn answer(request: Result<Request, Refusal>, who: Option<Peer>, parts: &Parts) -> Value {
    let answer = request.and_then(|request| carry_out(request, who, parts));
    answer.unwrap_or_else(|refusal| refusal.json())
}

fn carry_out(request: Request, who: Option<Peer>, parts: &Parts) -> Result<Value, Refusal> {
    let Parts { rules, workers, devices, watchers, .. } = parts;
    Ok(match request {
        Request::Status {} => parts.status().json(),
        Request::Stop {} => {
            workers.stop();
            json(&Stopping { stopping: true })
        }
        Request::Counters { save: true } => json(&SavedCounters { text: saved(&counted(rules)?) }),
        Request::Counters { save: false } => {
            let counted = counted(rules)?;
            json(&Counters { rules: hit(&counted), policies: decided(&counted) })
        }
        Request::Apply { .. } => json(&apply::apply(request, who, rules)?),
        Request::Rollback { revision } => json(&rules.rollback(revision, who)?),
        Request::Get { revision } => json(&rules.revisions()?.get(revision)?),
        Request::Log {} => json(&rules.revisions()?.log()),
        Request::Confirm {} => json(&rules.revisions()?.confirm()?),
        Request::Bans { text, action, line } => json(&lists::bans(&text, action, line, rules)?),
        Request::BansList { from, most } => json(&lists::bans_list(from, most, rules)),
        Request::SetsList { set, most } => json(&lists::sets_list(set.as_deref(), most, rules)?),
        Request::SetsRestore { text, line } => json(&lists::sets_restore(&text, line, rules)?),
        Request::ConntrackList { flows, from, most } => {
            json(&lists::conntrack_list(&flows, from, most, workers)?)
        }
        Request::ConntrackDelete { flows, from } => {
            json(&lists::conntrack_delete(&flows, from, workers)?)
        }
        Request::ConntrackFlush { from } => json(&lists::conntrack_flush(from, workers)?),
        Request::Peers {} => json(&Peers { peers: devices.peers() }),
        Request::AddPeer(peer) => json(&peers::add(&peer, devices)?),
        Request::RemovePeer { tunnel, peer } => {
            json(&peers::remove(tunnel.as_deref(), &peer, devices)?)
        }
        Request::Drops {} => json(&watchers.drops(devices)),
        Request::Snapshot {} => json(&parts.snapshot().map_err(Refusal::refused)?),
        Request::Watch(_) => return Err(Refusal::refused("it is a stream")),
        Request::Shadow {} => json(&shadow(workers)),
        Request::ShadowStart { texts } => {
            rules.shadow(texts, workers).map_err(Refusal::refused)?;
            json(&shadow(workers))
        }
        Request::Promote {} => json(&rules.promote(who, workers)?),
        Request::ShadowStop {} => {
            let last = shadow(workers);
            workers.set_shadow(None);
            json(&last)
        }
        Request::Talkers {} => json(&workers.talkers()),
    })
}

fn counted(rules: &Rules) -> Result<Snapshot, Refusal> {
    rules.published().snapshot().map_err(Refusal::refused)
}
