//! Captures that begin in the middle of connections: verdicts, counters and translation of what may be new or not.

use std::sync::Arc;

use conntrack::{self, Mode};
use dataplane::{
    Arrival, Config, Counters, Disposition, Early, FinalVerdict, Handler, Observer, Path, Program,
};
use host::Network;
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use proptest::prelude::*;
use rules::Transit;
use rules::eval::{self, RuleRef};
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};

const LAN: [u8; 4] = [10, 0, 0, 5];
const NET: [u8; 4] = [198, 51, 100, 7];
const OWN: [u8; 4] = [192, 0, 2, 1];

struct Hits(Counters);

impl eval::Observer for Hits {
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.0.hit_rule(at, certain, transit.packet.len() as u64, transit.time);
    }
}

impl Observer for Hits {}

fn ruleset(text: &str) -> Arc<Ruleset> {
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    Arc::new(load(text, &options).expect("rules").ruleset)
}

fn config(mode: Mode) -> Config {
    let net = |text: &str| Network::parse(text).expect("a network");
    Config {
        nets: vec![("lan".to_owned(), net("10.0.0.0/8")), ("wan".to_owned(), net("0.0.0.0/0"))],
        ct: conntrack::Config { mode, ..conntrack::Config::default() },
        host: host::Host { local: Some(vec![net("192.0.2.1")]), ..host::Host::default() },
        ..Config::default()
    }
}

fn frame(source: [u8; 4], destination: [u8; 4], message: Message) -> Vec<u8> {
    let addresses = Addresses::V4 { source, destination };
    Craft { ethernet: None, payload_len: 5, ..Craft::new(addresses, message) }.frame()
}

fn ack(ports: [u16; 2]) -> Message {
    let [source_port, destination_port] = ports;
    let (sequence, acknowledgement, window) = (7, 9, 100);
    Message::Tcp {
        source_port,
        destination_port,
        flags: Flags::ACK,
        sequence,
        acknowledgement,
        window,
    }
}

struct Host {
    ruleset: Arc<Ruleset>,
    program: Program,
    handler: Handler,
    hits: Hits,
    number: u64,
    one_sided: bool,
}

impl Host {
    fn new(ruleset: &Arc<Ruleset>, config: &Config) -> Self {
        let program = Program::new([Arc::clone(ruleset)], config.clone());
        Self {
            ruleset: Arc::clone(ruleset),
            handler: Handler::new(&program),
            program,
            hits: Hits(Counters::of(ruleset)),
            number: 0,
            one_sided: false,
        }
    }

    fn pass(&mut self, bytes: &mut [u8]) -> Disposition {
        self.number += 1;
        let time = Some(self.number * 1_000_000);
        let one_sided = self.one_sided;
        let arrival =
            Arrival { time, one_sided, ..Arrival::new(self.number, Link::Raw, bytes.len()) };
        self.handler.handle(&self.program, bytes, &arrival, &mut self.hits).outcome.end
    }

    /// Certain and possible packets of each rule of a table's first chain with rules.
    fn counted(&self, table: &str) -> Vec<[u64; 2]> {
        let t = self.ruleset.tables.iter().position(|known| known.name == table).expect("a table");
        let chains = &self.ruleset.tables[t].chains;
        let c = chains.iter().position(|chain| !chain.rules.is_empty()).expect("rules");
        let rules = 0..chains[c].rules.len();
        let hits = |rule| {
            let at = RuleRef { table: t as u32, chain: c as u32, rule: rule as u32 };
            let hits = self.hits.0.rule(at);
            [hits.packets, hits.maybe]
        };
        rules.map(hits).collect()
    }
}

const ROUTER: &str = "*nat\n-A POSTROUTING -o wan -j SNAT --to-source 192.0.2.1\nCOMMIT\n\
    *filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD\n\
    -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
    -A FORWARD -i lan -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";

#[test]
fn where_states_agree_the_verdict_is_certain_and_counters_are_not() {
    let (rules, config) = (ruleset(ROUTER), config(Mode::Midstream));
    let mut host = Host::new(&rules, &config);
    let mut sent = frame(LAN, NET, Message::udp(4000, 53));
    let end = host.pass(&mut sent);
    assert!(matches!(end.verdict, FinalVerdict::Accept(_)), "{end:?}");
    assert_eq!(end.early, Early::No);
    assert_eq!(sent[12..16], OWN, "translated as a new one");
    assert_eq!(host.counted("filter"), [[1, 0], [0, 1], [0, 1]]);
    assert_eq!(host.counted("nat"), [[0, 1]]);
    let mut answer = frame(NET, OWN, Message::udp(53, 4000));
    let end = host.pass(&mut answer);
    assert!(matches!(end.verdict, FinalVerdict::Accept(_)), "{end:?}");
    assert_eq!(answer[16..20], LAN);
    assert_eq!(host.counted("filter"), [[2, 0], [1, 1], [0, 1]]);
}

