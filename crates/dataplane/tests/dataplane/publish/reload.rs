//! Reloads: rules of several families, sets and the access list change at one moment, and connections stay.

use std::sync::Arc;

use access::list::Schedule;
use dataplane::publish::{PublishError, Published};
use dataplane::{Arrival, Config, Crossing, FinalVerdict, Origin, Start, bans_text};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use rules::ipset::Sets;
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};

/// Accepts what is in the set, and replies.
const RULES: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
    -A FORWARD -m set --match-set good src -j ACCEPT\nCOMMIT\n";

fn ruleset(family: Family, text: &str) -> Ruleset {
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    load(text, &options).expect("rules").ruleset
}

fn sets(member: &str) -> Option<Sets> {
    let text = format!("create good hash:ip family inet\nadd good {member}\n");
    Some(Sets::parse(&text).expect("sets"))
}

fn bans(text: &str) -> Option<Schedule> {
    Some(bans_text::parse("bans", text).expect("bans"))
}

fn frame(from: &str, to: &str, flags: Flags) -> Vec<u8> {
    let addresses = Addresses::new(from.parse().unwrap(), to.parse().unwrap()).unwrap();
    let ports = if flags == Flags::SYN { (4000, 80) } else { (80, 4000) };
    Craft::new(addresses, Message::tcp(ports.0, ports.1, flags)).frame()
}

#[test]
fn everything_changes_at_once_and_connections_stay() {
    let ct = conntrack::Config { mode: conntrack::Mode::Kernel, ..conntrack::Config::default() };
    let config = Config { ct, ..Config::default() };
    let start = Start { sets: sets("10.0.0.1"), bans: bans(""), ..Start::default() };
    let published: Published = Published::counting([&ruleset(Family::Ipv4, RULES)], config, start);
    let mut worker = published.worker();
    let crossing = Crossing::default();
    let mut accepts = |frame: &[u8]| {
        let arrival = Arrival {
            wire: Some(&crossing),
            origin: Origin::Wire,
            time: Some(0),
            ..Arrival::new(1, Link::Wire, frame.len())
        };
        let mut guard = worker.burst();
        let end = guard.handle(&mut frame.to_vec(), &arrival, &mut crate::Nobody).outcome.end;
        matches!(end.verdict, FinalVerdict::Accept(_))
    };
    let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|from| frame(from, "192.0.2.9", Flags::SYN));
    let six = frame("fd00::1", "fd00::9", Flags::SYN);
    assert_eq!([&one, &two, &six].map(|frame| accepts(frame)), [true, false, false]);

    let both = || {
        let v6 = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";
        vec![ruleset(Family::Ipv4, RULES), ruleset(Family::Ipv6, v6)]
    };
    let looped =
        "*filter\n:FORWARD DROP [0:0]\n:a - [0:0]\n:b - [0:0]\n-A a -j b\n-A b -j a\nCOMMIT\n";
    // Loading refuses a jump to the loop, so it is put in by hand.
    let mut reached = ruleset(Family::Ipv6, looped);
    let chains = &mut reached.tables[0].chains;
    let jump = Arc::clone(&chains[2].rules[0]);
    chains[0].rules.push(jump);
    let rulesets = vec![ruleset(Family::Ipv4, RULES), reached];
    let refused = published.reload(1, rulesets, sets("10.0.0.3"), None);
    assert!(matches!(refused, Err(PublishError::Refused(_))), "{refused:?}");
    assert_eq!([&one, &two, &six].map(|frame| accepts(frame)), [true, false, false]);
    let stale = published.reload(7, both(), None, None);
    assert_eq!(stale, Err(PublishError::Stale { expected: 7, current: 1 }));

    let banned = bans("- ban 10.0.0.3\n");
    assert_eq!(published.reload(1, both(), sets("10.0.0.2"), banned), Ok(2));
    let three = frame("10.0.0.3", "192.0.2.9", Flags::SYN);
    let reply = frame("192.0.2.9", "10.0.0.1", Flags::SYN.union(Flags::ACK));
    // The connection of the first is known all the same.
    assert_eq!([&reply, &two, &six].map(|frame| accepts(frame)), [true, true, true]);
    assert!(!accepts(&three));
    assert!(
        published
            .shared()
            .bans()
            .reader()
            .at(None)
            .decide("10.0.0.3".parse().unwrap(), "192.0.2.9".parse().unwrap())
            .is_err()
    );
    assert_eq!(published.shared().sets().unwrap().elements("good"), Some(1));
    assert_eq!(published.reload(2, both(), sets("10.0.0.3"), None), Ok(3));
    assert!(accepts(&three), "nobody is banned any more");
}
