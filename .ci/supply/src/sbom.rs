//! What is linked into `tamis`, as a bill of materials: CycloneDX 1.5 in JSON.
//!
//! Contract: the same lock file makes the same text, without a time or a number of its own. Source:
//! <https://cyclonedx.org/docs/1.5/json/>; package URLs as <https://github.com/package-url/purl-spec> has them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::lock::Locked;
use crate::tree::Node;

/// The bill of `tamis` of a version. Checksums are those of the lock file.
pub(crate) fn print(version: &str, linked: &BTreeSet<Node>, locked: &[Locked]) -> String {
    let sums: BTreeMap<String, &str> = locked
        .iter()
        .filter_map(|one| Some((format!("{} {}", one.name, one.version), one.checksum.as_deref()?)))
        .collect();
    let components: Vec<Value> =
        linked.iter().map(|node| component(node, sums.get(&node.name).copied())).collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "bom-ref": format!("pkg:cargo/tamis@{version}"),
            "name": "tamis",
            "version": version,
            "licenses": [{ "expression": "Apache-2.0 OR MIT" }],
            "purl": format!("pkg:cargo/tamis@{version}"),
        } },
        "components": components,
    });
    format!("{document:#}\n")
}

fn component(node: &Node, sum: Option<&str>) -> Value {
    let (name, version) = node.name.split_once(' ').unwrap_or((&node.name, ""));
    let purl = format!("pkg:cargo/{name}@{version}");
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        // As crates wrote it before there were expressions.
        "licenses": [{ "expression": node.licence.replace('/', " OR ") }],
        "purl": purl,
    });
    if let Some(sum) = sum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    if !node.repository.is_empty() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": node.repository }]);
    }
    component
}
