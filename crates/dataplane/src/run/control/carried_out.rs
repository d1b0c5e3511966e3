//! What becomes of a request.

use serde_json::{Value, json};

use super::super::live::Live;
use super::super::revisions::Peer;
use super::super::status;
use super::request::{Refusal, Request};
use super::rules;

/// Carries a request out that this process makes: its answer.
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
    }
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
