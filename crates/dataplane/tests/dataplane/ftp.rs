//! The FTP helper under NAT: payloads rewritten in the kernel's words, and numbers that move ever after. What the
//! kernel makes of whole conversations is kept in `lab`, in `fixtures/conversations`.

use std::net::IpAddr;
use std::sync::Arc;

use conntrack::{self, Mode};
use dataplane::{Arrival, Config, Evaluator, FinalVerdict, Observer, Path, Program};
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::{self, Flags};
use packet::{Checksums, L4, Link, Packet, Read, checksum};
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Entropy, eval};

const RULES: &str = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p 6 --dport 21 -j CT --helper ftp\n\
    COMMIT\n*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -s 10.0.0.0/8 -j SNAT --to-source 203.0.113.101\n\
    COMMIT\n";
const CLIENT: &str = "10.0.0.1";
const FRONT: &str = "203.0.113.101";
const SERVER: &str = "198.51.100.1";

/// The bytes of the last packet that left.
#[derive(Default)]
struct Left(Vec<u8>);

impl eval::Observer for Left {}
impl Observer for Left {
    fn leaves(&mut self, packet: &Packet<'_>) {
        let Read::Known(bytes) = packet.read_slice(0, packet.len()) else {
            panic!("unknown bytes")
        };
        self.0 = bytes.to_vec();
    }
}

/// A control connection through a firewall.
struct Control<'r> {
    evaluator: Evaluator<'r>,
    number: u64,
    /// The client's port.
    port: u16,
}

/// A segment that came out.
#[derive(Debug, PartialEq, Eq)]
struct Segment {
    sequence: u32,
    acknowledgement: u32,
    payload: String,
}

fn ruleset() -> Arc<Ruleset> {
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    Arc::new(load(RULES, &options).expect("rules").ruleset)
}

fn config() -> Config {
    let ct = conntrack::Config { mode: Mode::Kernel, ..conntrack::Config::default() };
    Config { path: Some(Path::Forward), ct, ..Config::default() }
}

