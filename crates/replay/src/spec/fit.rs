//! What a packet spec says of interfaces: which way it gives the packet, and whether the host has such.
//!
//! Contract: a packet that goes out and came in nowhere is the host's own, and walks OUTPUT; by `lo` it comes back in. Where
//! the host is known, a source that is none of its addresses, or an interface that it does not have, is an error.

use std::net::IpAddr;

use dataplane::{Config, Path};
use host::Host;
use packet::{Checksums, L3, Link, Packet, ipv4, ipv6};

use super::described::Spec;
use super::word::{SpecError, expected, split};
use crate::rules_file::RulesFile;
use crate::walk::names;

impl Spec {
    /// The way that it is on, by `path=` or its interfaces, if that is said.
    pub(super) fn way(&self, config: &Config) -> Option<Path> {
        let is_sent = self.path.is_none()
            && config.path.is_none()
            && self.input.is_none()
            && config.input.is_none();
        match self.output.as_deref().filter(|_| is_sent) {
            Some("lo") => Some(Path::Loopback),
            Some(_) if !self.is_from_a_network(config) => Some(Path::Output),
            _ => self.path,
        }
    }

    /// Whether it comes in from a network that is given as behind an interface.
    fn is_from_a_network(&self, config: &Config) -> bool {
        self.source().is_some_and(|source| {
            let is_behind = config.nets.iter().any(|(_, network)| network.holds(source));
            is_behind && config.host.is_local(source) != Some(true)
        })
    }

    /// Holds the spec to the host; `text` is where it was read from.
    ///
    /// # Errors
    /// It names an interface that the host does not have, or the host as the sender of a packet that is not its own.
    pub fn fit(&self, text: &str, config: &Config) -> Result<(), SpecError> {
        let host = &config.host;
        for (key, name) in self.interfaces() {
            if !config.wires.has_port(name) {
                names::fit(name, &host.links)
                    .map_err(|what| expected(column(text, key, name), what))?;
            }
        }
        match (&self.output, self.source()) {
            (Some(output), Some(source))
                if self.path.is_none()
                    && self.way(config) == Some(Path::Output)
                    && !may_send(host, source) =>
            {
                let what = format!(
                    "in=IFACE beside out={output}, as {source} is no address of the host (or path=output, if it sends this all the same)"
                );
                Err(expected(column(text, "out=", output), what))
            }
            _ => Ok(()),
        }
    }

    /// Interfaces that the spec names, each with its key.
    fn interfaces(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [("in=", &self.input), ("out=", &self.output)];
        named.into_iter().filter_map(|(key, name)| Some((key, name.as_deref()?)))
    }

    /// Interfaces that somebody typed in `text`, each with its key: other programs know their names.
    pub(crate) fn typed<'s>(
        &'s self,
        text: &'s str,
    ) -> impl Iterator<Item = (&'static str, &'s str)> {
        self.interfaces().filter(|(key, name)| {
            text.split_ascii_whitespace().any(|word| word.strip_prefix(key) == Some(name))
        })
    }

    /// Warns of interfaces that somebody typed in `text`.
    #[must_use]
    pub fn warnings(&self, text: &str, files: &[RulesFile], config: &Config) -> Vec<String> {
        names::warnings(self.typed(text), files, &config.host.links)
    }

    /// The packet's source address, if it has one.
    pub(crate) fn source(&self) -> Option<IpAddr> {
        let mut frame = self.frame.clone();
        let len = frame.len();
        let packet = Packet::parse(&mut frame, len, Link::Ethernet, Checksums::Ignore);
        match packet.headers().l3 {
            L3::Ipv4 { .. } => packet.net::<4>(ipv4::SOURCE.start).known().map(IpAddr::from),
            L3::Ipv6 => packet.net::<16>(ipv6::SOURCE.start).known().map(IpAddr::from),
            _ => None,
        }
    }
}

/// Whether the host may send from this address: one of its own, or none yet.
fn may_send(host: &Host, source: IpAddr) -> bool {
    source.is_unspecified() || host.is_local(source) != Some(false)
}

/// The column of the word that gives an interface: with its key, or as another program spells it; else of the text.
fn column(text: &str, key: &str, name: &str) -> usize {
    let words = split(text);
    let typed = words.iter().find(|(_, word)| word.strip_prefix(key) == Some(name));
    let spelt = || words.iter().find(|(_, word)| word.trim_matches(['"', ',']).ends_with(name));
    typed.or_else(spelt).map_or(1, |(column, _)| *column)
}
