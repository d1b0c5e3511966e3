//! What is played in series: rulesets of the wild and of our own, and the hosts that they speak of.

use std::fs;
use std::io;
use std::path::Path;

use rules::model::Family;

/// Connections of FTP are related to their control connection, in both.
const HELPER: &str = "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
    -A PREROUTING -p tcp -m tcp --dport 21 -j CT --helper ftp\nCOMMIT\n";

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

/// The table `filter` of a ruleset, as far as packets pass FORWARD, with all counters at 0, and a helper for FTP: what
/// both load. No wire knows the MTU of a path, so MSS that are clamped to it are set to one.
#[must_use]
pub fn forwarding(text: &str) -> String {
    let mut filter = String::new();
    let lines = text.lines().map(str::trim_end).skip_while(|line| *line != "*filter");
    for line in lines {
        let rule = match line.strip_prefix('[') {
            Some(counted) => counted.split_once("] ").map_or(line, |(_, rule)| rule),
            None => line,
        };
        let is_own = rule.starts_with("-A INPUT ") || rule.starts_with("-A OUTPUT ");
        if rule.is_empty() || rule.starts_with('#') || is_own {
            continue;
        }
        let rule = &rule.replace("--clamp-mss-to-pmtu", "--set-mss 1400");
        match (rule.starts_with(':'), rule.split_once(" [")) {
            (true, Some((chain, _))) => filter += &format!("{chain} [0:0]\n"),
            _ => filter += &format!("{rule}\n"),
        }
        if rule == "COMMIT" {
            break;
        }
    }
    filter + HELPER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_packets_in_forward_meet_is_loaded() {
        let text = "junk\n*nat\n:PREROUTING ACCEPT [3:4]\n-A PREROUTING -j DNAT\nCOMMIT\n\
            *filter\n:INPUT DROP [5:6]\n:FORWARD DROP [7:8]\n:a - [0:0]\n[1:2] -A INPUT -j a\n\
            [1:2] -A FORWARD -j a   \n# said\n-A a -p tcp -j TCPMSS --clamp-mss-to-pmtu\nCOMMIT\n*raw\nCOMMIT\n";
        let expected = "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:a - [0:0]\n-A FORWARD -j a\n\
            -A a -p tcp -j TCPMSS --set-mss 1400\nCOMMIT\n";
        assert_eq!(forwarding(text), format!("{expected}{HELPER}"));
    }
}
