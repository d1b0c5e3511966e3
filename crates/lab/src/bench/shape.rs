//! [`Shape`]: rules, packets of 60 bytes, and the same question as a pcap filter.
//!
//! Contract: the same bytes in every run. Every packet is IPv4, TCP or UDP, 60 bytes with its Ethernet
//! header.

use std::fmt::Write as _;
use std::io::{self, Write};

use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use pktio::pcap_file::{ClassicWriter, Precision};
use pktio::{Frame, FrameMeta, LinkType, Timestamp};

/// Length of every packet with its Ethernet header.
const FRAME: usize = 60;
/// Rules of [`Shape::Mean20`]: a packet matches any of them, so it walks 20 in the mean.
const MEAN_20: u32 = 39;
/// Time of the first packet: 2026-11-21T10:00:00Z, and from one packet to the next.
const START: i64 = 1_795_255_200_000_000_000;
const APART: i64 = 1000;

/// Rules and packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// 39 rules; each packet matches one of them, all equally often: 20 are walked in the mean.
    Mean20,
    /// 100 rules, none of which matches: all are walked.
    All100,
    /// Connections, opened one after the other and then met at random; rules that ask for their state.
    FullTable { flows: u32 },
    /// A SYN from each of this number of sources, to rules that ask for the state.
    SynFlood,
}

impl Shape {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mean20 => "mean-20",
            Self::All100 => "all-100-of-100",
            Self::FullTable { .. } => "full-table",
            Self::SynFlood => "syn-flood",
        }
    }

    fn rule_count(self) -> u32 {
        match self {
            Self::Mean20 => MEAN_20,
            Self::All100 => 100,
            Self::FullTable { .. } | Self::SynFlood => 0,
        }
    }

    /// The rules, as iptables-save prints them.
    pub(super) fn rules(self) -> String {
        let mut rules = "*filter\n:FORWARD DROP [0:0]\n".to_owned();
        for rule in (0..self.rule_count()).map(Rule::number) {
            // Writing to a String cannot fail.
            let _ = writeln!(rules, "-A FORWARD {} -j ACCEPT", rule.iptables());
        }
        if self.rule_count() == 0 {
            rules += "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
                -A FORWARD -p tcp -m conntrack --ctstate NEW -j ACCEPT\n";
        }
        rules + "COMMIT\n"
    }

    /// What the rules accept, in the language of pcap filters; `None` where it cannot say so.
    pub(super) fn expression(self) -> Option<String> {
        let rules: Vec<String> =
            (0..self.rule_count()).map(|rule| Rule::number(rule).pcap()).collect();
        (!rules.is_empty()).then(|| format!("ip and ({})", rules.join(" or ")))
    }

    /// Writes a capture of this number of packets.
    pub(super) fn capture(self, packets: u32, to: impl Write) -> io::Result<()> {
        let mut writer = ClassicWriter::new(to, LinkType::ETHERNET, Precision::Nanos)?;
        for index in 0..packets {
            let mut bytes = self.packet(index).frame();
            bytes.resize(FRAME, 0);
            let time = Timestamp::from_nanos(START + i64::from(index) * APART);
            let wire_length = bytes.len() as u32;
            let meta = FrameMeta { timestamp: Some(time), wire_length, ..FrameMeta::default() };
            writer.write(Frame { bytes: &bytes, meta: &meta })?;
        }
        writer.finish().map(|_| ())
    }

    fn packet(self, index: u32) -> Craft {
        // Knuth's multiplicative hash: in no order that a cache or a branch could learn.
        let random = index.wrapping_mul(2_654_435_761);
        match self {
            Self::Mean20 => Rule::number((random >> 8) % MEAN_20).packet(index),
            Self::All100 => Rule::number(100 + (random >> 8) % 100).packet(index),
            Self::FullTable { flows } => flow(index, random, flows),
            Self::SynFlood => {
                let source = random.to_be_bytes();
                padded(
                    source,
                    SERVER,
                    Message::tcp(1024 + (index % 60_000) as u16, 443, Flags::SYN),
                )
            }
        }
    }
}

const SERVER: [u8; 4] = [192, 0, 2, 1];

/// A packet of the many connections: the first three of each open it.
fn flow(index: u32, random: u32, flows: u32) -> Craft {
    let opening = index < 3 * flows;
    let number = if opening { index / 3 } else { (random >> 4) % flows };
    let step = if opening { index % 3 } else { 1 + 2 * (random & 1) };
    let client = (0x0a00_0000 + number).to_be_bytes();
    let port = 1024 + (number % 60_000) as u16;
    let (is_reply, flags) = match (opening, step) {
        (true, 0) => (false, Flags::SYN),
        (true, 1) => (true, Flags::SYN.union(Flags::ACK)),
        (_, 1) => (true, Flags::ACK),
        _ => (false, Flags::ACK),
    };
    let [source_port, destination_port] = if is_reply { [443, port] } else { [port, 443] };
    let (source, destination) = if is_reply { (SERVER, client) } else { (client, SERVER) };
    let message = Message::Tcp {
        source_port,
        destination_port,
        flags,
        sequence: if flags.contains(Flags::SYN) { 1 } else { 2 },
        acknowledgement: if flags.contains(Flags::ACK) { 2 } else { 0 },
        window: 60_000,
    };
    // Segments without data: what is left of the 60 bytes is padding of the frame.
    Craft::new(Addresses::V4 { source, destination }, message)
}

/// A packet that fills the frame.
fn padded(source: [u8; 4], destination: [u8; 4], message: Message) -> Craft {
    let mut craft = Craft::new(Addresses::V4 { source, destination }, message);
    craft.payload_len = FRAME.saturating_sub(craft.frame().len());
    craft
}

