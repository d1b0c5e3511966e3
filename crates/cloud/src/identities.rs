//! What a control socket is asked about identities, and the answers of an authority.

use anyhow::Result;
use overlay::{Authority, Name, Now};
use serde_json::{Value, json};
use tunnel::PrivateKey;

/// Makes one-time keys for nodes of these names, by which they join at this URL, or at the same address and this TCP port.
pub(crate) fn enrol(
    authority: &mut Authority,
    names: &[String],
    (url, tcp): (&str, Option<u16>),
    now: Now,
) -> Result<Value> {
    let names: Vec<Name> = match names.iter().map(|name| name.parse()).collect() {
        Ok(names) => names,
        Err::<_, overlay::NotAName>(error) => return Ok(json!({ "error": error.to_string() })),
    };
    let mut keys = Vec::new();
    for name in names {
        let key: PrivateKey = authority.invite(name.clone(), now)?;
        keys.push(json!({ "name": name.as_str(), "key": &**key.text() }));
    }
    Ok(json!({ "url": url, "tcp": tcp, "keys": keys }))
}

/// Revokes a node.
pub(crate) fn revoke(authority: &mut Authority, name: &str) -> Value {
    match name.parse().is_ok_and(|name| authority.revoke(&name)) {
        true => json!({ "revoked": name }),
        false => json!({ "error": format!("there is no node {name}") }),
    }
}

/// The answer of a directory whose authority is on another host.
pub(crate) fn elsewhere() -> Value {
    let what = "identities are the authority's: on its host, tamis-cloud enrol and revoke with \
                --config /etc/tamis/as.toml";
    json!({ "error": what })
}

/// The answer of an authority to what a directory knows.
pub(crate) fn of_directory() -> Value {
    let what = "the policy is the directory's: on its host, tamis-cloud policy with \
                --config /etc/tamis/cloud.toml";
    json!({ "error": what })
}
