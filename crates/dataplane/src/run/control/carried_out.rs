//! What becomes of a request.

use serde_json::{Value, json};

use super::super::live::Live;
use super::super::status;
use super::lists;
use super::request::{Refusal, Request};

/// The answer to a line, or why there is none.
pub(in crate::run) fn answer(line: &str, live: &Live) -> Value {
    let answer = Request::from_line(line).and_then(|request| carry_out(request, live));
    answer.unwrap_or_else(|refusal| refusal.json())
}

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
        Request::Bans { text, action, line } => lists::bans(&text, action, line, live),
        Request::SetsList { set, most } => lists::sets_list(set.as_deref(), most, live),
        Request::SetsRestore { text, line } => lists::sets_restore(&text, line, live),
        Request::ConntrackList { flows, from, most } => {
            lists::conntrack_list(&flows, from, most, live)
        }
        Request::ConntrackDelete { flows, from } => lists::conntrack_delete(&flows, from, live),
        Request::ConntrackFlush { from } => lists::conntrack_flush(from, live),
    }
}

fn counters(save: bool, live: &Live) -> Result<Value, Refusal> {
    let snapshot = live.published.snapshot().map_err(Refusal::refused)?;
    Ok(match save {
        true => json!({ "schema": "tamis.counters/1", "text": status::saved(&snapshot) }),
        false => json!({ "schema": "tamis.counters/1", "rules": status::hit(&snapshot) }),
    })
}
