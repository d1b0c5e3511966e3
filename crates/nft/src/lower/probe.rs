//! For tests: lowers a ruleset and walks a crafted packet through it.

use conntrack::{CtState, CtView, States};
use host::Host;
use packet::craft::{Addresses, Craft, Message};
use packet::{Checksums, Link, Mark, Packet, tcp};
use rules::eval::{Alive, Memories, Nobody, Verdict, Verdicts, walk};
use rules::model::{Family, Hook};
use rules::{Connection, Iface, Outcome, Transit};

use super::{Lowered, lower};

/// A packet and what is known around it.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub bytes: Vec<u8>,
    pub wire_len: usize,
    pub hook: Hook,
    pub input: &'static str,
    pub output: &'static str,
    pub states: States,
    pub mark: Mark,
    pub time: Option<u64>,
    pub host: Host,
}

/// A message between two addresses, as an Ethernet frame.
pub(crate) fn craft(source: &str, destination: &str, message: Message) -> Craft {
    let address = |text: &str| text.parse().expect("an address");
    Craft::new(Addresses::new(address(source), address(destination)).expect("a pair"), message)
}

impl Frame {
    pub(crate) fn of(craft: &Craft) -> Self {
        let bytes = craft.frame();
        Self {
            wire_len: bytes.len(),
            bytes,
            hook: Hook::Forward,
            input: "eth0",
            output: "eth1",
            states: States::of(CtState::New),
            mark: Mark::default(),
            time: Some(1_700_000_000_000_000_000),
            host: Host::default(),
        }
    }

    /// A SYN from 10.0.0.1:1000 to 10.0.0.2 and a port.
    pub(crate) fn syn(port: u16) -> Self {
        Self::of(&craft("10.0.0.1", "10.0.0.2", Message::tcp(1000, port, tcp::Flags::SYN)))
    }

    /// Only the first bytes were captured.
    pub(crate) fn cut(mut self, captured: usize) -> Self {
        self.bytes.truncate(captured);
        self
    }

    /// The family of the packet.
    pub(crate) fn family(&self) -> Family {
        if self.bytes.get(12..14) == Some(&[0x86, 0xdd]) { Family::Ipv6 } else { Family::Ipv4 }
    }

    /// Shows the packet at its hook.
    pub(crate) fn see<T>(&self, see: impl FnOnce(&mut Transit<'_, '_>) -> T) -> T {
        let mut bytes = self.bytes.clone();
        let mut packet =
            Packet::parse(&mut bytes, self.wire_len, Link::Ethernet, Checksums::Ignore);
        let iface = |name: &'static str| match name {
            "" => Iface::Absent,
            "?" => Iface::Unknown,
            name => Iface::Named(name),
        };
        let mut transit = Transit::new(&mut packet, self.family(), self.hook, &self.host);
        (transit.input, transit.output) = (iface(self.input), iface(self.output));
        transit.ct =
            Connection { view: CtView::without_flow(self.states), ..Connection::default() };
        (transit.mark, transit.time) = (self.mark, self.time);
        transit.backend = rules::Backend::Nft;
        see(&mut transit)
    }

    /// The verdicts of the first table of a ruleset that has one.
    pub(crate) fn walk(&self, text: &str) -> Verdicts {
        let lowered = lowered(text, self.family());
        let mut memories = Memories::of(&lowered.ruleset);
        self.see(|transit| {
            let (rules, nobody) = (&lowered.ruleset, &mut Nobody);
            walk(rules, 0, transit, Alive::Certain, &mut memories, nobody)
        })
    }

    /// What the matches of the one rule of a forward chain say.
    pub(crate) fn says(&self, rule: &str) -> Outcome {
        let family = if self.family() == Family::Ipv6 { "ip6" } else { "ip" };
        self.says_in(family, "", rule)
    }

    /// What the matches of a rule say in a table of a family that holds something more.
    pub(crate) fn says_in(&self, family: &str, more: &str, rule: &str) -> Outcome {
        let text = format!("table {family} t {{\n{more}\nchain c {{\n{rule}\n}}\n}}\n");
        let lowered = lowered(&text, self.family());
        let chain = &lowered.ruleset.tables[0].chains[0];
        let rule = chain.rules.last().expect("a rule");
        self.see(|transit| {
            let tests = rules::eval::tests_of(transit.family, rule, transit);
            let outcomes = tests.into_iter().map(|test| test.outcome.unwrap_or(Outcome::MAYBE));
            outcomes.fold(Outcome::YES, |all, outcome| all.and_then(|| outcome))
        })
    }
}

/// Lowers text.
pub(crate) fn lowered(text: &str, family: Family) -> Lowered {
    let ruleset = crate::text::parse("test", text, &|_| Err("no files".to_owned()));
    lower(&ruleset.unwrap_or_else(|error| panic!("{error}\n{text}")), family)
}

/// The only verdict that is possible.
pub(crate) fn only(verdicts: &Verdicts) -> Option<Verdict> {
    verdicts.only().map(|(verdict, _)| verdict)
}
