//! Conversations through NAT rules: what packets look like after them, both ways, with whole checksums.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use conntrack::steer::{Alike, Key, Shard};
use conntrack::{self, Mode, Tuple};
use dataplane::{Arrival, Config, DropReason, Evaluator, FinalVerdict, Origin, Path, Program};
use host::{Host, Kernel, Network};
use packet::craft::{Addresses, Craft, Message};
use packet::{Link, checksum};
use proptest::prelude::{any, proptest};
use rules::Entropy;
use rules::eval::RuleRef;
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};

use crate::Nobody;
use crate::ways::{Hits, arrival, routed};

pub(crate) fn ruleset(nat: &str, filter: &str) -> Arc<Ruleset> {
    let text = format!("*nat\n{nat}\nCOMMIT\n*filter\n{filter}\nCOMMIT\n");
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    Arc::new(load(&text, &options).expect("rules").ruleset)
}

fn network(text: &str) -> Network {
    Network::parse(text).expect("a network")
}

pub(crate) fn config() -> Config {
    let local = network("192.0.2.1");
    Config {
        nets: vec![
            ("lan".to_owned(), network("10.0.0.0/8")),
            ("wan".to_owned(), network("0.0.0.0/0")),
        ],
        ct: conntrack::Config { mode: Mode::Kernel, ..conntrack::Config::default() },
        host: Host {
            local: Some(vec![local]),
            addresses: vec![("wan".to_owned(), local.addr)],
            ..Host::default()
        },
        ..Config::default()
    }
}

/// Source, destination, ports.
pub(crate) type Ends = (&'static str, u16, &'static str, u16);

pub(crate) fn udp((source, from, destination, to): Ends) -> Vec<u8> {
    frame(source, destination, Message::udp(from, to))
}

pub(crate) fn frame(source: &str, destination: &str, message: Message) -> Vec<u8> {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let addresses = Addresses::new(address(source), address(destination)).expect("one family");
    let mut craft = Craft::new(addresses, message);
    craft.ethernet = None;
    craft.payload_len = 5;
    craft.frame()
}

pub(crate) fn pass(
    evaluator: &mut Evaluator<'_>,
    bytes: &mut [u8],
    number: u64,
) -> (FinalVerdict, Option<Path>) {
    let arrival =
        Arrival { time: Some(number * 1_000_000), ..Arrival::new(number, Link::Raw, bytes.len()) };
    let end = evaluator.handle(bytes, &arrival, &mut Nobody).outcome.end;
    (end.verdict, end.path)
}

/// Where two clients ask for one port of the host's address the second one gets another port, which its worker draws:
/// replies to that port steer to the same worker.
#[test]
fn a_worker_draws_ports_whose_replies_come_to_itself() {
    let rules =
        ruleset(":POSTROUTING ACCEPT\n-A POSTROUTING -o wan -j MASQUERADE", ":FORWARD ACCEPT");
    let key = Key::Ports(Alike::default());
    let program = Program::new([rules], Config { entropy: Entropy::Seed(7), ..config() });
    let tuple = Tuple::new([10, 0, 0, 1].into(), [20, 0, 0, 1].into(), 17, [4000, 53]);
    for shards in 1..5 {
        let shard = Shard::all(&key, shards, 100).find(|shard| shard.has(&tuple)).unwrap();
        let mut evaluator = Evaluator::of_shard(&program, Some(shard.clone()));
        for (number, client) in [(1, "10.0.0.1"), (2, "10.0.0.2"), (3, "10.0.0.3")] {
            let mut bytes = udp((client, 4000, "20.0.0.1", 53));
            let verdict = pass(&mut evaluator, &mut bytes, number).0;
            assert!(matches!(verdict, FinalVerdict::Accept(_)), "{verdict:?}");
            let port = u16::from_be_bytes([bytes[20], bytes[21]]);
            assert_eq!(port == 4000, number == 1);
            assert!(port >= 1024 && shard.has(&tuple.with_source([192, 0, 2, 1].into(), port)));
            let mut reply = udp(("20.0.0.1", 53, "192.0.2.1", port));
            pass(&mut evaluator, &mut reply, number);
            assert_is(&reply, ("20.0.0.1", 53, client, 4000));
        }
    }
}

