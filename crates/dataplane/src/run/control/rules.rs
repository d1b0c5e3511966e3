//! `apply`: from the request to the revisions, what it asks for held to what there is.

use rules::model::Family;
use serde_json::Value;

use super::super::live::Live;
use super::super::revisions::{Asked, MOST_SECONDS, Peer};
use super::request::{Refusal, RefusalKind, Request};

/// Puts rules in force.
///
/// # Errors
/// They are refused.
pub(super) fn apply(request: Request, who: Option<Peer>, live: &Live) -> Result<Value, Refusal> {
    let Request::Apply { text, name, family, noflush, if_rev, dry_run, confirm } = request else {
        return Err(wrong("expected apply"));
    };
    let family = family.as_deref().map(named).transpose()?;
    if confirm.is_some_and(|seconds| !(1..=MOST_SECONDS).contains(&seconds)) {
        return Err(wrong(&format!("expected confirm from 1 to {MOST_SECONDS} seconds")));
    }
    let name = if name.is_empty() { "-".to_owned() } else { name };
    let asked = Asked { name, family, noflush, if_rev, dry_run, confirm };
    live.revisions()?.apply(&asked, &text, who, live.in_force())
}

/// A family that rules of a run can be of.
fn named(name: &str) -> Result<Family, Refusal> {
    let found = Family::ALL.into_iter().find(|family| family.name() == name);
    found.ok_or_else(|| wrong(&format!("expected family ip, ip6, arp or bridge, found \"{name}\"")))
}

fn wrong(what: &str) -> Refusal {
    Refusal { kind: RefusalKind::Request, what: what.to_owned() }
}
