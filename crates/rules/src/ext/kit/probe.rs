//! For the tests of extensions: reads a rule, asks its matches about a packet given as bytes, applies its
//! target.

use packet::{Checksums, Link, Packet};

use crate::error::LoadError;
use crate::ext::Effect;
use crate::family::{Family, Hook};
use crate::model::{Action, Ruleset};
use crate::outcome::Outcome;
use crate::save::{LoadOptions, load, print_rule};
use crate::transit::{Iface, Transit};
use host::Host;

/// Loads `-A FORWARD rule` in table mangle.
pub(crate) fn read(family: Family, rule: &str) -> Result<Ruleset, LoadError> {
    read_in(family, "mangle", "FORWARD", rule)
}

/// Loads `-A chain rule` in a table.
pub(crate) fn read_in(
    family: Family,
    table: &str,
    chain: &str,
    rule: &str,
) -> Result<Ruleset, LoadError> {
    let text = format!("*{table}\n:{chain} ACCEPT [0:0]\n-A {chain} {rule}\nCOMMIT\n");
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    Ok(load(&text, &options)?.ruleset)
}

/// The canonical text after `-A FORWARD`, or the error.
pub(crate) fn print(family: Family, rule: &str) -> Result<String, LoadError> {
    let ruleset = read(family, rule)?;
    let table = &ruleset.tables[0];
    let chain = &table.chains[0];
    let text = print_rule(family, table, chain, &chain.rules[0]);
    Ok(text.trim_start_matches("-A FORWARD ").to_owned())
}

/// A packet as the tests describe it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// Captured bytes.
    pub(crate) bytes: &'a [u8],
    /// Length on the wire.
    pub(crate) wire_len: usize,
    pub(crate) link: Link,
    pub(crate) family: Family,
    pub(crate) hook: Hook,
    pub(crate) certain: bool,
    pub(crate) to_host: Option<bool>,
}

impl<'a> Frame<'a> {
    /// A whole IP packet without a link header, at FORWARD; its version nibble gives the family.
    pub(crate) fn ip(bytes: &'a [u8]) -> Self {
        let family = if bytes[0] >> 4 == 6 { Family::Ipv6 } else { Family::Ipv4 };
        Self {
            bytes,
            wire_len: bytes.len(),
            link: Link::Raw,
            family,
            hook: Hook::Forward,
            certain: true,
            to_host: None,
        }
    }

    /// Cuts the packet: only its first `len` bytes were captured.
    pub(crate) fn cut(self, len: usize) -> Self {
        Self { bytes: &self.bytes[..len], ..self }
    }

    fn with_transit<T>(
        self,
        host: &Host,
        ask: impl FnOnce(&mut Transit<'_, '_>) -> T,
    ) -> (T, Vec<u8>) {
        let mut bytes = self.bytes.to_vec();
        let mut packet = Packet::parse(&mut bytes, self.wire_len, self.link, Checksums::Ignore);
        let mut transit = Transit {
            input: Iface::Named("eth0"),
            output: Iface::Named("eth1"),
            certain: self.certain,
            to_host: self.to_host,
            ..Transit::new(&mut packet, self.family, self.hook, host)
        };
        let answer = ask(&mut transit);
        (answer, bytes)
    }

    /// What all matches of a rule say together; its own tests are left out.
    pub(crate) fn evaluate(self, rule: &str) -> Outcome {
        self.evaluate_in(&Host::default(), rule)
    }

    /// Evaluates the matches on a given host.
    pub(crate) fn evaluate_in(self, host: &Host, rule: &str) -> Outcome {
        let ruleset = read(self.family, rule).unwrap();
        let matches = &ruleset.tables[0].chains[0].rules[0].matches;
        let ask = |transit: &mut Transit<'_, '_>| {
            matches
                .iter()
                .fold(Outcome::YES, |all, used| all.and_then(|| used.body.evaluate(transit)))
        };
        self.with_transit(host, ask).0
    }

    /// Applies the target of the first rule, then asks the matches of the second about what is left.
    /// Returns the effect, the bytes and the answer.
    pub(crate) fn apply(self, rule: &str, then: &str) -> (Effect, Vec<u8>, Outcome) {
        let first = read(self.family, rule).unwrap();
        let Action::Target(target) = &first.tables[0].chains[0].rules[0].action else {
            panic!("{rule} has no target");
        };
        let second = read(self.family, then).unwrap();
        let matches = &second.tables[0].chains[0].rules[0].matches;
        let host = Host::default();
        let ((effect, outcome), bytes) = self.with_transit(&host, |transit| {
            let effect = target.body.apply(transit);
            let outcome = matches
                .iter()
                .fold(Outcome::YES, |all, used| all.and_then(|| used.body.evaluate(transit)));
            (effect, outcome)
        });
        (effect, bytes, outcome)
    }
}

/// An IPv4 header from 10.0.0.1 to 10.0.0.2, TTL 64, followed by `payload`.
pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len()) as u16;
    let mut bytes = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    let checksum = !packet::checksum::sum(&bytes);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// An IPv6 header from 2001:db8::1 to 2001:db8::2, hop limit 64, followed by `payload`.
pub(crate) fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16;
    let mut bytes = vec![0x60, 0, 0, 0, 0, 0, next_header, 64];
    bytes[4..6].copy_from_slice(&len.to_be_bytes());
    for last in [1, 2] {
        bytes.extend_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    bytes.extend_from_slice(payload);
    bytes
}