#[test]
fn where_they_do_not_it_is_taken_and_counted_as_early() {
    let (rules, config) = (ruleset(ROUTER), config(Mode::Midstream));
    let mut host = Host::new(&rules, &config);
    for early in [Early::First, Early::Later] {
        let end = host.pass(&mut frame(NET, LAN, ack([80, 4000])));
        assert!(matches!(end.verdict, FinalVerdict::Accept(Some(_))), "{end:?}");
        assert_eq!(end.early, early);
    }
    assert_eq!(host.counted("filter"), [[2, 0], [0, 2], [0, 0]]);
    for early in [Early::First, Early::Later] {
        let end = host.pass(&mut frame(NET, LAN, Message::udp(53, 4000)));
        assert!(matches!(end.verdict, FinalVerdict::Drop(_)), "{end:?}");
        assert_eq!(end.early, early);
    }
    assert_eq!(host.counted("filter"), [[4, 0], [0, 4], [0, 0]]);
    // Who answers got something.
    let end = host.pass(&mut frame(LAN, NET, ack([4000, 80])));
    assert_eq!((matches!(end.verdict, FinalVerdict::Accept(_)), end.early), (true, Early::No));
    assert_eq!(host.counted("filter"), [[5, 0], [1, 4], [0, 0]]);
}

#[test]
fn under_kernel_nothing_is_taken() {
    let (rules, config) = (ruleset(ROUTER), config(Mode::Kernel));
    let mut host = Host::new(&rules, &config);
    let end = host.pass(&mut frame(NET, LAN, ack([80, 4000])));
    assert!(matches!(end.verdict, FinalVerdict::Drop(_)), "{end:?}");
    let end = host.pass(&mut frame(LAN, NET, Message::udp(4000, 53)));
    assert!(matches!(end.verdict, FinalVerdict::Accept(_)), "{end:?}");
    assert_eq!(host.counted("filter"), [[2, 0], [0, 0], [1, 0]]);
}

#[test]
fn what_a_host_says_that_was_not_recorded_leaves_its_datagrams_unknown() {
    let text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
        -A INPUT -p udp --dport 53 -j ACCEPT\nCOMMIT\n";
    let rules = ruleset(text);
    let config = config(Mode::Midstream);
    let mut host = Host { one_sided: true, ..Host::new(&rules, &config) };
    let end = host.pass(&mut frame(NET, OWN, ack([80, 4000])));
    assert!(matches!(end.verdict, FinalVerdict::Accept(_)), "{end:?}");
    assert_eq!(end.early, Early::First, "what it acknowledges was sent");
    let end = host.pass(&mut frame(NET, OWN, Message::udp(4001, 5000)));
    assert_eq!((end.verdict, end.early), (FinalVerdict::Unknown, Early::No));
    let end = host.pass(&mut frame(NET, OWN, Message::udp(4000, 53)));
    assert!(matches!(end.verdict, FinalVerdict::Accept(_)), "{end:?}");
}

#[test]
fn a_mark_that_may_be_set_is_not_known_until_it_is_set() {
    let text = "*mangle\n-A FORWARD -m conntrack --ctstate NEW -j CONNMARK --set-mark 5\n\
        -A FORWARD -m connmark --mark 5\nCOMMIT\n*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";
    let (rules, config) = (ruleset(text), config(Mode::Midstream));
    let mut host = Host::new(&rules, &config);
    host.pass(&mut frame(LAN, NET, Message::udp(4000, 53)));
    let end = host.pass(&mut frame(NET, LAN, Message::udp(53, 4000)));
    assert!(matches!(end.verdict, FinalVerdict::Accept(_)), "{end:?}");
    assert_eq!(host.counted("mangle"), [[0, 1], [0, 2]]);
}

#[test]
fn what_the_raw_table_gives_a_connection_stays() {
    let text = "*mangle\n-A PREROUTING -m conntrack --ctstate UNTRACKED\nCOMMIT\n\
        *raw\n-A PREROUTING -j NOTRACK\nCOMMIT\n";
    for mode in [Mode::Kernel, Mode::Midstream] {
        let (rules, config) = (ruleset(text), config(mode));
        let mut host = Host::new(&rules, &config);
        host.pass(&mut frame(NET, LAN, Message::udp(1, 2)));
        assert_eq!(host.counted("mangle"), [[1, 0]]);
    }
}

