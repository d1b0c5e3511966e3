//! The host's own packets as a recording shows them: as they left, or as an error quotes a packet that never did.

use std::sync::Arc;

use dataplane::{Arrival, Config, Evaluator, Observer, Origin, Path, Program};
use host::Links;
use packet::craft::{Craft, Message};
use packet::tcp::Flags;
use rules::Transit;
use rules::eval::{self, RuleRef};

use crate::ways::{Hits, arrival, craft, error_quoting, routed, ruleset};

const STATES: &str = "-A OUTPUT -m conntrack --ctstate NEW\n-A OUTPUT -m conntrack --ctstate ESTABLISHED\n\
    -A OUTPUT -m conntrack --ctstate RELATED\n-A OUTPUT -m conntrack --ctstate INVALID\n";

const SERVER: &str = "203.0.113.2";
const CLIENT: &str = "203.0.113.7";

/// Rules with this one in nat PREROUTING, these in INPUT, and [`STATES`] and more in OUTPUT.
fn rules(nat: &str, input: &str, output: &str) -> String {
    format!(
        "*nat\n:PREROUTING ACCEPT [0:0]\n{nat}COMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n\
         :OUTPUT ACCEPT [0:0]\n{input}{STATES}{output}COMMIT\n"
    )
}

fn config() -> Config {
    let mut config = routed();
    config.ct.mode = conntrack::Mode::Kernel;
    config
}

/// Which of the rules of OUTPUT these frames certainly hit, and which they may have, by number from 1 on; each with where
/// it comes from and whether it quotes a packet that no frame shows.
fn output_hits(text: &str, frames: &[(Origin, Vec<u8>, bool)]) -> [Vec<u32>; 2] {
    let frames = frames.iter().map(|(origin, bytes, quotes_unseen)| {
        let (origin, quotes_unseen) = (*origin, *quotes_unseen);
        let interface = Some(if quotes_unseen { "lo" } else { "wan0" });
        let came = Arrival { origin, quotes_unseen, interface, ..arrival(0, bytes) };
        (came, bytes.clone())
    });
    hits_in("OUTPUT", text, frames.collect())
}

