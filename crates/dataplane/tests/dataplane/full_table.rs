//! More connections than the table holds: what the kernel evicts is secret, and so is whether a packet finds room.

use std::sync::Arc;

use conntrack::{self, Mode};
use dataplane::{
    Arrival, Config, Disposition, DropReason, Evaluator, FinalVerdict, Observer, Program, Why,
};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Entropy, eval};

#[derive(Default)]
struct Notes(Vec<Why>);

impl eval::Observer for Notes {
    fn unknown(&mut self, at: eval::RuleRef, cause: eval::Cause) {
        self.0.push(Why::Rule(Family::Ipv4, at, cause));
    }
}

impl Observer for Notes {
    fn depends_on(&mut self, why: Why) {
        self.0.push(why);
    }
}

fn ruleset(policy: &str) -> Arc<Ruleset> {
    let text = format!(
        "*filter\n:FORWARD {policy} [0:0]\n-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
         -A FORWARD -p udp --dport 53 -j ACCEPT\nCOMMIT\n"
    );
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    Arc::new(load(&text, &options).expect("rules").ruleset)
}

/// Datagrams of this number of clients to a port, one after the other, in a table of 4 that stands for the kernel's.
fn sent(
    rules: Arc<Ruleset>,
    clients: std::ops::Range<u16>,
    port: u16,
) -> Vec<(Disposition, Vec<Why>)> {
    sent_through(rules, Entropy::Unknown, clients, port)
}

/// Sends packets, with random numbers drawn from `entropy`.
fn sent_through(
    rules: Arc<Ruleset>,
    entropy: Entropy,
    clients: std::ops::Range<u16>,
    port: u16,
) -> Vec<(Disposition, Vec<Why>)> {
    let ct = conntrack::Config { mode: Mode::Kernel, max: 4, ..conntrack::Config::default() };
    let config = Config { ct, entropy, path: Some(dataplane::Path::Forward), ..Config::default() };
    let program = Program::new([rules], config);
    let mut evaluator = Evaluator::new(&program);
    let mut pass = |client: u16, port| {
        let addresses = Addresses::V4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
        let message = Message::udp(4000 + client, port);
        let mut bytes = Craft { ethernet: None, ..Craft::new(addresses, message) }.frame();
        let arrival = Arrival { time: Some(1), ..Arrival::new(1, Link::Raw, bytes.len()) };
        let mut notes = Notes::default();
        let end = evaluator.handle(&mut bytes, &arrival, &mut notes).outcome.end;
        (end, notes.0)
    };
    (0..4).for_each(|client| {
        assert!(matches!(pass(client, 53).0.verdict, FinalVerdict::Accept(_)), "there is room");
    });
    clients.map(|client| pass(client, port)).collect()
}

#[test]
fn a_packet_that_may_find_no_room_is_unknown() {
    for (end, whys) in sent(ruleset("ACCEPT"), 10..20, 53) {
        assert_eq!((end.verdict, whys), (FinalVerdict::Unknown, vec![Why::Room]));
    }
}

#[test]
fn what_is_dropped_with_or_without_room_is_dropped() {
    for (end, _) in sent(ruleset("DROP"), 10..20, 99) {
        assert!(matches!(end.verdict, FinalVerdict::Drop(_)), "{end:?}");
        let either = end.either.expect("one of two");
        assert_eq!(either.first, DropReason::Conntrack);
        assert!(matches!(either.last, DropReason::Policy { .. }), "{either:?}");
    }
}

#[test]
fn a_table_that_decides_knows_what_it_evicted() {
    for (end, whys) in sent_through(ruleset("ACCEPT"), Entropy::Seed(1), 10..20, 53) {
        assert!(matches!(end.verdict, FinalVerdict::Accept(_)), "{end:?}");
        assert_eq!(whys, []);
    }
    for (end, _) in sent_through(ruleset("DROP"), Entropy::Seed(1), 10..20, 99) {
        let by_policy = matches!(end.verdict, FinalVerdict::Drop(DropReason::Policy { .. }));
        assert!(by_policy && end.either.is_none(), "{end:?}");
    }
}