/// Ports that rules draw at random come from their range, as long as a free one is left; then packets are dropped.
#[test]
fn ports_are_drawn_from_their_range_until_none_is_left() {
    let nat = ":POSTROUTING ACCEPT\n-A POSTROUTING -p udp -j SNAT --to-source 192.0.2.1:5000-5063 --random";
    let program = Program::new(
        [ruleset(nat, ":FORWARD ACCEPT")],
        Config { entropy: Entropy::System, ..config() },
    );
    let mut evaluator = Evaluator::new(&program);
    let mut drawn = HashSet::new();
    let mut send = |client: u16| {
        let mut bytes = udp(("10.0.0.1", client, "20.0.0.1", 53));
        let verdict = pass(&mut evaluator, &mut bytes, 1).0;
        (verdict, u16::from_be_bytes([bytes[20], bytes[21]]))
    };
    for client in 0..64 {
        let (verdict, port) = send(3000 + client);
        assert!(matches!(verdict, FinalVerdict::Accept(_)), "{verdict:?}");
        assert!((5000..5064).contains(&port) && drawn.insert(port), "{port}");
    }
    assert_eq!(send(4000).0, FinalVerdict::Drop(DropReason::Conntrack));
}

/// Asserts the addresses and ports of a UDP packet, and that both its checksums hold.
fn assert_is(bytes: &[u8], ends: Ends) {
    let expected = udp(ends);
    assert_eq!(bytes[12..24], expected[12..24], "addresses and ports");
    assert_eq!(checksum::sum(&bytes[..20]), 0xffff, "header checksum");
    assert!(upper_holds(bytes), "UDP checksum");
}

fn upper_holds(bytes: &[u8]) -> bool {
    let at = |from: usize| [bytes[from], bytes[from + 1], bytes[from + 2], bytes[from + 3]];
    let pseudo = checksum::pseudo_v4(at(12), at(16), bytes[9], (bytes.len() - 20) as u16);
    checksum::add(checksum::sum(&bytes[20..]), pseudo) == 0xffff
}

/// One packet through rules and an answer to what came out, with what either should look like.
fn converse(nat: &str, sent: Ends, translated: Ends, answered: Ends) {
    let (rules, config) = (ruleset(nat, ":FORWARD ACCEPT [0:0]"), config());
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut bytes = udp(sent);
    let (verdict, _) = pass(&mut evaluator, &mut bytes, 1);
    assert!(matches!(verdict, FinalVerdict::Accept(_)), "{verdict:?}");
    assert_is(&bytes, translated);
    let (source, from, destination, to) = translated;
    let mut answer = udp((destination, to, source, from));
    let (verdict, path) = pass(&mut evaluator, &mut answer, 2);
    assert!(matches!(verdict, FinalVerdict::Accept(_)), "{verdict:?}");
    assert_eq!(path, Some(Path::Forward), "the answer goes on");
    assert_is(&answer, answered);
}

#[test]
fn destinations_are_translated_and_answers_back() {
    converse(
        "-A PREROUTING -p udp -m udp --dport 53 -j DNAT --to-destination 10.0.0.9:5353",
        ("198.51.100.7", 4000, "192.0.2.1", 53),
        ("198.51.100.7", 4000, "10.0.0.9", 5353),
        ("192.0.2.1", 53, "198.51.100.7", 4000),
    );
}

