//! A line of `conntrack -L` or `/proc/net/nf_conntrack`: the next packet of that connection, in the direction of its
//! first one.
//!
//! Source: conntrack(8); `net/netfilter/nf_conntrack_standalone.c`, `ct_seq_show`.

use std::net::IpAddr;

use packet::tcp::Flags;

use super::{Said, read_as, value_of};
use crate::spec::{SpecError, Word, expected};

pub(super) fn read(words: &[Word<'_>], end: usize) -> Result<Option<Said>, SpecError> {
    // `ipv4 2` before it, and the event of `conntrack -E`.
    let skip = words.iter().position(|(_, word)| !is_before(word)).unwrap_or(words.len());
    let words = &words[skip..];
    let [(_, name), (_, number), ..] = words else { return Ok(None) };
    let is_entry = number.parse::<u8>().is_ok() && !name.contains('=');
    if !is_entry || value_of(words, "src").is_none() || value_of(words, "dst").is_none() {
        return Ok(None);
    }
    let mut said = Said { protocol: protocol(name, number), ..Said::default() };
    // The first tuple is that of the first packet.
    let field = |key: &str| value_of(words, key);
    let address = |key| match field(key) {
        Some((column, text)) => read_as::<IpAddr>(column, text, "an address"),
        None => Err(expected(end, format!("{key}=ADDRESS"))),
    };
    said.between(address("src")?, address("dst")?);
    let port = |key| match field(key) {
        Some((column, text)) => read_as::<u16>(column, text, "a port").map(Some),
        None => Ok(None),
    };
    said.ports = port("sport")?.zip(port("dport")?).map(|(source, to)| [source, to]);
    if let Some(kind) = port("type")? {
        said.icmp(kind, port("code")?.unwrap_or(0) as u8);
    }
    let is_answered = words.iter().all(|(_, word)| *word != "[UNREPLIED]");
    if said.protocol == "tcp" {
        said.flags(if is_answered { Flags::ACK } else { Flags::SYN });
    }
    said.key("ctstate", if is_answered { "ESTABLISHED" } else { "NEW" });
    Ok(Some(said))
}

fn is_before(word: &str) -> bool {
    matches!(word, "ipv4" | "ipv6" | "2" | "10") || word.starts_with('[')
}

/// `unknown` has its number beside it.
fn protocol(name: &str, number: &str) -> String {
    if name == "unknown" { number.to_owned() } else { name.to_owned() }
}
