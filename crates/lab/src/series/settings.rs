//! What is played in series: rulesets of the wild and of our own, and the hosts that they speak of.

use std::fs;
use std::io;
use std::path::Path;

use rules::model::Family;

use super::forwarding;

/// A ruleset with the hosts that it speaks of.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name; of one of the wild, of its file without `.save`.
    pub ruleset: &'static str,
    /// Where its text is.
    pub source: Source,
    /// Whose rules they are, and what the hosts talk by.
    pub family: Family,
    /// Interface, host and router on host a's side, as the rules name them.
    pub left: Side,
    /// The same on host b's side.
    pub right: Side,
}

/// Where the rules of a setting are.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// In the wild: a file, of which [`forwarding`] takes what packets in FORWARD meet.
    Wild,
    /// Here: the text as both load it.
    Own(&'static str),
}

impl Setting {
    /// The rules that both load; those of the wild lie in the folder `rulesets`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn rules(&self, rulesets: &Path) -> io::Result<String> {
        match self.source {
            Source::Wild => {
                let file = rulesets.join(format!("{}.save", self.ruleset));
                Ok(forwarding(&fs::read_to_string(file)?))
            }
            Source::Own(text) => Ok(text.to_owned()),
        }
    }
}

/// One side of the router.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// What `-i` and `-o` say.
    pub interface: &'static str,
    /// The host's address, of a /24 or a /64.
    pub host: &'static str,
    /// The router's.
    pub gate: &'static str,
}

const fn side(interface: &'static str, host: &'static str, gate: &'static str) -> Side {
    Side { interface, host, gate }
}

const fn wild(ruleset: &'static str, left: Side, right: Side) -> Setting {
    Setting { ruleset, source: Source::Wild, family: Family::Ipv4, left, right }
}

/// Rules of ours for IPv6, as those of the wild are for IPv4.
const fn own(ruleset: &'static str, text: &'static str) -> Setting {
    Setting {
        ruleset,
        source: Source::Own(text),
        family: Family::Ipv6,
        left: side("eth1", "2001:db8:1::10", "2001:db8:1::1"),
        right: side("eth2", "2001:db8:2::80", "2001:db8:2::1"),
    }
}

/// Rulesets whose FORWARD has rules that these hosts meet.
pub const SETTINGS: [Setting; 8] = [
    wild(
        "docker-topos4.1",
        side("br-b74b417b331f", "10.0.0.1", "10.0.0.254"),
        side("eth0", "192.0.2.80", "192.0.2.1"),
    ),
    wild(
        "ferm-dmz-router",
        side("eth1", "203.0.113.9", "203.0.113.1"),
        side("eth2", "192.168.1.2", "192.168.1.1"),
    ),
    wild(
        "iptables-ipt-save-filter",
        side("eth1", "192.168.100.77", "192.168.100.1"),
        side("ppp0", "198.51.100.7", "198.51.100.1"),
    ),
    wild(
        "unsoft-hu",
        side("eth1", "192.168.1.10", "192.168.1.1"),
        side("eth0", "192.0.2.80", "192.0.2.1"),
    ),
    wild(
        "fedora27-firewalld-v4",
        side("virbr0", "192.168.122.10", "192.168.122.1"),
        side("wlp58s0", "192.0.2.80", "192.0.2.1"),
    ),
    wild(
        "iptables-firewalld-completed",
        side("eth0", "198.51.100.7", "198.51.100.1"),
        side("enp3s0", "192.0.2.80", "192.0.2.1"),
    ),
    own("ipv6-own", include_str!("ipv6-own.save")),
    own("ipv6-own-stateless", include_str!("ipv6-own-stateless.save")),
];
