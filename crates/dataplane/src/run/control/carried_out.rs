//! What becomes of a request.

use std::time::Instant;

use serde_json::{Value, json};

use super::super::live::Live;
use super::super::status;
use super::request::{Refusal, Request};

/// Carries a request out: its answer.
///
/// # Errors
/// The run refuses it.
pub(super) fn carry_out(request: Request, live: &Live) -> Result<Value, Refusal> {
    match request {
        Request::Status {} => Ok(live.status().json()),
        Request::Stop {} => {
            live.stop();
            Ok(json!({ "schema": "tamis.stop/1", "stopping": true }))
        }
        Request::Counters { save } => counters(save, live),
        Request::Talkers {} => Ok(live.shared.talkers.ask(Instant::now()).json()),
    }
}

fn counters(save: bool, live: &Live) -> Result<Value, Refusal> {
    let snapshot = live.published.snapshot().map_err(Refusal::refused)?;
    Ok(match save {
        true => json!({ "schema": "tamis.counters/1", "text": status::saved(&snapshot) }),
        false => json!({ "schema": "tamis.counters/1", "rules": status::hit(&snapshot) }),
    })
}
