//! Flows whose mapping another flow has, or may have, and flows that begin with a packet of which not all was captured. Each was
//! measured: rulesets 71 (inet) and 319 (ip6) of `oracle nft --packets 300000 --seed 4`, 1008 of `--family ip6 --packets 2080000`.

use dataplane::{Arrival, Config, Evaluator, FinalVerdict, Path, Program};
use packet::Link;
use packet::craft::Message;

use crate::Nobody;
use crate::nat::{config, error, frame, pass, ruleset, udp};

/// What becomes of a packet of which no more than this was captured.
fn pass_cut(evaluator: &mut Evaluator<'_>, bytes: &[u8], captured: usize) -> FinalVerdict {
    let arrival = Arrival { time: Some(1), ..Arrival::new(1, Link::Raw, bytes.len()) };
    let mut bytes = bytes[..captured].to_vec();
    evaluator.handle(&mut bytes, &arrival, &mut Nobody).outcome.end.verdict
}

fn forwarded() -> Config {
    Config { path: Some(Path::Forward), ..config() }
}

/// ESP between two hosts.
fn esp(source: &str, destination: &str, spi: u8) -> Vec<u8> {
    let header = vec![0, 0, 0, spi, 0, 0, 0, 1];
    frame(source, destination, Message::Other { protocol: 50, header })
}

/// Where all ports of a range are taken a datagram gets the last one, and another source port, which is drawn: what answers it
/// is no packet of a new flow.
#[test]
fn a_destination_port_that_is_taken_moves_the_source() {
    let nat = "-A PREROUTING -p udp -d 192.0.2.1 -j DNAT --to-destination 10.0.0.9:1-2";
    let rules = ruleset(nat, ":FORWARD DROP\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT");
    let program = Program::new([rules], forwarded());
    let mut evaluator = Evaluator::new(&program);
    let client = "198.51.100.7";
    let mut sends = |to| {
        let mut bytes = udp((client, 4000, "192.0.2.1", to));
        assert!(matches!(pass(&mut evaluator, &mut bytes, 1).0, FinalVerdict::Accept(_)), "{to}");
        u16::from_be_bytes([bytes[22], bytes[23]])
    };
    assert_eq!([53, 54, 55].map(&mut sends), [1, 2, 2]);
    let mut answers =
        |port, to| pass(&mut evaluator, &mut udp(("10.0.0.9", port, client, to)), 2).0;
    assert_eq!(answers(2, 777), FinalVerdict::Unknown);
    assert!(matches!(answers(1, 777), FinalVerdict::Accept(_)), "nobody drew a port for that one");
}

/// Of TCP the kernel may evict a flow that is closing: which destination it is, and so the source, is not known.
#[test]
fn a_destination_port_that_may_be_taken_may_move_the_source() {
    let nat = "-A PREROUTING -p tcp -d 192.0.2.1 -j DNAT --to-destination 10.0.0.9:1-2";
    let rules = ruleset(nat, ":FORWARD DROP\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT");
    let program = Program::new([rules], forwarded());
    let mut evaluator = Evaluator::new(&program);
    let client = "198.51.100.7";
    let syn = |to| frame(client, "192.0.2.1", Message::tcp(4000, to, packet::tcp::Flags::SYN));
    for to in [53, 54, 55] {
        pass(&mut evaluator, &mut syn(to), 1);
    }
    for (port, to) in [(1, 777), (2, 777)] {
        let flags = packet::tcp::Flags(0x12);
        let mut answer = frame("10.0.0.9", client, Message::tcp(port, to, flags));
        assert_eq!(pass(&mut evaluator, &mut answer, 2).0, FinalVerdict::Unknown, "{port}");
    }
}

/// A flow without ports has one mapping alone: where another flow has that, or may have it, the kernel drops its packet.
#[test]
fn a_flow_without_ports_that_may_be_there_may_clash() {
    let nat = "-A POSTROUTING -s 198.51.100.1 -j SNAT --to-source 203.0.113.1\n\
               -A POSTROUTING -p esp -m esp --espspi 1:9 -j SNAT --to-source 203.0.113.2";
    let rules = ruleset(nat, ":FORWARD ACCEPT");
    let program = Program::new([rules], forwarded());
    let mut evaluator = Evaluator::new(&program);
    let [near, far, other] = ["198.51.100.1", "198.51.100.254", "198.51.100.9"];
    let passed = pass(&mut evaluator, &mut esp(near, far, 20), 1).0;
    assert!(matches!(passed, FinalVerdict::Accept(_)), "{passed:?}");
    for (to, clashes) in [(near, true), (other, false)] {
        // Whether the second rule translates it is not known.
        assert_eq!(pass_cut(&mut evaluator, &esp(far, to, 5), 22), FinalVerdict::Unknown);
        let verdict = pass(&mut evaluator, &mut esp(far, to, 30), 3).0;
        assert_eq!(verdict == FinalVerdict::Unknown, clashes, "{to} {verdict:?}");
    }
}

/// A packet of which not even the ports were captured may begin a flow: what is about that flow, or answers it, is neither new
/// nor invalid for certain, and what is of other hosts is.
#[test]
fn a_flow_may_begin_with_a_packet_whose_ports_were_not_captured() {
    let filter = ":FORWARD DROP\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT";
    for (nat, answered) in
        [("", "10.0.0.5"), ("-A POSTROUTING -j SNAT --to-source 192.0.2.1", "192.0.2.1")]
    {
        let rules = ruleset(nat, filter);
        let program = Program::new([rules], forwarded());
        let mut evaluator = Evaluator::new(&program);
        let sent = udp(("10.0.0.5", 4000, "198.51.100.7", 53));
        pass_cut(&mut evaluator, &sent, 20);
        let verdict =
            |evaluator: &mut Evaluator<'_>, mut bytes: Vec<u8>| pass(evaluator, &mut bytes, 2).0;
        let mut quoted = udp((answered, 4000, "198.51.100.7", 53));
        quoted[8] -= 1;
        assert_eq!(verdict(&mut evaluator, error(3, &quoted)), FinalVerdict::Unknown, "{nat}");
        let answer = udp(("198.51.100.7", 53, answered, 4000));
        assert_eq!(verdict(&mut evaluator, answer), FinalVerdict::Unknown, "{nat}");
        let again = udp(("10.0.0.5", 4000, "198.51.100.7", 53));
        assert_eq!(verdict(&mut evaluator, again), FinalVerdict::Unknown, "{nat}");
        let other = udp(("10.0.0.6", 4000, "198.51.100.8", 53));
        let other = verdict(&mut evaluator, other);
        assert!(matches!(other, FinalVerdict::Accept(_)), "{nat} {other:?}");
    }
}

/// A packet that may not be tracked may begin a flow.
#[test]
fn a_flow_may_begin_with_a_packet_that_may_not_be_tracked() {
    let text = "*raw\n-A PREROUTING -s 10.0.0.5 -m statistic --mode random --probability 0.5 -j CT --notrack\nCOMMIT\n\
                *filter\n:FORWARD DROP\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";
    let program = Program::new([crate::ways::ruleset(text)], forwarded());
    let mut evaluator = Evaluator::new(&program);
    let mut sends = |(from, to)| pass(&mut evaluator, &mut udp((from, 53, to, 53)), 1).0;
    assert_eq!(sends(("10.0.0.5", "198.51.100.7")), FinalVerdict::Unknown);
    assert_eq!(sends(("198.51.100.7", "10.0.0.5")), FinalVerdict::Unknown);
    assert!(matches!(sends(("198.51.100.8", "10.0.0.5")), FinalVerdict::Accept(_)));
}
