//! `apply`: from the request to the revisions; the request is checked against what there is.

use rules::model::Family;

use crate::answers::{Applied, Refusal};
use crate::api::request::Request;
use crate::rules::owner::Rules;
use crate::rules::revisions::{Asked, MOST_SECONDS, Peer};

/// Bytes of a text's name: it is kept with the revision.
const MOST_NAME: usize = 256;

/// Puts rules in force.
///
/// # Errors
/// The rules are refused.
pub(super) fn apply(
    request: Request,
    who: Option<Peer>,
    rules: &Rules,
) -> Result<Applied, Refusal> {
    let Request::Apply { text, name, family, noflush, if_rev, dry_run, confirm } = request else {
        return Err(Refusal::request("expected apply"));
    };
    let family = family.as_deref().map(named).transpose()?;
    if confirm.is_some_and(|seconds| !(1..=MOST_SECONDS).contains(&seconds)) {
        let what = format!("expected confirm from 1 to {MOST_SECONDS} seconds");
        return Err(Refusal::request(what));
    }
    let name = match &name[..name.floor_char_boundary(MOST_NAME)] {
        "" => "-".to_owned(),
        name => name.to_owned(),
    };
    let asked = Asked { name, family, noflush, if_rev, dry_run, confirm };
    Ok(rules.apply(&asked, &text, who)?)
}

/// A family that rules of a run can be of.
fn named(name: &str) -> Result<Family, Refusal> {
    let found = Family::ALL.into_iter().find(|family| family.name() == name);
    let what = || format!("expected family ip, ip6, arp or bridge, found \"{name}\"");
    found.ok_or_else(|| Refusal::request(what()))
}
