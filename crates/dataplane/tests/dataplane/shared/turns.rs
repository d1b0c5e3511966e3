//! Random packets and changes of rules: workers that take turns say what one says that sees all packets, and whose
//! state is its own.

use access::list::{Action, Block, Change, Schedule, When};
use dataplane::publish::{Published, Worker};
use dataplane::{FinalVerdict, Handler};
use packet::craft::Message;
use packet::tcp::Flags;
use proptest::prelude::*;
use rules::model::Family;

use super::{arrival, frame, published, verdict};
use crate::Nobody;

const WORKERS: usize = 3;
const MS: u64 = 1_000_000;
const START: u64 = 1_700_000_000_000 * MS;

/// The part that a change replaces comes first.
const RULES: &str = "\
-A FORWARD -p udp -m udp --dport 1 -m limit --limit 2/sec --limit-burst 4 -j ACCEPT
-A FORWARD -p udp -m udp --dport 2 -m statistic --mode nth --every 3 --packet 1 -j ACCEPT
-A FORWARD -p udp -m udp --dport 3 -m recent --name L --update --seconds 2 --hitcount 3 -j DROP
-A FORWARD -p udp -m udp --dport 3 -m recent --name L --set -j ACCEPT
-A FORWARD -p udp -m udp --dport 4 -j SET --add-set s src --exist
-A FORWARD -p udp -m udp --dport 5 -m set --match-set s src -j ACCEPT
-A FORWARD -p udp -m udp --dport 6 -j SET --del-set s src
-A FORWARD -p udp -m udp --dport 7 -m set --match-set c src --packets-gt 2 -j ACCEPT
-A FORWARD -p udp -m udp --dport 8 -j ACCEPT
-A FORWARD -p tcp -m tcp --dport 80 --syn -m connlimit --connlimit-above 3 --connlimit-mask 30 -j DROP
-A FORWARD -p tcp -j ACCEPT
";

const SETS: &str = "create s hash:ip family inet timeout 3\ncreate c hash:ip family inet counters\n\
                    add c 10.0.0.1 packets 0 bytes 0\nadd c 10.0.0.2 packets 0 bytes 0\n";

/// Changes of rules: what reads the same begins afresh, and a list ends, or loses the rule that declared it.
const CHANGES: [&str; 4] = [
    "-R FORWARD 1 -p udp -m udp --dport 1 -m limit --limit 2/sec --limit-burst 4 -j ACCEPT",
    "-R FORWARD 2 -p udp -m udp --dport 2 -m statistic --mode nth --every 2 --packet 0 -j ACCEPT",
    "-R FORWARD 3 -p udp -m udp --dport 3 -m recent --name L --update --hitcount 2 -j DROP",
    "-R FORWARD 3 -p udp -m udp --dport 99 -j DROP\n-R FORWARD 4 -p udp -m udp --dport 3 -m recent --name L --set -j ACCEPT",
];

#[derive(Debug, Clone)]
enum Step {
    /// A client's datagram from one of its ports to a port.
    Datagram {
        client: u8,
        from: u8,
        to: u8,
    },
    /// A segment of one of a client's connections: what it says, and whether it comes back.
    Segment {
        client: u8,
        from: u8,
        flags: u8,
    },
    Change(usize),
    Wait(u64),
}

fn a_step() -> impl Strategy<Value = Step> {
    let waits = prop::sample::select(vec![1, 9, 15, 30, 400, 1100, 3500, 70_000, 130_000]);
    prop_oneof![
        8 => (1..4u8, 0..4u8, 1..9u8).prop_map(|(client, from, to)| Step::Datagram { client, from, to }),
        8 => (1..4u8, 0..6u8, 0..6u8).prop_map(|(client, from, flags)| Step::Segment { client, from, flags }),
        1 => (0..CHANGES.len()).prop_map(Step::Change),
        5 => waits.prop_map(Step::Wait),
    ]
}

/// Opened, answered, acknowledged, ended from either side, reset.
fn segment(from: u8, flags: u8) -> (Message, bool) {
    let (port, ack) = (4000 + u16::from(from), Flags::ACK);
    match flags {
        0 => (Message::tcp(port, 80, Flags::SYN), false),
        1 => (Message::tcp(80, port, Flags::SYN.union(ack)), true),
        2 => (Message::tcp(port, 80, ack), false),
        3 => (Message::tcp(port, 80, Flags::FIN.union(ack)), false),
        4 => (Message::tcp(80, port, Flags::FIN.union(ack)), true),
        _ => (Message::tcp(80, port, Flags::RST.union(ack)), true),
    }
}

