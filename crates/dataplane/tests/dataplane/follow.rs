//! What packets left goes on under other rules: connections, what matches remember, lists by name.

use std::sync::Arc;

use conntrack::{self, Mode};
use dataplane::{Arrival, Config, FinalVerdict, Handler, Path, Program};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use rules::model::{Family, Ruleset};
use rules::revision::{Numbers, Revision};
use rules::save::{LoadOptions, load};

use crate::Nobody;

fn ruleset(rules: &str) -> Ruleset {
    let text = format!("*filter\n:FORWARD DROP [0:0]\n{rules}COMMIT\n");
    load(&text, &LoadOptions::default()).expect("rules").ruleset
}

fn program(revision: Revision) -> Program {
    let ct = conntrack::Config { mode: Mode::Kernel, loose: false, ..conntrack::Config::default() };
    let config = Config { ct, path: Some(Path::Forward), ..Config::default() };
    Program::of_revisions(revision.number(), [Arc::new(revision)], Arc::new(config), Arc::default())
}

/// A handler, and the program that it walks now.
struct Host {
    program: Program,
    numbers: Numbers,
    handler: Handler,
    number: u64,
}

impl Host {
    fn new(rules: &str) -> Self {
        let mut numbers = Numbers::default();
        let program = program(Revision::first(&ruleset(rules), &mut numbers));
        Self { handler: Handler::new(&program), program, numbers, number: 0 }
    }

    fn follows(&mut self, rules: &str) {
        let revision = self.program.revision(Family::Ipv4).expect("it has rules");
        let next = revision.replaced_by(ruleset(rules), &mut self.numbers).expect("no loop");
        self.numbers.free(next.dropped());
        self.program = program(next);
        self.handler.follow(&self.program);
    }

    /// Whether a packet is accepted, a millisecond after the one before.
    fn accepts(&mut self, message: Message, is_back: bool) -> bool {
        self.number += 1;
        let ends = [[10, 0, 0, 1], [192, 0, 2, 9]];
        let [source, destination] = if is_back { [ends[1], ends[0]] } else { ends };
        let addresses = Addresses::V4 { source, destination };
        let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, message) }.frame();
        let time = Some(1_000_000_000 + self.number * 1_000_000);
        let arrival = Arrival { time, ..Arrival::new(self.number, Link::Raw, bytes.len()) };
        let end = self.handler.handle(&self.program, &mut bytes, &arrival, &mut Nobody).outcome.end;
        assert_ne!(end.verdict, FinalVerdict::Unknown);
        matches!(end.verdict, FinalVerdict::Accept(_))
    }

    fn accepts_query(&mut self) -> bool {
        self.accepts(Message::udp(5000, 53), false)
    }

    fn opens(&mut self) {
        assert!(self.accepts(Message::tcp(4000, 80, Flags::SYN), false));
        assert!(self.accepts(Message::tcp(80, 4000, Flags::SYN.union(Flags::ACK)), true));
    }

    fn goes_on(&mut self) -> bool {
        self.accepts(Message::tcp(4000, 80, Flags::ACK), false)
    }
}

const ESTABLISHED: &str = "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n";
const OPEN: &str = "-A FORWARD -p tcp -m tcp --dport 80 -j ACCEPT\n";

#[test]
fn connections_survive_even_rules_that_ask_for_none() {
    let mut host = Host::new(&format!("{ESTABLISHED}{OPEN}"));
    host.opens();
    host.follows(ESTABLISHED);
    assert!(host.goes_on());
    host.follows("-A FORWARD -p icmp -j ACCEPT\n");
    assert!(!host.goes_on());
    host.follows(ESTABLISHED);
    assert!(host.goes_on());
    // What never was there is not.
    assert!(!Host::new(ESTABLISHED).goes_on());
}

fn limited(burst: u32) -> String {
    format!("-A FORWARD -p udp -m limit --limit 1/hour --limit-burst {burst} -j ACCEPT\n")
}

#[test]
fn a_match_remembers_as_long_as_its_rule_reads_the_same() {
    let mut host = Host::new(&limited(2));
    assert!(host.accepts_query());
    host.follows(&format!(
        "{OPEN}-A FORWARD -p tcp -m limit --limit 3/sec -j ACCEPT\n{}",
        limited(2)
    ));
    assert!(host.accepts_query());
    assert!(!host.accepts_query());
    host.follows(&limited(1));
    assert!(host.accepts_query(), "another rule");
    assert!(!host.accepts_query());
    host.follows(OPEN);
    host.follows(&limited(1));
    assert!(host.accepts_query(), "it was gone meanwhile");
}

#[test]
fn of_rules_that_are_alike_each_keeps_its_own() {
    let (one, two) = (limited(1), limited(1).repeat(2));
    let mut host = Host::new(&two);
    assert!(host.accepts_query());
    host.follows(&format!("{OPEN}{two}"));
    assert!(host.accepts_query(), "the second of them has seen none");
    host.follows(&one);
    assert!(!host.accepts_query(), "the first of them has");
}

#[test]
fn lists_stay_by_their_name() {
    let mut host = Host::new("-A FORWARD -p udp -m recent --name SEEN --set -j ACCEPT\n");
    assert!(host.accepts_query());
    let asks = "-A FORWARD -p udp -m recent --name SEEN --rcheck -j ACCEPT\n";
    host.follows(asks);
    assert!(host.accepts_query());
    host.follows(&format!("-A FORWARD -p tcp -m recent --name OTHER --set\n{asks}"));
    assert!(host.accepts_query());
    host.follows(OPEN);
    host.follows(asks);
    assert!(!host.accepts_query(), "no rule named it meanwhile");
}

#[test]
fn the_same_rules_change_nothing() {
    let rules = format!("{ESTABLISHED}{OPEN}{}", limited(2));
    let mut host = Host::new(&rules);
    host.opens();
    assert!(host.accepts_query());
    for _ in 0..100 {
        host.follows(&rules);
    }
    assert!(host.goes_on());
    assert_eq!([host.accepts_query(), host.accepts_query()], [true, false]);
}