fn segment(
    from_client: bool,
    port: u16,
    flags: Flags,
    sequence: u32,
    acknowledgement: u32,
    text: &str,
) -> Vec<u8> {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let (ends, ports) = match from_client {
        true => ((CLIENT, SERVER), (port, 21)),
        false => ((SERVER, FRONT), (21, port)),
    };
    let addresses = Addresses::new(address(ends.0), address(ends.1)).expect("one family");
    let mut craft = Craft::new(addresses, Message::tcp(ports.0, ports.1, flags));
    craft.ethernet = None;
    craft.payload_len = text.len();
    let mut bytes = craft.frame();
    let payload = bytes.len() - text.len();
    bytes[payload..].copy_from_slice(text.as_bytes());
    bytes[24..28].copy_from_slice(&sequence.to_be_bytes());
    bytes[28..32].copy_from_slice(&acknowledgement.to_be_bytes());
    bytes[36..38].copy_from_slice(&[0; 2]);
    let sum = !upper_sum(&bytes);
    bytes[36..38].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn upper_sum(bytes: &[u8]) -> u16 {
    let len = (bytes.len() - 20) as u16;
    let pseudo = checksum::add(checksum::sum(&bytes[12..20]), checksum::add(6, len));
    checksum::add(pseudo, checksum::sum(&bytes[20..]))
}

impl Control<'_> {
    /// The bytes that leave for a segment; none where it is dropped.
    fn say(
        &mut self,
        from_client: bool,
        flags: Flags,
        sequence: u32,
        acknowledgement: u32,
        text: &str,
    ) -> Option<Segment> {
        let mut bytes = segment(from_client, self.port, flags, sequence, acknowledgement, text);
        self.number += 1;
        let arrival = Arrival {
            time: Some(self.number * 1_000_000),
            ..Arrival::new(self.number, Link::Raw, bytes.len())
        };
        let mut left = Left::default();
        let end = self.evaluator.handle(&mut bytes, &arrival, &mut left).outcome.end;
        match end.verdict {
            FinalVerdict::Accept(_) => Some(seen(left.0)),
            FinalVerdict::Drop(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// A handshake, and a line of each side, so that it is known where lines begin.
    fn open(&mut self) {
        self.say(true, Flags::SYN, 100, 0, "");
        self.say(false, Flags::SYN.union(Flags::ACK), 500, 101, "");
        self.say(true, Flags::ACK, 101, 501, "NOOP\r\n");
        self.say(false, Flags::ACK, 501, 107, "200\r\n");
    }
}

/// Reads it with both checksums verified.
fn seen(mut bytes: Vec<u8>) -> Segment {
    assert_eq!((checksum::sum(&bytes[..20]), upper_sum(&bytes)), (0xffff, 0xffff), "checksums");
    let len = bytes.len();
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Verify);
    assert_eq!(packet.headers().end, len, "the length field");
    let L4::Upper(upper) = packet.headers().l4 else { panic!("no segment") };
    let Read::Known(header) = packet.upper::<20>(&upper, 0) else { panic!("no header") };
    let header = tcp::Header::new_checked(&header).expect("a header");
    let payload = packet.read_slice(40, len - 40).known().expect("a payload");
    Segment {
        sequence: header.sequence(),
        acknowledgement: header.acknowledgement(),
        payload: String::from_utf8_lossy(payload).into_owned(),
    }
}

fn with_control(then: impl FnOnce(&mut Control<'_>)) {
    with_control_under(config(), then);
}

fn with_control_under(config: Config, then: impl FnOnce(&mut Control<'_>)) {
    let program = Program::new([ruleset()], config);
    let mut control = Control { evaluator: Evaluator::new(&program), number: 0, port: 40_000 };
    control.open();
    then(&mut control);
}

fn says(sequence: u32, acknowledgement: u32, payload: &str) -> Option<Segment> {
    Some(Segment { sequence, acknowledgement, payload: payload.to_owned() })
}

#[test]
fn a_line_is_rewritten_and_the_numbers_after_it_move() {
    with_control(|control| {
        let told = control.say(true, Flags::ACK, 107, 506, "PORT 10,0,0,1,4,1\r\n");
        assert_eq!(told, says(107, 506, "PORT 203,0,113,101,4,1\r\n"));
        let answer = control.say(false, Flags::ACK, 506, 131, "200 ok\r\n");
        assert_eq!(answer, says(506, 126, "200 ok\r\n"));
        assert_eq!(control.say(true, Flags::ACK, 126, 514, ""), says(131, 514, ""));
    });
}

#[test]
fn a_second_line_moves_what_comes_after_it_further() {
    with_control(|control| {
        control.say(true, Flags::ACK, 107, 506, "PORT 10,0,0,1,4,1\r\n");
        let again = control.say(true, Flags::ACK, 107, 506, "PORT 10,0,0,1,4,1\r\n");
        assert_eq!(again, says(107, 506, "PORT 203,0,113,101,4,1\r\n"), "sent again");
        let second = control.say(true, Flags::ACK, 126, 506, "EPRT |1|10.0.0.1|1026|\r\n");
        assert_eq!(second, says(131, 506, "EPRT |1|203.0.113.101|1026|\r\n"));
        assert_eq!(control.say(true, Flags::ACK, 150, 506, ""), says(160, 506, ""));
        let both = control.say(false, Flags::ACK, 506, 160, "");
        assert_eq!(both, says(506, 150, ""));
    });
}

#[test]
fn numbers_of_a_padded_line_move_back() {
    with_control(|control| {
        let told = control.say(true, Flags::ACK, 107, 506, "PORT 010,000,000,0001,0004,00001\r\n");
        assert_eq!(told, says(107, 506, "PORT 203,0,113,101,4,1\r\n"));
        assert_eq!(control.say(true, Flags::ACK, 141, 506, ""), says(131, 506, ""));
    });
}

#[test]
fn what_acknowledges_nothing_keeps_its_number() {
    with_control(|control| {
        control.say(true, Flags::ACK, 107, 506, "PORT 10,0,0,1,4,1\r\n");
        assert_eq!(control.say(false, Flags::RST, 506, 131, ""), says(506, 131, ""));
    });
}

#[test]
fn a_port_that_another_connection_announced_is_drawn() {
    with_control_under(Config { entropy: Entropy::Seed(1), ..config() }, |control| {
        control.say(true, Flags::ACK, 107, 506, "PORT 10,0,0,1,4,1\r\n");
        control.port = 40_001;
        control.open();
        let told = control.say(true, Flags::ACK, 107, 506, "PORT 10,0,0,1,4,1\r\n");
        let Segment { payload, .. } = told.expect("it goes on");
        let port = payload.strip_prefix("PORT 203,0,113,101,").expect("the address in front");
        let numbers: Vec<u16> = port.trim_end().split(',').map(|n| n.parse().unwrap()).collect();
        let [high, low] = numbers[..] else { panic!("{payload}") };
        assert!(high * 256 + low > 1025, "{payload}");
    });
}

#[test]
fn port_0_is_refused() {
    with_control(|control| {
        assert_eq!(control.say(true, Flags::ACK, 107, 506, "PORT 10,0,0,1,0,0\r\n"), None);
    });
}
