//! What the way between two hosts did to sealed datagrams: as the router got them from the first host, and as they came
//! to the second, both recorded by tcpdump(8).
//!
//! Contract: WireGuard's data messages and tamis' have their type first, the receiver's index at 4 and the counter at 8, so
//! one reader serves both. Counters are given out in the order in which packets go into a tunnel: of datagrams that hold
//! packets of one flow, the one with the nth counter holds the nth packet.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::super::host::wait_until;
use super::super::hosts::Hosts;

/// Bytes of an Ethernet header, and of IPv4's and UDP's.
const ETHERNET: usize = 14;
const IP: usize = 20;
const UDP: usize = 8;
/// Types of data messages: tamis', and WireGuard's.
const DATA: [[u8; 4]; 2] = [[0x84, 1, 0, 0], [4, 0, 0, 0]];
/// For what is on its way when a recording ends.
const SETTLES: Duration = Duration::from_millis(1_500);

/// A session's index, and a datagram's number in it.
pub(super) type Number = ([u8; 4], u64);

/// Two recordings on their way.
pub(super) struct Recording {
    listeners: [(Child, String); 2],
}

/// What was recorded.
pub(super) struct Way {
    /// What the first host sent, by its number.
    sent: BTreeMap<Number, Vec<u8>>,
    /// Sessions of the first host, one after the other.
    sessions: Vec<[u8; 4]>,
    /// What came to the second host, in its order: whatever of it is as it was sent.
    came: Vec<Number>,
    /// Frames to it that are not, and are no other message of the tunnel either.
    pub(super) damaged: usize,
}

impl Recording {
    pub(super) fn begin(hosts: &Hosts) -> Self {
        let places = [(hosts.router.as_str(), "r0"), (hosts.name(1), "eth0")];
        let listeners = places.map(|(host, device)| {
            let file = hosts.folder.file(&format!("{device}.pcap"));
            let mut command = Command::new("ip");
            command.args(["netns", "exec", host, "tcpdump", "-U", "-n", "-s", "0", "-B", "16384"]);
            command.args(["-Z", "root", "-Q", "in", "-i", device, "-w", &file]);
            let said = hosts.folder.file(&format!("{device}.said"));
            let child = command.stdout(Stdio::null()).stderr(std::fs::File::create(&said).unwrap());
            let child = child.spawn().unwrap();
            wait_until("a listener", || {
                std::fs::read_to_string(&said).is_ok_and(|said| said.contains("listening on"))
            });
            (child, file)
        });
        Self { listeners }
    }

    pub(super) fn end(self, hosts: &Hosts) -> Way {
        thread::sleep(SETTLES);
        let mut captures = self.listeners.map(|(mut child, file)| {
            let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            assert!(child.wait().unwrap().success());
            frames(&std::fs::read(file).unwrap())
        });
        for device in ["r0", "eth0"] {
            let said = std::fs::read_to_string(hosts.folder.file(&format!("{device}.said")));
            assert!(said.unwrap().contains("\n0 packets dropped by kernel"), "of {device}");
        }
        let sent = captures[0].drain(..).filter_map(|frame| Some((number(&frame)?, frame)));
        Way::new(sent.collect(), &captures[1])
    }
}

impl Way {
    fn new(sent: Vec<(Number, Vec<u8>)>, frames: &[Vec<u8>]) -> Self {
        let mut sessions: Vec<[u8; 4]> = Vec::new();
        for ((session, _), _) in &sent {
            if !sessions.contains(session) {
                sessions.push(*session);
            }
        }
        let sent: BTreeMap<Number, Vec<u8>> = sent.into_iter().collect();
        let mut links: BTreeMap<_, usize> = BTreeMap::new();
        let messages = frames.iter().filter(|frame| number(frame).is_some());
        messages.for_each(|frame| *links.entry(link(frame)).or_default() += 1);
        let usual = links.into_iter().max_by_key(|(_, count)| *count).map(|(link, _)| link);
        let (mut came, mut damaged) = (Vec::new(), 0);
        for frame in frames {
            let number = number(frame);
            let whole = number.and_then(|number| sent.get(&number));
            match whole.is_some_and(|sent| Some(link(frame)) == usual && is_as_sent(frame, sent)) {
                true => came.extend(number),
                false => damaged += usize::from(number.is_some()),
            }
        }
        Self { sent, sessions, came, damaged }
    }

