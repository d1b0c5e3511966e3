//! Kernel settings, as `sysctl net.ipv4 net.ipv6 net.bridge net.netfilter` prints them.
//!
//! Source: `Documentation/networking/ip-sysctl.rst`; how "all" and an interface go together is each setting's own:
//! kernel `include/linux/inetdevice.h`.

use std::collections::{BTreeMap, HashMap};

use crate::text::{TextError, lines};

/// Settings by name; per-interface settings are kept apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sysctl {
    named: HashMap<Box<str>, Box<str>>,
    v4: BTreeMap<Box<str>, Conf>,
    v6: BTreeMap<Box<str>, Conf>,
    /// sysctl(8) was asked for `net.bridge`, and there is none: no `br_netfilter`.
    lacks_bridge: bool,
}

/// The settings of an interface that decide where packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Forwarding,
    RpFilter,
    AcceptLocal,
    RouteLocalnet,
    AcceptSourceRoute,
    SendRedirects,
    SrcValidMark,
    DropUnicast,
    IgnoreLinkdown,
    ForceForwarding,
}

/// In the order of [`Key`].
const KEYS: [(&str, Key); 10] = [
    ("forwarding", Key::Forwarding),
    ("rp_filter", Key::RpFilter),
    ("accept_local", Key::AcceptLocal),
    ("route_localnet", Key::RouteLocalnet),
    ("accept_source_route", Key::AcceptSourceRoute),
    ("send_redirects", Key::SendRedirects),
    ("src_valid_mark", Key::SrcValidMark),
    ("drop_unicast_in_l2_multicast", Key::DropUnicast),
    ("ignore_routes_with_linkdown", Key::IgnoreLinkdown),
    ("force_forwarding", Key::ForceForwarding),
];

type Conf = [Option<i32>; KEYS.len()];

impl Sysctl {
    /// Reads lines of `NAME = VALUE`; names may be written with slashes. What sysctl(8) says of a key that it could
    /// not read is left out.
    ///
    /// # Errors
    /// A line without `=`, with its place.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut all = Self::default();
        let raw: Vec<&str> = text.lines().collect();
        for line in lines(text).filter(|line| !line.continues) {
            let first = line.at(0);
            let whole = raw.get(first.line as usize - 1).copied().unwrap_or_default();
            if matches!(first.text, "sysctl:" | "error:" | "warning:") {
                let is_bridge = whole.contains("net.bridge") || whole.contains("net/bridge");
                all.lacks_bridge |= is_bridge && !whole.to_lowercase().contains("denied");
                continue;
            }
            let (name, value) =
                whole.split_once('=').ok_or_else(|| line.at(1).not("= and a value"))?;
            all.set(name.trim(), value.trim());
        }
        // A program that can read nothing has not found out that one thing is missing.
        all.lacks_bridge &= !all.named.is_empty();
        Ok(all)
    }

    fn set(&mut self, name: &str, value: &str) {
        // With slashes, a dot belongs to the name of an interface; with dots, a slash stands for one.
        let name = match (name.find('/'), name.find('.')) {
            (Some(slash), dot) if dot.is_none_or(|dot| slash < dot) => {
                let swapped = name.chars().map(|c| match c {
                    '/' => '.',
                    '.' => '/',
                    c => c,
                });
                swapped.collect::<String>()
            }
            _ => name.to_owned(),
        };
        let families = [("net.ipv4.conf.", &mut self.v4), ("net.ipv6.conf.", &mut self.v6)];
        for (prefix, of_family) in families {
            let Some((interface, key)) =
                name.strip_prefix(prefix).and_then(|rest| rest.rsplit_once('.'))
            else {
                continue;
            };
            if let Some(place) = KEYS.iter().position(|(name, _)| *name == key) {
                let conf = of_family.entry(interface.replace('/', ".").into()).or_default();
                conf[place] = value.parse().ok();
            }
        }
        self.named.insert(name.into(), value.into());
    }

    /// Whether the kernel has no settings of `net.bridge`: it hands nothing that bridges pass on to iptables.
    #[must_use]
    pub fn lacks_bridge(&self) -> bool {
        self.lacks_bridge
    }

    /// The value of a setting, by its name with dots.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.named.get(name).map(|value| &**value)
    }

    /// All settings whose name begins so, each by the rest of its name.
    pub fn under<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = (&'s str, &'s str)> {
        let named = self.named.iter();
        named.filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, &**value)))
    }

    /// The number that a setting is.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// The setting of an interface, of `all` or of `default`.
    pub(crate) fn of(&self, is_v6: bool, interface: &str, key: Key) -> Option<i32> {
        let of_family = if is_v6 { &self.v6 } else { &self.v4 };
        of_family.get(interface)?[key as usize]
    }

    /// The only value that the interfaces have, for a packet whose interface is not known; `None` where they differ.
    pub(crate) fn of_all(&self, is_v6: bool, key: Key) -> Option<Option<i32>> {
        let of_family = if is_v6 { &self.v6 } else { &self.v4 };
        let real =
            of_family.iter().filter(|(name, _)| !matches!(&***name, "all" | "default" | "lo"));
        let mut values = real.map(|(_, conf)| conf[key as usize]);
        let Some(first) = values.next() else { return Some(None) };
        values.all(|other| other == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_interfaces() {
        let text = "net.ipv4.ip_forward = 1\nnet.ipv4.conf.eth0/5.rp_filter = 2\nnet/ipv4/conf/eth0.6/rp_filter = 1\n\
                    sysctl: permission denied on key 'net.ipv4.x'\nnet.ipv4.conf.all.rp_filter=0\n\
                    net.ipv4.tcp_mem = 1\t2\t3\nnet.ipv6.conf.lo.forwarding = 1\n";
        let sysctl = Sysctl::parse(text).unwrap();
        assert_eq!(sysctl.of(false, "eth0.5", Key::RpFilter), Some(2));
        assert_eq!(sysctl.of(false, "eth0.6", Key::RpFilter), Some(1));
        assert_eq!(sysctl.of(false, "all", Key::RpFilter), Some(0));
        assert_eq!(sysctl.of(true, "lo", Key::Forwarding), Some(1));
        assert_eq!(sysctl.of(false, "eth1", Key::RpFilter), None);
        assert_eq!(sysctl.get("net.ipv4.tcp_mem"), Some("1\t2\t3"));
        assert_eq!(sysctl.number("net.ipv4.ip_forward"), Some(1));
        assert_eq!(sysctl.of_all(false, Key::RpFilter), None);
        assert_eq!(Sysctl::parse("a = 1\nnonsense").unwrap_err().line, 2);
    }

    #[test]
    fn what_was_asked_for_and_is_not_there_is_known() {
        let lacks = |said: &str, more: &str| {
            Sysctl::parse(&format!("sysctl: {said}\n{more}")).unwrap().lacks_bridge()
        };
        let none = "cannot stat /proc/sys/net/bridge: No such file or directory";
        assert!(lacks(none, "a = 1\n") && !lacks(none, ""));
        assert!(lacks("error: 'net.bridge' is an unknown key", "a = 1\n"));
        assert!(!lacks("permission denied on key 'net.bridge.x'", "a = 1\n"));
        assert!(!lacks(&none.replace("bridge", "netfilter"), "a = 1\n"));
    }
}