#[test]
fn sources_are_translated_and_answers_back() {
    for nat in [
        "-A POSTROUTING -o wan -j SNAT --to-source 192.0.2.1",
        "-A POSTROUTING -o wan -j MASQUERADE",
        "-A POSTROUTING -o wan -j NETMAP --to 192.0.2.1/32",
    ] {
        converse(
            nat,
            ("10.0.0.5", 4000, "198.51.100.7", 53),
            ("192.0.2.1", 4000, "198.51.100.7", 53),
            ("198.51.100.7", 53, "10.0.0.5", 4000),
        );
    }
}

#[test]
fn a_redirected_packet_comes_to_the_host() {
    let rules = ruleset(
        "-A PREROUTING -i wan -p udp -j REDIRECT --to-ports 3128",
        "-A INPUT -p udp -m udp --dport 3128 -d 192.0.2.1 -j DROP",
    );
    let config = config();
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut bytes = udp(("198.51.100.7", 4000, "203.0.113.9", 53));
    let (verdict, path) = pass(&mut evaluator, &mut bytes, 1);
    assert_eq!(path, Some(Path::Input));
    assert!(matches!(verdict, FinalVerdict::Drop(_)), "{verdict:?}");
    assert_is(&bytes, ("198.51.100.7", 4000, "192.0.2.1", 3128));
}