/// One rule: protocol and port, and with every other one an address.
struct Rule {
    number: u32,
    is_tcp: bool,
    has_source: bool,
    has_destination: bool,
}

impl Rule {
    fn number(number: u32) -> Self {
        let kind = number % 4;
        Self { number, is_tcp: kind < 2, has_source: kind == 0, has_destination: kind == 2 }
    }

    fn port(&self) -> u16 {
        1000 + self.number as u16
    }

    fn protocol(&self) -> &'static str {
        if self.is_tcp { "tcp" } else { "udp" }
    }

    fn iptables(&self) -> String {
        let (number, protocol, port) = (self.number, self.protocol(), self.port());
        let source =
            if self.has_source { format!("-s 10.{number}.0.0/16 ") } else { String::new() };
        let destination =
            if self.has_destination { format!("-d 192.0.2.{number}/32 ") } else { String::new() };
        format!("{source}{destination}-p {protocol} -m {protocol} --dport {port}")
    }

    fn pcap(&self) -> String {
        let (number, protocol, port) = (self.number, self.protocol(), self.port());
        let source = if self.has_source {
            format!("src net 10.{number}.0.0/16 and ")
        } else {
            String::new()
        };
        let destination = if self.has_destination {
            format!("dst host 192.0.2.{number} and ")
        } else {
            String::new()
        };
        format!("({source}{destination}{protocol} dst port {port})")
    }

    /// A packet that it matches, and no other rule does.
    fn packet(&self, index: u32) -> Craft {
        let [a, b] = (index as u16).to_be_bytes();
        let source_port = 20_000 + (index % 40_000) as u16;
        let message = if self.is_tcp {
            Message::tcp(source_port, self.port(), Flags::ACK)
        } else {
            Message::udp(source_port, self.port())
        };
        padded([10, self.number as u8, a, b], [192, 0, 2, self.number as u8], message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::process::{Command, Stdio};

    use pktio::{Burst, CaptureReader, Port};

    /// Numbers of the frames of a capture, by their times.
    fn frames(capture: Vec<u8>) -> Vec<i64> {
        let mut reader = CaptureReader::new("made", Cursor::new(capture)).unwrap();
        let mut burst = Burst::new();
        let mut numbers = Vec::new();
        while reader.rx_burst(&mut burst).unwrap() > 0 {
            for frame in burst.iter() {
                assert_eq!(frame.bytes.len(), FRAME);
                let time = frame.meta.timestamp.unwrap().as_nanos();
                numbers.push((time - START) / APART);
            }
        }
        assert_eq!(reader.warning(), None);
        numbers
    }

    fn capture(shape: Shape, packets: u32) -> Vec<u8> {
        let mut capture = Vec::new();
        shape.capture(packets, &mut capture).unwrap();
        capture
    }

    #[test]
    fn captures_hold_packets_of_60_bytes() {
        for shape in [Shape::Mean20, Shape::All100, Shape::FullTable { flows: 10 }, Shape::SynFlood]
        {
            assert!(frames(capture(shape, 300)).into_iter().eq(0..300), "{}", shape.name());
        }
    }

    /// Frames that tcpdump lets pass.
    fn passed(shape: Shape, packets: u32) -> Option<Vec<i64>> {
        let mut child = Command::new("tcpdump")
            .args(["-r", "-", "-w", "-", "--", &shape.expression().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut input = child.stdin.take().unwrap();
        let bytes = capture(shape, packets);
        let feeder = std::thread::spawn(move || drop(input.write_all(&bytes)));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        Some(frames(output.stdout))
    }

    /// What the rules accept must be what the peer lets pass, else the figures compare different work.
    #[test]
    fn rules_and_expression_accept_the_same() {
        let all: Vec<i64> = (0..500).collect();
        for (shape, expected) in [(Shape::Mean20, &all[..]), (Shape::All100, &[])] {
            assert_eq!(walked(shape), expected, "{}", shape.name());
            match passed(shape, 500) {
                Some(passed) => assert_eq!(passed, expected, "{}", shape.name()),
                None => eprintln!("skipped: no tcpdump"),
            }
        }
    }

    /// Frames that the rules accept; how many rules they walk is what the shape promises.
    fn walked(shape: Shape) -> Vec<i64> {
        let loaded = rules::save::load(&shape.rules(), &Default::default()).unwrap();
        let config = dataplane::Config::default();
        let program = dataplane::Program::new([loaded.ruleset], config);
        let mut evaluator = dataplane::Evaluator::new(&program);
        let mut seen = Walked(0);
        let mut accepted = Vec::new();
        for index in 0..500 {
            let mut bytes = shape.packet(index).frame();
            let arrival =
                dataplane::Arrival::new(u64::from(index) + 1, packet::Link::Ethernet, FRAME);
            let end = evaluator.handle(&mut bytes, &arrival, &mut seen).outcome.end;
            if let dataplane::FinalVerdict::Accept(_) = end.verdict {
                accepted.push(i64::from(index));
            }
        }
        match shape {
            Shape::All100 => assert_eq!(seen.0, 500 * 100),
            _ => assert!((9_000..11_000).contains(&seen.0), "{}", seen.0),
        }
        accepted
    }

    /// Counts rules.
    struct Walked(u64);

    impl rules::eval::Observer for Walked {
        fn rule(
            &mut self,
            _: rules::eval::RuleRef,
            _: rules::Outcome,
            _: rules::eval::Alive,
            _: &rules::Transit<'_, '_>,
        ) {
            self.0 += 1;
        }
    }

    impl dataplane::Observer for Walked {}
}