    /// Numbers of the flow whose sealed packets are `len` bytes each, in order.
    pub(super) fn flow(&self, len: usize) -> Vec<Number> {
        let of_it = |frame: &Vec<u8>| frame.len() == ETHERNET + IP + UDP + len;
        let in_order = self
            .sessions
            .iter()
            .flat_map(|session| self.sent.range((*session, 0)..=(*session, u64::MAX)));
        in_order.filter(|(_, frame)| of_it(frame)).map(|(number, _)| *number).collect()
    }

    /// What came of these, each once, in the order in which it came: their places.
    pub(super) fn expected(&self, flow: &[Number]) -> Vec<u64> {
        let mut seen = BTreeSet::new();
        let places = self.came.iter().filter_map(|number| flow.iter().position(|it| it == number));
        places.map(|place| place as u64).filter(|place| seen.insert(*place)).collect()
    }

    /// How many came, and came before.
    pub(super) fn repeated(&self) -> usize {
        self.came.len() - self.came.iter().collect::<BTreeSet<_>>().len()
    }

    /// How many are missing before the last that came, over all sessions.
    pub(super) fn missing(&self) -> u64 {
        let mut sessions: BTreeMap<[u8; 4], BTreeSet<u64>> = BTreeMap::new();
        for (session, counter) in &self.came {
            sessions.entry(*session).or_default().insert(*counter);
        }
        sessions
            .values()
            .map(|came| came.last().map_or(0, |last| last + 1) - came.len() as u64)
            .sum()
    }

    /// How many sessions there were.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }
}

/// The frames of a capture.
fn frames(capture: &[u8]) -> Vec<Vec<u8>> {
    let (mut at, mut frames) = (24, Vec::new());
    while let Some(head) = capture.get(at..at + 16) {
        let len = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
        let Some(frame) = capture.get(at + 16..at + 16 + len) else { break };
        frames.push(frame.to_vec());
        at += 16 + len;
    }
    frames
}

/// The number of a data message in a frame.
fn number(frame: &[u8]) -> Option<Number> {
    let message = frame.get(ETHERNET + IP + UDP..)?;
    let is_data = DATA.iter().any(|kind| message.starts_with(kind));
    let counter = u64::from_le_bytes(message.get(8..16)?.try_into().ok()?);
    is_data.then(|| (message[4..8].try_into().unwrap(), counter))
}

/// Whom a frame is for, and its type.
fn link(frame: &[u8]) -> (&[u8], &[u8]) {
    (&frame[..6], &frame[12..ETHERNET])
}

/// Whether a frame comes to the tunnel, and its message is as it was sent. A router changes time to live and checksums; what
/// nobody looks at, the source of the frame, and the source port where there is no checksum, may be damaged.
fn is_as_sent(came: &[u8], sent: &[u8]) -> bool {
    let checksum = |frame: &[u8]| [frame[ETHERNET + IP + 6], frame[ETHERNET + IP + 7]];
    let is_bare = checksum(came) == [0, 0];
    let rest = |frame: &[u8]| {
        let mut bytes = frame[ETHERNET..].to_vec();
        bytes[8] = 0;
        bytes[10..12].fill(0);
        bytes[IP + 6..IP + 8].fill(0);
        if is_bare {
            bytes[IP..IP + 2].fill(0);
        }
        bytes
    };
    came.len() == sent.len()
        && rest(came) == rest(sent)
        && came[ETHERNET + 8] == sent[ETHERNET + 8] - 1
        && sum(&came[ETHERNET..ETHERNET + IP]) == 0xffff
        && (is_bare || checksum(came) == checksum(sent))
}

/// The sum of an IPv4 header (RFC 1071).
fn sum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    ((sum & 0xffff) + (sum >> 16)) as u16
}