/// Several workers, and a handler that sees all packets alone.
struct Hosts {
    published: Published,
    /// Each with the packets that it has taken through.
    workers: Vec<(Worker, u64)>,
    alone: Handler,
    followed: u64,
    number: u64,
    now: u64,
}

impl Hosts {
    fn new() -> Self {
        let ban = |action, after| {
            let source = Block::parse("10.0.0.3/32").unwrap();
            (When::After(after), Change { action, source, destination: None })
        };
        let bans = vec![ban(Action::Ban, 500 * MS), ban(Action::Unban, 2500 * MS)];
        let published = published(RULES, SETS, Some(Schedule::new("bans", bans)));
        let workers = (0..WORKERS).map(|_| (published.worker(), 0)).collect();
        let alone = Handler::new(&published.program());
        Self { published, workers, alone, followed: 1, number: 0, now: START }
    }

    fn takes(&mut self, worker: usize, bytes: Vec<u8>) -> [FinalVerdict; 2] {
        let program = self.published.program();
        if program.number() != self.followed {
            self.alone.follow(&program);
            self.followed = program.number();
        }
        self.number += 1;
        let (arrival, mut own) = (arrival(self.number, self.now, bytes.len()), bytes.clone());
        let alone = self.alone.handle(&program, &mut own, &arrival, &mut Nobody).outcome.end;
        let (worker, number) = &mut self.workers[worker];
        *number += 1;
        [alone.verdict, verdict(&mut worker.burst(), bytes, (*number, self.now))]
    }

    /// A step, and what becomes of its packet, alone and shared out.
    fn step(&mut self, step: &Step) -> Option<[FinalVerdict; 2]> {
        let (client, from, (message, is_back)) = match *step {
            Step::Wait(millis) => {
                self.now += millis * MS;
                return None;
            }
            Step::Change(at) => {
                let text = format!("*filter\n{}\nCOMMIT\n", CHANGES[at]);
                let number = self.published.program().number();
                self.published.commit_text(number, Family::Ipv4, &text).unwrap();
                return None;
            }
            Step::Datagram { client, from, to } => {
                (client, from, (Message::udp(5000 + u16::from(from), to.into()), false))
            }
            Step::Segment { client, from, flags } => (client, from, segment(from, flags)),
        };
        let worker = usize::from(client + from) % WORKERS;
        Some(self.takes(worker, frame([10, 0, 0, client], message, is_back)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn workers_in_turns_say_what_one_says(steps in prop::collection::vec(a_step(), 1..150)) {
        let mut hosts = Hosts::new();
        for (at, step) in steps.iter().enumerate() {
            if let Some([alone, shared]) = hosts.step(step) {
                prop_assert_eq!(shared, alone, "step {} of {:?}", at, steps);
            }
        }
    }
}

/// The program above is not one of which nothing is known: what is compared are verdicts.
#[test]
fn most_verdicts_are_known() {
    let mut hosts = Hosts::new();
    let mut seen = [0_u32; 3];
    for at in 0..2000_u32 {
        let (client, from) = ((at % 3 + 1) as u8, (at / 3 % 6) as u8);
        let step = match at % 4 {
            0 => Step::Wait(15),
            1 => Step::Segment { client, from, flags: (at / 40 % 6) as u8 },
            _ => Step::Datagram { client, from, to: (at % 8 + 1) as u8 },
        };
        if let Some([alone, shared]) = hosts.step(&step) {
            assert_eq!(shared, alone, "{at}");
            let kind = match alone {
                FinalVerdict::Accept(_) => 0,
                FinalVerdict::Drop(_) => 1,
                _ => 2,
            };
            seen[kind] += 1;
        }
    }
    assert!(seen[0] > 200 && seen[1] > 200 && seen[2] < 100, "{seen:?}");
}

/// A reset removes a connection that was never answered from the table at once: it is removed, not just closed.
#[test]
fn others_are_told_of_what_a_reset_ended() {
    let segment = |client, from, flags| Step::Segment { client, from, flags };
    let steps = [
        segment(1, 0, 0),
        segment(2, 3, 0),
        segment(2, 3, 5),
        Step::Wait(15),
        segment(3, 0, 0),
        segment(1, 1, 0),
    ];
    let mut hosts = Hosts::new();
    for (at, step) in steps.iter().enumerate() {
        if let Some([alone, shared]) = hosts.step(step) {
            assert_eq!(shared, alone, "step {at}");
        }
    }
}