/// The rules of a chain that frames as they came hit, a millisecond apart.
fn hits_in(chain: &str, text: &str, frames: Vec<(Arrival<'static>, Vec<u8>)>) -> [Vec<u32>; 2] {
    hits_under(config(), chain, text, frames)
}

/// Returns the same hits on another host.
fn hits_under(
    config: Config,
    chain: &str,
    text: &str,
    frames: Vec<(Arrival<'static>, Vec<u8>)>,
) -> [Vec<u32>; 2] {
    let rules = ruleset(text);
    let program = Program::new([Arc::clone(&rules)], config);
    let mut evaluator = Evaluator::new(&program);
    let mut hits = Hits::default();
    for (number, (came, mut bytes)) in (1..).zip(frames) {
        let came = Arrival { number, time: Some(number * 1_000_000), ..came };
        evaluator.handle(&mut bytes, &came, &mut hits);
    }
    [hits.certain, hits.maybe].map(|hits| {
        let name = |at: &rules::eval::RuleRef| {
            &*rules.tables[at.table as usize].chains[at.chain as usize].name
        };
        hits.iter().filter(|at| name(at) == chain).map(|at| at.rule + 1).collect()
    })
}

const DNAT: &str = "-A PREROUTING -d 203.0.113.2 -p tcp --dport 25 -j DNAT --to 10.0.0.99\n";

fn syn(source: &str, destination: &str, port: u16) -> Vec<u8> {
    craft(source, destination, Message::tcp(5000, port, Flags::SYN)).frame()
}

/// Nobody answered for 10.0.0.99: the error was recorded as it left, with its quotation translated back.
#[test]
fn an_error_about_a_translated_packet_that_was_let_go_carries_its_connection() {
    let syn = syn(CLIENT, SERVER, 25);
    let error = error_quoting(&syn, SERVER, CLIENT);
    let text = rules(DNAT, "", "-A OUTPUT -s 203.0.113.2\n");
    let frames = [(Origin::Wire, syn, false), (Origin::Host, error, false)];
    assert_eq!(output_hits(&text, &frames), [vec![3, 5], vec![]]);
}

/// A packet that waited for a neighbour in vain passed OUTPUT, and is seen in the error alone.
#[test]
fn an_error_by_lo_counts_the_packet_that_it_quotes() {
    let error = error_quoting(&syn(SERVER, "203.0.113.99", 80), SERVER, SERVER);
    let text = rules(DNAT, "", "-A OUTPUT -d 203.0.113.99 -o wan0\n");
    assert_eq!(output_hits(&text, &[(Origin::Host, error.clone(), true)]), [vec![1, 5, 3], vec![]]);
    // One that a rule of OUTPUT rejected.
    let text = rules(DNAT, "", "-A OUTPUT -p tcp -d 203.0.113.99 -j REJECT\n");
    assert_eq!(output_hits(&text, &[(Origin::Host, error, true)]), [vec![1, 5, 3], vec![]]);
    // Others' packets are not the host's to send.
    let error = error_quoting(&syn(CLIENT, "203.0.113.99", 80), SERVER, SERVER);
    assert_eq!(output_hits(&text, &[(Origin::Host, error, true)]), [vec![4], vec![]]);
}

/// The client's acknowledgement was invalid, and so came to the host, where no port is open: the reset is no part of the
/// connection between others, which has the same ends.
#[test]
fn a_reset_with_the_ends_of_a_connection_between_others_is_not_translated() {
    let reset = craft(SERVER, CLIENT, Message::tcp(25, 5000, Flags::RST)).frame();
    let text = rules(DNAT, "", "-A OUTPUT -s 203.0.113.2 -p tcp --sport 25\n");
    let frames = [(Origin::Wire, syn(CLIENT, SERVER, 25), false), (Origin::Host, reset, false)];
    assert_eq!(output_hits(&text, &frames), [vec![4, 5], vec![]]);
}

/// Whether the limit let the SYN pass is not known; that it was answered tells.
#[test]
fn an_answer_of_a_redirected_connection_in_doubt_is_not_surely_invalid() {
    let nat = "-A PREROUTING -p tcp --dport 2223 -j REDIRECT --to-ports 22\n";
    let input =
        "-A INPUT -p tcp -m limit --limit 200/sec --limit-burst 1 -j ACCEPT\n-A INPUT -j DROP\n";
    let answer =
        craft(SERVER, CLIENT, Message::tcp(2223, 5000, Flags::SYN.union(Flags::ACK))).frame();
    let frames = [
        (Origin::Wire, syn("203.0.113.8", SERVER, 2223), false),
        (Origin::Wire, syn(CLIENT, SERVER, 2223), false),
        (Origin::Host, answer, false),
    ];
    let [certain, maybe] = output_hits(&rules(nat, input, ""), &frames);
    assert!(!certain.contains(&4), "{certain:?}");
    assert!(certain.contains(&2) || maybe.contains(&2), "{certain:?} {maybe:?}");
}

/// The kernel sees an own packet in OUTPUT as it was made; recorded is the source that rules gave it. One that the first
/// route gives it anyway, where a program asks for none, is taken for its own.
#[test]
fn the_source_of_an_own_packet_is_hidden_where_rules_may_have_given_it() {
    let text = "*nat\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
        -A POSTROUTING -o wan0 -p udp -j SNAT --to 10.0.0.1-10.0.0.5\nCOMMIT\n*filter\n:OUTPUT ACCEPT [0:0]\n\
        -A OUTPUT -s 10.0.0.1\n-A OUTPUT -s 203.0.113.2\n-A OUTPUT -p udp --sport 5000 --dport 53\n-A OUTPUT -o wan0\nCOMMIT\n";
    let own = |source: &str| {
        let sent = craft(source, CLIENT, Message::udp(5000, 53)).frame();
        output_hits(text, &[(Origin::Host, sent.clone(), false), (Origin::Host, sent, false)])
    };
    assert_eq!(own("10.0.0.1"), [vec![3, 4, 3, 4], vec![1, 2, 1, 2]]);
    assert_eq!(own("203.0.113.2"), [vec![2, 3, 4, 2, 3, 4], vec![]], "no rule gives that");
}

/// A copy that TEE sends has the ends of a connection that it is no part of, and may be for the host itself.
#[test]
fn a_copy_walks_output_untracked() {
    let text = rules(DNAT, "", "-A OUTPUT -m conntrack --ctstate UNTRACKED -o wan0\n");
    let answer =
        craft(SERVER, CLIENT, Message::tcp(25, 5000, Flags::SYN.union(Flags::ACK))).frame();
    let copy = |bytes: &[u8]| Arrival {
        origin: Origin::Host,
        path: Some(Path::Output),
        ctstate: Some(conntrack::CtState::Untracked),
        interface: Some("wan0"),
        ..arrival(0, bytes)
    };
    let own = |bytes: &[u8]| Arrival {
        origin: Origin::Host,
        interface: Some("wan0"),
        ..arrival(0, bytes)
    };
    let to_host = syn(CLIENT, SERVER, 80);
    let came = Arrival { origin: Origin::Wire, interface: Some("wan0"), ..arrival(0, &to_host) };
    let frames = vec![
        (copy(&to_host), to_host.clone()),
        (came, to_host.clone()),
        (copy(&answer), answer.clone()),
        (own(&answer), answer),
    ];
    // The answer by port 25 is of no connection: what came went to port 80.
    assert_eq!(hits_in("OUTPUT", &text, frames), [vec![5, 5, 4], vec![]]);
}

/// A program gets the segments of a superframe one by one, and that many packets go on.
#[test]
fn a_superframe_that_a_program_had_goes_on_in_segments() {
    let text = "*mangle\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -p tcp\nCOMMIT\n*filter\n:FORWARD ACCEPT [0:0]\n\
        -A FORWARD -p tcp --dport 80 -j NFQUEUE --queue-num 1\nCOMMIT\n";
    let hits = |port, payload_len| {
        let message = Message::tcp(5000, port, Flags::ACK);
        let bytes = Craft { payload_len, ..craft(CLIENT, "10.0.0.99", message) }.frame();
        let came = Arrival { origin: Origin::Wire, interface: Some("wan0"), ..arrival(0, &bytes) };
        hits_in("POSTROUTING", text, vec![(came, bytes)]).map(|hits| hits.len())
    };
    assert_eq!(hits(80, 1000), [0, 1], "as the program says");
    assert_eq!(hits(80, 2 * 1448), [0, 6], "in segments of 536 bytes, if it must be");
    assert_eq!(hits(81, 2 * 1448), [1, 0], "no program had it");
}

/// Counts what a walk comes to.
#[derive(Default)]
struct Walks {
    maybe: usize,
    ends: usize,
}

impl eval::Observer for Walks {
    fn hit(&mut self, _: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        self.maybe += usize::from(!certain);
    }

    fn off_end(&mut self, _: u32, _: u32, _: bool) {
        self.ends += 1;
    }
}

impl Observer for Walks {}

/// How often a rule of POSTROUTING, behind a queue, may have been hit by what arrived on `eth0`, and how often a packet fell
/// off a chain.
fn segments(mtu: u32, test: &str, message: Message, payload_len: usize) -> (usize, usize) {
    let text = format!(
        "*mangle\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING {test}\nCOMMIT\n*filter\n:FORWARD ACCEPT [0:0]\n\
         -A FORWARD -j NFQUEUE --queue-num 1\nCOMMIT\n"
    );
    let mut config = config();
    let link = format!(
        "2: eth0: <BROADCAST,UP> mtu {mtu}\\    link/ether 02:00:00:00:00:02\n\
        3: wan0: <BROADCAST,UP> mtu 65536\\    link/ether 02:00:00:00:00:03\n"
    );
    config.host.links = Links::parse(&link).expect("links");
    let program = Program::new([ruleset(&text)], config);
    let mut bytes = Craft { payload_len, ..craft("10.0.0.9", CLIENT, message) }.frame();
    let came = Arrival { origin: Origin::Wire, interface: Some("eth0"), ..arrival(1, &bytes) };
    let mut walks = Walks::default();
    Evaluator::new(&program).handle(&mut bytes, &came, &mut walks);
    (walks.maybe, walks.ends)
}

/// One more walk stands for all segments, where the rules say the same of each.
#[test]
fn only_what_is_longer_than_a_packet_of_its_link_goes_on_in_segments() {
    let tcp = || Message::tcp(5000, 80, Flags::ACK);
    let limit = "-m limit --limit 1/sec --limit-burst 1";
    assert_eq!(segments(1500, "-p tcp", tcp(), 60_000), (1 + 2 * 112, 2));
    // A limit is asked by each.
    assert_eq!(segments(1500, limit, tcp(), 60_000).1, 113);
    assert_eq!(segments(9000, "-p tcp", tcp(), 8900), (1, 1), "a long frame of a long link");
    assert_eq!(segments(9000, "-p tcp", tcp(), 9100), (1 + 2 * 17, 2));
    let ping = Message::Icmp { kind: 8, code: 0, id: 1, sequence: 1 };
    assert_eq!(segments(1500, "-p icmp", ping, 2000), (1, 1), "nothing puts those together");
    assert_eq!(segments(1500, "-p udp", Message::udp(5, 6), 2000), (1 + 2 * 63, 2), "short ones");
}

/// The bridge may have passed it on from a port that was not recorded, without any rule.
#[test]
fn what_left_by_a_bridge_port_met_postrouting_only_if_bridges_hand_packets_over() {
    let text = "*mangle\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -o wan0\nCOMMIT\n";
    let hits = |call: Option<u8>, port| {
        let mut config = config();
        let settings = call.map(|call| format!("net.bridge.bridge-nf-call-iptables = {call}\n"));
        config.host.sysctl =
            settings.map(|settings| host::Sysctl::parse(&settings).expect("settings"));
        let bytes = craft("198.51.100.9", CLIENT, Message::udp(5, 6)).frame();
        let left = Arrival {
            origin: Origin::Host,
            interface: Some("wan0"),
            unrecorded: true,
            bridge: dataplane::Bridge { port, ..dataplane::Bridge::default() },
            ..arrival(0, &bytes)
        };
        hits_under(config, "POSTROUTING", text, vec![(left, bytes)]).map(|hits| hits.len())
    };
    assert_eq!(hits(Some(0), Some("pa")), [0, 1]);
    assert_eq!(hits(Some(1), Some("pa")), [1, 0]);
    assert_eq!(hits(None, Some("pa")), [1, 0], "as bridges do where nothing is said");
    assert_eq!(hits(Some(0), None), [1, 0], "no port of a bridge");
}
