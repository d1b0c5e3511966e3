//! A line of `conntrack -L` or `/proc/net/nf_conntrack`: the next packet of that connection, in the direction of its
//! first one.
//!
//! Source: conntrack(8); `net/netfilter/nf_conntrack_standalone.c`, `ct_seq_show`.

use packet::tcp::Flags;

use super::said::{Said, address, number, ports, value_of};
use crate::spec::word::{SpecError, Word};

pub(super) fn read(words: &[Word<'_>], end: usize) -> Result<Option<Said>, SpecError> {
    // `ipv4 2` before it, and the event of `conntrack -E`.
    let skip = words.iter().position(|(_, word)| !is_before(word)).unwrap_or(words.len());
    let words = &words[skip..];
    let [(_, name), (_, assigned), ..] = words else { return Ok(None) };
    let is_entry = assigned.parse::<u8>().is_ok() && !name.contains('=');
    if !is_entry || value_of(words, "src").is_none() || value_of(words, "dst").is_none() {
        return Ok(None);
    }
    let mut said = Said { protocol: protocol(name, assigned), ..Said::default() };
    // The first tuple is that of the first packet.
    let field = |key: &str| value_of(words, key);
    let end_of = |key| address(field(key), end, &format!("{key}=ADDRESS"));
    said.between(end_of("src")?, end_of("dst")?);
    said.ports = ports(field("sport"), field("dport"))?;
    if let Some(kind) = number::<u8>(field("type"))? {
        said.icmp(kind, number(field("code"))?.unwrap_or(0));
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

/// A protocol's name, or its number where the name is `unknown`.
fn protocol(name: &str, number: &str) -> String {
    if name == "unknown" { number.to_owned() } else { name.to_owned() }
}
