//! The study's ruleset: chains of rules that hold a source and a destination and nothing else, all reached from
//! INPUT, and the packet that runs every one of them.
//!
//! Either every rule matches (loopback to loopback), or none does and the source already differs.

use std::fmt::Write;

use host::Host;
use packet::{Checksums, Link, Packet};
use rules::Transit;
use rules::model::{Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};

/// A ruleset of chains that are all alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linear {
    /// IPv4 or IPv6.
    pub family: Family,
    /// Every rule matches, or none does.
    pub is_match: bool,
    /// Chains `c0`, `c1` and so on, each reached by one jump.
    pub chains: usize,
    /// Rules of each.
    pub rules: usize,
}

impl Linear {
    /// The study's 100 chains of 1,000 rules.
    #[must_use]
    pub fn study(family: Family, is_match: bool) -> Self {
        Self { family, is_match, chains: 100, rules: 1000 }
    }

    /// Rules that a packet runs, the jumps included.
    #[must_use]
    pub fn run_per_packet(self) -> usize {
        self.chains * (self.rules + 1)
    }

    /// As the save tool prints it.
    #[must_use]
    pub fn text(self) -> String {
        let mut text = String::from(
            "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n",
        );
        // Writing to a string does not fail.
        for chain in 0..self.chains {
            let _ = writeln!(text, ":c{chain} - [0:0]");
        }
        for chain in 0..self.chains {
            let _ = writeln!(text, "-A INPUT -j c{chain}");
        }
        let mut addresses = Addresses::new(self);
        for chain in 0..self.chains {
            for _ in 0..self.rules {
                let (source, destination) = addresses.next();
                let _ = writeln!(text, "-A c{chain} -s {source} -d {destination}");
            }
        }
        text.push_str("COMMIT\n");
        text
    }

    /// The same rules for `nft -f`, each with a counter as the other tools give it one.
    #[must_use]
    pub fn nft_text(self) -> String {
        let ip = if self.family == Family::Ipv6 { "ip6" } else { "ip" };
        let mut text = format!("table {ip} filter {{\n");
        let mut addresses = Addresses::new(self);
        for chain in 0..self.chains {
            let _ = writeln!(text, "chain c{chain} {{");
            for _ in 0..self.rules {
                let (source, destination) = addresses.next();
                let host = |address: &str| address.split('/').next().unwrap_or_default().to_owned();
                let (source, destination) = (host(&source), host(&destination));
                let _ = writeln!(text, "{ip} saddr {source} {ip} daddr {destination} counter");
            }
            text.push_str("}\n");
        }
        text.push_str("chain INPUT {\ntype filter hook input priority 0;\n");
        for chain in 0..self.chains {
            let _ = writeln!(text, "counter jump c{chain}");
        }
        text.push_str("}\n}\n");
        text
    }

    /// The rules, loaded.
    ///
    /// # Panics
    /// The text above is not taken, which its test rules out.
    #[must_use]
    pub fn ruleset(self) -> Ruleset {
        loaded(&self.text(), self.family)
    }

    /// A datagram from loopback to loopback.
    #[must_use]
    pub fn packet(self) -> Vec<u8> {
        match self.family {
            Family::Ipv6 => ipv6([1, 1]),
            _ => ipv4([127, 0, 0, 1], [127, 0, 0, 1]),
        }
    }
}

/// Loads a text that is our own.
///
/// # Panics
/// It is not taken.
#[must_use]
pub fn loaded(text: &str, family: Family) -> Ruleset {
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    match load(text, &options) {
        Ok(loaded) => loaded.ruleset,
        Err(error) => panic!("a workload is not taken: {error}"),
    }
}

/// Addresses for one rule after the other.
struct Addresses {
    linear: Linear,
    random: fastrand::Rng,
}

impl Addresses {
    fn new(linear: Linear) -> Self {
        Self { linear, random: fastrand::Rng::with_seed(2010) }
    }

    fn next(&mut self) -> (String, String) {
        match (self.linear.family, self.linear.is_match) {
            (Family::Ipv6, true) => ("::1/128".to_owned(), "::1/128".to_owned()),
            (Family::Ipv6, false) => self.random_v6(),
            (_, true) => ("127.0.0.1/32".to_owned(), "127.0.0.1/32".to_owned()),
            (_, false) => self.random_v4(),
        }
    }

    fn random_v6(&mut self) -> (String, String) {
        let mut word = || self.random.u16(1..);
        let source = format!(
            "fd{:02x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}/128",
            word() >> 8,
            word(),
            word(),
            word(),
            word(),
            word(),
            word(),
            word()
        );
        let destination = format!(
            "2001:db8:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}/128",
            word(),
            word(),
            word(),
            word(),
            word(),
            word()
        );
        (source, destination)
    }

    fn random_v4(&mut self) -> (String, String) {
        let mut byte = || self.random.u8(..);
        let source = format!("10.{}.{}.{}/32", byte(), byte(), byte());
        (source, format!("198.18.{}.{}/32", byte(), byte()))
    }
}

/// A UDP datagram of 84 bytes.
#[must_use]
pub fn ipv4(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![0; 84];
    (bytes[0], bytes[3], bytes[8], bytes[9]) = (0x45, 84, 64, 17);
    bytes[12..16].copy_from_slice(&source);
    bytes[16..20].copy_from_slice(&destination);
    bytes[25] = 64;
    bytes
}

/// A UDP datagram of 104 bytes between two addresses `::N`.
fn ipv6([source, destination]: [u8; 2]) -> Vec<u8> {
    let mut bytes = vec![0; 104];
    (bytes[0], bytes[5], bytes[6], bytes[7]) = (0x60, 64, 17, 64);
    (bytes[23], bytes[39], bytes[45]) = (source, destination, 64);
    bytes
}

/// Gives a packet, on its way at a hook, to `walk`.
pub fn at_hook<T>(
    bytes: &[u8],
    family: Family,
    hook: Hook,
    walk: impl FnOnce(&mut Transit<'_, '_>) -> T,
) -> T {
    let mut bytes = bytes.to_vec();
    let len = bytes.len();
    let mut parsed = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    let host = Host::default();
    walk(&mut Transit::new(&mut parsed, family, hook, &host))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules run and rules hit by the reference walk.
    #[derive(Default)]
    struct RunAndHit(usize, usize);

    impl rules::eval::Observer for RunAndHit {
        fn rule(
            &mut self,
            _: rules::eval::RuleRef,
            _: rules::Outcome,
            _: rules::eval::Alive,
            _: &Transit<'_, '_>,
        ) {
            self.0 += 1;
        }

        fn hit(&mut self, _: rules::eval::RuleRef, certain: bool, _: &Transit<'_, '_>) {
            self.1 += usize::from(certain);
        }
    }

    #[test]
    fn a_packet_runs_all_rules_and_hits_all_or_only_the_jumps() {
        for family in [Family::Ipv4, Family::Ipv6] {
            for is_match in [true, false] {
                let linear = Linear { family, is_match, chains: 7, rules: 30 };
                let ruleset = linear.ruleset();
                let mut seen = RunAndHit::default();
                at_hook(&linear.packet(), family, Hook::Input, |transit| {
                    let alive = rules::eval::Alive::Certain;
                    let mut memories = rules::eval::Memories::of(&ruleset);
                    rules::eval::walk(&ruleset, 0, transit, alive, &mut memories, &mut seen);
                });
                let hits = if is_match { 217 } else { 7 };
                assert_eq!((seen.0, seen.1), (linear.run_per_packet(), hits), "{linear:?}");
            }
        }
    }
}