const TESTS: [&str; 13] = [
    "",
    "-i lan",
    "-p udp",
    "-p tcp",
    "-m conntrack --ctstate NEW",
    "-m conntrack --ctstate ESTABLISHED",
    "-m conntrack --ctstate RELATED,ESTABLISHED",
    "-m conntrack ! --ctstate NEW,INVALID",
    "-m state --state INVALID",
    "-p tcp -m tcp --dport 80 -m conntrack --ctstate NEW",
    "-m mark --mark 1",
    "-m conntrack --ctstatus ASSURED",
    "-m limit --limit 1/hour --limit-burst 3",
];

/// What rules do in either table, and in one of them alone.
const ACTIONS: [&str; 7] =
    ["", "-j ACCEPT", "-j ACCEPT", "-j DROP", "-j DROP", "-j RETURN", "-j CONNMARK --set-mark 1"];
const MANGLE: [&str; 2] = ["-j MARK --set-mark 1", "-j TTL --ttl-dec 1"];
const FILTER: [&str; 2] =
    ["-j REJECT --reject-with tcp-reset -p tcp", "-j REJECT --reject-with icmp-port-unreachable"];

/// Rules of a chain that lead to deeper ones.
fn random_chain(at: usize, own: [&'static str; 2]) -> impl Strategy<Value = String> {
    const CHAINS: [&str; 3] = ["FORWARD", "one", "two"];
    let mut actions: Vec<String> = ACTIONS.iter().chain(&own).map(ToString::to_string).collect();
    for deeper in &CHAINS[at + 1..] {
        actions.extend([format!("-j {deeper}"), format!("-g {deeper}")]);
    }
    let rule = (prop::sample::select(TESTS.to_vec()), prop::sample::select(actions));
    let rule = rule.prop_filter("one protocol", |(test, action)| {
        !(test.contains("-p") && action.contains("-p"))
    });
    let line = rule.prop_map(move |(test, action)| format!("-A {} {test} {action}\n", CHAINS[at]));
    prop::collection::vec(line, 0..5).prop_map(|lines| lines.concat())
}

fn random_rules() -> impl Strategy<Value = String> {
    let chains = |own| {
        let chains = (random_chain(0, own), random_chain(1, own), random_chain(2, own));
        chains.prop_map(|(a, b, c)| format!(":one -\n:two -\n{a}{b}{c}COMMIT\n"))
    };
    (chains(MANGLE), chains(FILTER), any::<bool>()).prop_map(|(mangle, filter, translates)| {
        let nat = "*nat\n-A POSTROUTING -o wan -j SNAT --to-source 192.0.2.1\nCOMMIT\n";
        let nat = if translates { nat } else { "" };
        format!("{nat}*mangle\n{mangle}*filter\n:FORWARD DROP [0:0]\n{filter}")
    })
}

fn random_packet() -> impl Strategy<Value = Vec<u8>> {
    let flags = prop::sample::select(vec![0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x14]);
    (any::<bool>(), any::<bool>(), flags, 0..3u16).prop_map(|(goes_out, is_udp, bits, port)| {
        let ports = if goes_out { [4000 + port, 80] } else { [80, 4000 + port] };
        let mut message = ack(ports);
        if let Message::Tcp { flags, .. } = &mut message {
            *flags = Flags(bits);
        }
        let message = if is_udp { Message::udp(ports[0], ports[1]) } else { message };
        if goes_out { frame(LAN, NET, message) } else { frame(NET, LAN, message) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A handler that sends walks a packet once more for the bytes that leave; another handler only where the first
    /// walk has not shown what the assumed state leads to. By then a connection none of whose packets survived has been
    /// removed: what asks for more of it than its state is unknown to the second walk alone.
    #[test]
    fn what_one_walk_tells_of_a_state_is_what_a_walk_in_it_tells(
        text in random_rules(),
        packets in prop::collection::vec(random_packet(), 1..16),
        is_given in any::<bool>(),
    ) {
        let path = is_given.then_some(Path::Forward);
        let (rules, config) = (ruleset(&text), Config { path, ..config(Mode::Midstream) });
        let mut once = Host::new(&rules, &config);
        let mut again = Host::new(&rules, &config);
        again.handler = Handler::new(&again.program).sending();
        for (at, packet) in packets.into_iter().enumerate() {
            let [told, walked] = [&mut once, &mut again].map(|host| host.pass(&mut packet.clone()));
            if walked.verdict != FinalVerdict::Unknown {
                // Whether it is the first that was taken so depends on those before it.
                let mut told = Disposition { early: walked.early, ..told };
                if told.either.is_none() && walked.either.is_some() {
                    // The second walk knows the verdict, and not which rule gives it.
                    let words = [told, walked].map(|end| end.verdict.word());
                    prop_assert_eq!(words[0], words[1], "packet {}\n{}", at, text);
                    (told.verdict, told.either) = (walked.verdict, walked.either);
                }
                prop_assert_eq!(told, walked, "packet {}\n{}", at, text);
            }
        }
    }
}
