//! [`ForeignChain`] and [`Foreign`]: base chains that are not evaluated, with their families and hooks.

use std::fmt;

use super::effects::Effects;

/// A base chain of a ruleset that is not evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignChain {
    /// The program that the ruleset is of.
    pub program: ForeignProgram,
    /// Which packets its table sees.
    pub family: ForeignFamily,
    /// The name of its table.
    pub table: Box<str>,
    /// The chain's name.
    pub name: Box<str>,
    /// The hook that it is attached to.
    pub hook: ForeignHook,
    /// The priority at the hook: lower ones come first.
    pub priority: i32,
    /// Whether the chain sees only the first packet of each connection.
    pub is_nat: bool,
    /// At output, the kernel routes packets again whose mark or header it changes: nft's type `route`, legacy's mangle.
    pub reroutes: bool,
    /// The devices that it is attached to; none where it is attached to all, or a listing does not tell.
    pub devices: Vec<Box<str>>,
    /// What it, and what it calls, may do to a packet.
    pub effects: Effects,
}

impl fmt::Display for ForeignChain {
    /// `nft inet fw/input (hook input, priority 10)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, table, name, hook, priority, .. } = self;
        match (self.program, family) {
            (ForeignProgram::Nft, _) => {
                let (family, hook) = (family.name(), hook.name());
                write!(f, "nft {family} {table}/{name} (hook {hook}, priority {priority})")
            }
            (ForeignProgram::Legacy, ForeignFamily::Ip6) => {
                write!(f, "ip6tables-legacy {table}/{name}")
            }
            (ForeignProgram::Legacy, _) => write!(f, "iptables-legacy {table}/{name}"),
        }
    }
}

/// The chains of a host that are not evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Foreign {
    /// All of them.
    pub chains: Vec<ForeignChain>,
    /// Packets are taken to pass them untouched.
    pub ignored: bool,
}

impl Foreign {
    /// Returns the chains that are taken to do something to packets, each with its number.
    pub fn met(&self) -> impl Iterator<Item = (u16, &ForeignChain)> {
        let all = (0..).zip(&self.chains);
        all.filter(|(_, chain)| !self.ignored && !chain.effects.is_none())
    }

    /// Whether some chain of these families makes the kernel track connections.
    #[must_use]
    pub fn tracks(&self, families: &[ForeignFamily]) -> bool {
        let of = |chain: &&ForeignChain| families.contains(&chain.family);
        let mut of = self.chains.iter().filter(of);
        !self.ignored && of.any(|chain| chain.effects.has(Effects::TRACKS))
    }

    /// What is to be said of them, if there are any.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let mut all = self.chains.iter().filter(|chain| !chain.effects.is_none());
        let first = all.next()?;
        let more = match all.count() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let hint = match first.program {
            ForeignProgram::Nft => "",
            ForeignProgram::Legacy => " (a registered.txt would tell who comes first)",
        };
        Some(match self.ignored {
            false => format!(
                "{first}{more}: not evaluated{hint}, so what the rules accept is unknown where packets meet that; --ignore-nft leaves it out"
            ),
            true => {
                format!("{first}{more}: left out, so what the rules accept may be dropped there")
            }
        })
    }
}

/// The program that a ruleset is loaded by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForeignProgram {
    /// nft.
    Nft,
    /// iptables-legacy and ip6tables-legacy.
    Legacy,
}

/// The family of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForeignFamily {
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    /// Both of them.
    Inet,
    /// ARP.
    Arp,
    /// Frames on a bridge.
    Bridge,
    /// Frames of devices.
    Netdev,
}

impl ForeignFamily {
    /// Names of the families, as listings have them.
    const NAMES: [(&str, Self); 6] = [
        ("ip", Self::Ip),
        ("ip6", Self::Ip6),
        ("inet", Self::Inet),
        ("arp", Self::Arp),
        ("bridge", Self::Bridge),
        ("netdev", Self::Netdev),
    ];

    /// Returns the name of the family in a listing.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, family)| *family == self).map_or("", |(name, _)| name)
    }

    /// Finds a family by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, family)| *family)
    }
}

/// A place at which chains are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForeignHook {
    /// As a device receives.
    Ingress,
    /// On arrival.
    Prerouting,
    /// To this host.
    Input,
    /// Through this host.
    Forward,
    /// From this host.
    Output,
    /// On departure.
    Postrouting,
    /// As a device sends.
    Egress,
}

impl ForeignHook {
    const NAMES: [(&str, Self); 7] = [
        ("ingress", Self::Ingress),
        ("prerouting", Self::Prerouting),
        ("input", Self::Input),
        ("forward", Self::Forward),
        ("output", Self::Output),
        ("postrouting", Self::Postrouting),
        ("egress", Self::Egress),
    ];

    /// Returns the name of the hook in a listing.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, hook)| *hook == self).map_or("", |(name, _)| name)
    }

    /// Finds a hook by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, hook)| *hook)
    }
}
