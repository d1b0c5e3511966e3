//! What an answer depends on that is not known, and what to type to know it.

use std::collections::BTreeSet;

use super::translate::OWN;

/// Causes that are named.
const MOST: usize = 6;

/// Each once, without what tells tests of one text apart.
pub(super) fn of(names: &[String]) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    for name in names {
        let cause = name.split('\t').next().unwrap_or(name);
        if !causes.iter().any(|known| known == cause) {
            causes.push(cause.to_owned());
        }
    }
    causes
}

/// Puts causes into words, to follow what depends on them.
pub(super) fn words(causes: &[String]) -> String {
    if causes.is_empty() {
        return String::new();
    }
    let more = causes.len().saturating_sub(MOST);
    let named = causes[..causes.len() - more].join("; ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(": depends on {named}{more}")
}

/// What would tell.
pub(super) fn to_know(names: &[String]) -> BTreeSet<String> {
    let way = |name: &String| {
        if let Some(address) = name.strip_prefix(OWN) {
            return Some(format!(
                "give the host's own addresses with --local (such as --local {address} if it is one), or a folder of tamis collect in place of OLD"
            ));
        }
        name.starts_with("-m set ")
            .then(|| "give the sets with --ipset FILE (ipset save)".to_owned())
    };
    names.iter().filter_map(way).collect()
}