/// An error that the router 198.51.100.1 sends to the host about a packet that it quotes.
pub(crate) fn error(kind: u8, quoted: &[u8]) -> Vec<u8> {
    let mut header = vec![kind, 1, 0, 0, 0, 0, 0, 0];
    header.extend_from_slice(quoted);
    let sum = !checksum::sum(&header);
    header[2..4].copy_from_slice(&sum.to_be_bytes());
    let len = 20 + header.len();
    let mut error = frame("198.51.100.1", "192.0.2.1", Message::Other { protocol: 1, header });
    error.truncate(len);
    error[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    error
}

#[test]
fn an_error_and_what_it_quotes_are_translated() {
    let rules = ruleset("-A POSTROUTING -o wan -j MASQUERADE", "");
    let config = config();
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let sent = udp(("10.0.0.5", 4000, "198.51.100.7", 53));
    let mut bytes = sent.clone();
    pass(&mut evaluator, &mut bytes, 1);
    let mut error = error(3, &bytes);
    let (verdict, _) = pass(&mut evaluator, &mut error, 2);
    assert!(matches!(verdict, FinalVerdict::Accept(_)), "{verdict:?}");
    assert_eq!(error[16..20], [10, 0, 0, 5]);
    assert_eq!(error[28 + 12..28 + 24], sent[12..24], "the quoted packet is the client's own");
    assert_eq!(error[28 + 26..28 + 28], sent[26..28], "and so is its checksum");
    assert_eq!(checksum::sum(&error[28..48]), 0xffff);
    assert_eq!(checksum::sum(&error[20..]), 0xffff);
}

/// An echo request, or its answer.
fn echo(kind: u8, (source, destination): (&str, &str), id: u16) -> Vec<u8> {
    let mut header = vec![kind, 0, 0, 0, 0, 0, 0, 0];
    header[4..6].copy_from_slice(&id.to_be_bytes());
    let sum = !checksum::sum(&header);
    header[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut echo = frame(source, destination, Message::Other { protocol: 1, header });
    echo.truncate(28);
    echo[2..4].copy_from_slice(&28_u16.to_be_bytes());
    echo
}

/// A query whose identifier is another flow's after its translation gets the first free one before any rule sees it
/// (measured: `nf_nat_l4proto_unique_tuple` counts from 0 for destinations).
#[test]
fn a_query_whose_identifier_is_taken_gets_the_first_one_that_is_free() {
    let rules = ruleset("-A POSTROUTING -s 10.0.0.0/8 -j SNAT --to-source 203.0.113.128", "");
    let program = Program::new([rules], Config { path: Some(Path::Forward), ..config() });
    let mut evaluator = Evaluator::new(&program);
    let (server, drawn) = ("198.51.100.7", "203.0.113.128");
    let mut number = 0;
    let mut id_of = |mut bytes: Vec<u8>| {
        number += 1;
        let (verdict, _) = pass(&mut evaluator, &mut bytes, number);
        assert!(matches!(verdict, FinalVerdict::Accept(_)), "{verdict:?}");
        u16::from_be_bytes([bytes[24], bytes[25]])
    };
    assert_eq!(id_of(echo(8, ("10.0.0.1", server), 0)), 0);
    assert_eq!(id_of(echo(8, ("10.0.0.1", server), 7)), 7);
    assert_eq!(id_of(echo(8, (drawn, server), 7)), 1);
    assert_eq!(id_of(echo(0, (server, drawn), 1)), 7, "and its answer the one that it had");
}

/// What the kernel drops if the flow is translated: redirects, and errors that quote less than eight bytes of the
/// upper layer. Whether it is translated, and to what, is known of one flow, and of the others less and less.
#[test]
fn what_passes_only_untranslated_is_dropped_or_unknown() {
    let drawn = ruleset(
        "-A POSTROUTING -o wan -d 198.51.100.7 -j SNAT --to-source 192.0.2.1\n\
         -A POSTROUTING -o wan -d 198.51.100.8 -p udp -j SNAT --to-source 192.0.2.1:1000-60000 --random",
        "",
    );
    let program = Program::new([drawn], Config { path: Some(Path::Forward), ..config() });
    let mut evaluator = Evaluator::new(&program);
    let mut meets = |kind, server, quoted: usize| {
        let mut sent = udp(("10.0.0.5", 4000, server, 53));
        pass(&mut evaluator, &mut sent, 1);
        let seen = udp(("192.0.2.1", 4000, server, 53));
        pass(&mut evaluator, &mut error(kind, &seen[..20 + quoted]), 2).0
    };
    let (translated, drawn) = ("198.51.100.7", "198.51.100.8");
    for (kind, quoted) in [(3, 4), (3, 7), (11, 4), (5, 8)] {
        let verdict = meets(kind, translated, quoted);
        assert_eq!(verdict, FinalVerdict::Drop(DropReason::Conntrack), "{kind} {quoted}");
        assert_eq!(meets(kind, drawn, quoted), FinalVerdict::Unknown, "{kind} {quoted}");
    }
    for server in [translated, drawn] {
        assert!(matches!(meets(3, server, 8), FinalVerdict::Accept(_)), "{server}");
    }
}

#[test]
fn an_answer_to_a_drawn_port_is_unknown_never_new() {
    let rules = ruleset(
        "-A POSTROUTING -o wan -p udp -j SNAT --to-source 192.0.2.1:1000-60000 --random",
        "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n-A FORWARD -i wan -j DROP",
    );
    let config = Config { path: Some(Path::Forward), ..config() };
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    pass(&mut evaluator, &mut udp(("10.0.0.5", 4000, "198.51.100.7", 53)), 1);
    let mut answer = udp(("198.51.100.7", 53, "192.0.2.1", 7777));
    assert_eq!(pass(&mut evaluator, &mut answer, 2).0, FinalVerdict::Unknown);
    let mut other = udp(("198.51.100.8", 53, "192.0.2.1", 7777));
    assert!(
        matches!(pass(&mut evaluator, &mut other, 3).0, FinalVerdict::Drop(_)),
        "no answer to it"
    );
}

#[test]
fn the_second_of_two_that_would_look_alike_draws_its_port() {
    let rules = ruleset("-A POSTROUTING -o wan -j SNAT --to-source 192.0.2.1", "");
    let config = config();
    let program = Program::new([Arc::clone(&rules)], config.clone());
    let mut evaluator = Evaluator::new(&program);
    let mut first = udp(("10.0.0.5", 4000, "198.51.100.7", 53));
    pass(&mut evaluator, &mut first, 1);
    assert_is(&first, ("192.0.2.1", 4000, "198.51.100.7", 53));
    let second = udp(("10.0.0.6", 4000, "198.51.100.7", 53));
    let mut passed = second.clone();
    pass(&mut evaluator, &mut passed, 2);
    assert_eq!(passed[12..16], second[12..16], "nothing is written that is not known");
}

proptest! {
    /// Neither end sees the translation of the other's packets, whatever the ports.
    #[test]
    fn there_and_back_is_the_identity(from in any::<u16>(), to in any::<u16>(), host in 1u8..=254) {
        let rules = ruleset(
            "-A PREROUTING -d 203.0.113.0/24 -j NETMAP --to 198.51.100.0/24\n\
             -A POSTROUTING -o wan -j MASQUERADE",
            "",
        );
        let config = config();
        let program = Program::new([Arc::clone(&rules)], config.clone());
        let mut evaluator = Evaluator::new(&program);
        let server = format!("203.0.113.{host}");
        let sent = frame("10.0.0.5", &server, Message::udp(from, to));
        let mut bytes = sent.clone();
        pass(&mut evaluator, &mut bytes, 1);
        assert!(upper_holds(&bytes) && checksum::sum(&bytes[..20]) == 0xffff);
        let seen = format!("198.51.100.{host}");
        let mut answer = frame(&seen, "192.0.2.1", Message::udp(to, from));
        pass(&mut evaluator, &mut answer, 2);
        assert!(upper_holds(&answer) && checksum::sum(&answer[..20]) == 0xffff);
        assert_eq!(answer[12..16], sent[16..20]);
        assert_eq!(answer[16..20], sent[12..16]);
        assert_eq!((&answer[20..22], &answer[22..24]), (&sent[22..24], &sent[20..22]));
    }
}

/// A flow whose destination is not known may have come to the host, and so be there, although FORWARD drops all that it sees.
#[test]
fn a_flow_that_may_end_at_the_host_may_be_there_whatever_forward_says() {
    let rules = ruleset(
        ":PREROUTING ACCEPT\n-A PREROUTING -p udp\n\
         -A PREROUTING -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.0.0.1",
        ":INPUT ACCEPT\n:FORWARD DROP",
    );
    let ct = config().ct;
    let program = Program::new([rules], Config { ct, ..routed() });
    let mut evaluator = Evaluator::new(&program);
    let mut counts = |number: u64| {
        let mut bytes = udp(("10.0.0.5", 5, "198.51.100.7", 6));
        let arrival =
            Arrival { origin: Origin::Wire, interface: Some("eth0"), ..arrival(number, &bytes) };
        let mut hits = Hits::default();
        let outcome = evaluator.handle(&mut bytes, &arrival, &mut hits).outcome;
        assert_eq!(outcome.end.verdict, FinalVerdict::Unknown);
        let first = RuleRef { table: 0, chain: 0, rule: 0 };
        (hits.certain.contains(&first), hits.maybe.contains(&first))
    };
    assert_eq!(counts(1), (true, false));
    assert_eq!(counts(2), (false, true));
}

/// Measured: 6.18 takes the first free port that a DNAT may give, 6.1.192 any.
#[test]
fn which_port_of_several_a_destination_gets_depends_on_the_kernel() {
    let nat = "-A PREROUTING -p udp -d 192.0.2.1 -j DNAT --to-destination 10.0.0.9:8000-8001";
    let rules = ruleset(nat, ":FORWARD DROP\n-A FORWARD -p udp --dport 8000 -j ACCEPT");
    for (kernel, word) in [(None, "accept"), (Some("6.8"), "accept"), (Some("6.1.192"), "unknown")]
    {
        let mut config = config();
        config.host.kernel = kernel.and_then(Kernel::parse);
        let program = Program::new([Arc::clone(&rules)], config);
        let mut evaluator = Evaluator::new(&program);
        let mut bytes = udp(("198.51.100.7", 4000, "192.0.2.1", 53));
        let (verdict, _) = pass(&mut evaluator, &mut bytes, 1);
        assert_eq!(verdict.word(), word, "{kernel:?}");
    }
}
