//! Random packets for a router: beginnings, answers to what came out and errors about it; long, expired, with options,
//! damaged, in fragments of any size and order; and control connections of FTP, whose lines a helper rewrites.

use std::collections::VecDeque;
use std::net::IpAddr;

use fastrand::Rng;
use lab::scene::{LOCAL_V4, LOCAL_V6};
use packet::checksum;
use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use rules::model::Family;

use super::trial::Input;
use crate::nat::packets::{address, error, parts};

/// Draws packets, one after the other.
#[derive(Debug)]
pub(super) struct Packets {
    family: Family,
    /// Of the devices that packets come in by: what is longer is a superframe, or none comes.
    mtus: [u32; 2],
    /// What is to come next.
    queue: VecDeque<Input>,
    ftp: Option<Ftp>,
}

impl Packets {
    pub(super) fn new(family: Family, mtus: [u32; 2]) -> Self {
        Self { family, mtus, queue: VecDeque::new(), ftp: None }
    }

    /// The next packet; `seen` is what came out so far.
    pub(super) fn draw(&mut self, seen: &[Input], rng: &mut Rng) -> Input {
        let family = self.family;
        if let Some(next) = self.queue.pop_front() {
            return next;
        }
        if let Some(next) = self.ftp.as_mut().and_then(|ftp| ftp.next(seen)) {
            return next;
        }
        self.ftp = (rng.u8(..12) == 0).then(|| Ftp::draw(family, rng));
        let (from_near, bytes) = drawn(family, &seen[seen.len().saturating_sub(12)..], rng);
        let bytes = damaged(with_options(bytes, rng), rng);
        let [near, far] = self.mtus;
        let mtu = if from_near { near } else { far } as usize;
        if bytes.len() <= mtu && (rng.u8(..3) > 0 || bytes.len() < 80) {
            return (from_near, bytes);
        }
        let mut fragments = fragments(&bytes, mtu, rng);
        self.queue.extend(fragments.drain(1..).map(|fragment| (from_near, fragment)));
        (from_near, fragments.remove(0))
    }
}

fn drawn(family: Family, recent: &[Input], rng: &mut Rng) -> Input {
    let from_near = rng.u8(..4) > 0;
    match rng.u8(..10) {
        kind @ 6.. if !recent.is_empty() => {
            let (by_near, bytes) = &recent[rng.usize(..recent.len())];
            let back = if kind < 9 { answer(bytes, rng) } else { error(bytes) };
            (*by_near, back.unwrap_or_else(|| bytes.clone()))
        }
        _ => (from_near, beginning(family, from_near, rng)),
    }
}

fn beginning(family: Family, from_near: bool, rng: &mut Rng) -> Vec<u8> {
    let own = if family == Family::Ipv6 { LOCAL_V6 } else { LOCAL_V4 };
    let client = address(family, 0, rng.u8(2..5));
    let server = match rng.u8(..8) {
        0 => own[rng.usize(..2)].parse().expect("an address"),
        _ => address(family, 1, rng.u8(1..4)),
    };
    let ends = if from_near || server.to_string().starts_with("10.255") {
        (client, server)
    } else {
        (address(family, 1, rng.u8(1..4)), client)
    };
    let (from, to) = (rng.u16(1000..1004), [53, 80, 81, 82][rng.usize(..4)]);
    let message = match rng.u8(..8) {
        0..3 => Message::udp(from, to),
        3..6 => {
            Message::tcp(from, to, [Flags::SYN, Flags::ACK, Flags::RST, Flags::FIN][rng.usize(..4)])
        }
        6 => {
            let kind = if family == Family::Ipv6 { 128 } else { 8 };
            Message::Icmp { kind, code: 0, id: rng.u16(1..3), sequence: 1 }
        }
        // GRE of an unknown version the kernel does not translate, and drops where it would have to.
        _ if rng.bool() => Message::Other { protocol: 47, header: vec![0; 12] },
        _ => Message::Other { protocol: [99, 132][rng.usize(..2)], header: vec![rng.u8(..); 12] },
    };
    frame(ends, message, rng)
}

/// An answer to what came out.
fn answer(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let (source, destination, protocol, upper) = parts(bytes)?;
    let word = |at: usize| Some(u16::from_be_bytes([*upper.get(at)?, *upper.get(at + 1)?]));
    let message = match protocol {
        17 => word(2).zip(word(0)).map(|(from, to)| Message::udp(from, to)),
        6 => word(2)
            .zip(word(0))
            .map(|(from, to)| Message::tcp(from, to, Flags::SYN.union(Flags::ACK))),
        1 if upper.first() == Some(&8) => {
            word(4).map(|id| Message::Icmp { kind: 0, code: 0, id, sequence: 1 })
        }
        58 if upper.first() == Some(&128) => {
            word(4).map(|id| Message::Icmp { kind: 129, code: 0, id, sequence: 1 })
        }
        _ => None,
    };
    let message = message.unwrap_or(Message::Other { protocol, header: vec![0; 8] });
    Some(frame((destination, source), message, rng))
}

fn frame((source, destination): (IpAddr, IpAddr), message: Message, rng: &mut Rng) -> Vec<u8> {
    let mut craft = Craft::new(Addresses::new(source, destination).expect("one family"), message);
    craft.ethernet = None;
    craft.ttl = [64, 64, 64, 64, 255, 3, 2, 1][rng.usize(..8)];
    craft.tos = [0, 0, 0, 0x10, 0x08, 0x03, 0xb8][rng.usize(..7)];
    craft.id = rng.u32(..);
    craft.dont_fragment = rng.bool();
    craft.payload_len = match rng.u8(..4) {
        0 => rng.usize(..9),
        1 => rng.usize(..3000),
        2 => rng.usize(500..1600),
        _ => rng.usize(..300),
    };
    craft.frame()
}

/// Some packets have options that routers leave alone, or extension headers.
fn with_options(bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    if rng.u8(..6) > 0 {
        return bytes;
    }
    match bytes[0] {
        0x45 => with_options_v4(&bytes, rng),
        first if first >> 4 == 6 && !matches!(bytes[6], 0 | 43 | 44 | 60) => {
            let kind = if rng.bool() { 0 } else { 60 };
            // Padding of six bytes.
            let header = [bytes[6], 0, 1, 4, 0, 0, 0, 0];
            let mut bytes = [&bytes[..40], &header, &bytes[40..]].concat();
            bytes[6] = kind;
            let len = (bytes.len() - 40) as u16;
            bytes[4..6].copy_from_slice(&len.to_be_bytes());
            bytes
        }
        _ => bytes,
    }
}

fn with_options_v4(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    // No operation, an unknown one that is copied, one that is not, the end.
    let each: [&[u8]; 4] = [&[1; 4], &[0x9e, 4, 7, 7], &[0x1e, 4, 7, 7], &[1, 0x9f, 3, 9]];
    let mut options: Vec<u8> =
        (0..rng.usize(1..5)).flat_map(|_| each[rng.usize(..4)]).copied().collect();
    if rng.bool() {
        options.extend([0; 4]);
    }
    let mut bytes = [&bytes[..20], &options, &bytes[20..]].concat();
    bytes[0] += (options.len() / 4) as u8;
    let len = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    seal(&mut bytes);
    bytes
}

/// Makes the checksum of an IPv4 header anew.
fn seal(bytes: &mut [u8]) {
    let header_len = usize::from(bytes[0] & 15) * 4;
    bytes[10..12].fill(0);
    let sum = !checksum::sum(&bytes[..header_len]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Some packets have a wrong checksum, of IP or after it.
fn damaged(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    match rng.u8(..40) {
        0 if bytes[0] >> 4 == 4 => bytes[11] ^= 1,
        1 | 2 => *bytes.last_mut().expect("a packet") ^= 0x40,
        _ => {}
    }
    bytes
}

/// Cuts a packet anywhere, and shuffles, repeats or loses some of it.
fn fragments(bytes: &[u8], mtu: usize, rng: &mut Rng) -> Vec<Vec<u8>> {
    let head = if bytes[0] >> 4 == 4 { usize::from(bytes[0] & 15) * 4 } else { 40 };
    let payload = &bytes[head..];
    let most = [8, 24, 160, 600, 1280, 1480][rng.usize(..6)]
        .max(payload.len() / 24 / 8 * 8)
        .min((mtu - head - 8) / 8 * 8);
    let is_even = rng.bool();
    let (mut at, mut all) = (0, Vec::new());
    let (id, is_stiff) = (rng.u32(..), rng.u8(..5) == 0);
    while at < payload.len() {
        let len = if is_even { most } else { rng.usize(1..=most / 8) * 8 };
        let end = (at + len.max(8)).min(payload.len());
        let is_stiff = is_stiff && (is_even || rng.bool());
        all.push(fragment(
            &bytes[..head],
            &payload[at..end],
            at,
            end < payload.len(),
            id,
            is_stiff,
        ));
        at = end;
    }
    match rng.u8(..8) {
        0..3 => rng.shuffle(&mut all),
        3 => all.reverse(),
        4 if rng.bool() => all.push(all[rng.usize(..all.len())].clone()),
        5 if all.len() > 1 => drop(all.remove(rng.usize(..all.len()))),
        _ => {}
    }
    all
}

fn fragment(head: &[u8], part: &[u8], at: usize, more: bool, id: u32, is_stiff: bool) -> Vec<u8> {
    if head[0] >> 4 == 4 {
        let mut bytes = [head, part].concat();
        let len = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        let flags = u16::from(more) << 13 | u16::from(is_stiff) << 14;
        bytes[6..8].copy_from_slice(&(flags | (at / 8) as u16).to_be_bytes());
        seal(&mut bytes);
        return bytes;
    }
    let [a, b] = (at as u16 | u16::from(more)).to_be_bytes();
    let [c, d, e, f] = id.to_be_bytes();
    let header = [head[6], 0, a, b, c, d, e, f];
    let mut bytes = [head, &header, part].concat();
    bytes[6] = 44;
    let len = (bytes.len() - 40) as u16;
    bytes[4..6].copy_from_slice(&len.to_be_bytes());
    bytes
}

/// A control connection: what each side says next, the server to what came out.
#[derive(Debug)]
struct Ftp {
    client: IpAddr,
    server: IpAddr,
    port: u16,
    telling: String,
    step: usize,
}

impl Ftp {
    fn draw(family: Family, rng: &mut Rng) -> Self {
        let (client, server) = (address(family, 0, rng.u8(2..5)), address(family, 1, 1));
        let telling = match client {
            IpAddr::V4(v4) if rng.bool() => {
                let [a, b, c, d] = v4.octets();
                format!("PORT {a},{b},{c},{d},{},{}\r\n", rng.u8(4..), rng.u8(..))
            }
            IpAddr::V4(v4) => format!("EPRT |1|{v4}|{}|\r\n", rng.u16(1024..)),
            IpAddr::V6(v6) => format!("EPRT |2|{v6}|{}|\r\n", rng.u16(1024..)),
        };
        Self { client, server, port: rng.u16(2000..), telling, step: 0 }
    }

    /// `None` once it is over, or came to nothing.
    fn next(&mut self, seen: &[Input]) -> Option<Input> {
        self.step += 1;
        let told = 107 + self.telling.len() as u32;
        match self.step {
            1 => Some(self.client_says(Flags::SYN, 100, 0, "")),
            2 => self.server_says(seen, Flags::SYN.union(Flags::ACK), 500, ""),
            3 => Some(self.client_says(Flags::ACK, 101, 501, "NOOP\r\n")),
            4 => self.server_says(seen, Flags::ACK, 501, "200\r\n"),
            5 => Some(self.client_says(Flags::ACK, 107, 506, &self.telling)),
            6 => self.server_says(seen, Flags::ACK, 506, "200 ok\r\n"),
            7 => Some(self.client_says(Flags::ACK, told, 514, "QUIT\r\n")),
            _ => None,
        }
    }

    fn client_says(&self, flags: Flags, sequence: u32, acknowledgement: u32, text: &str) -> Input {
        let message = Message::Tcp {
            source_port: self.port,
            destination_port: 21,
            flags,
            sequence,
            acknowledgement,
            window: 5000,
        };
        (true, with_text(self.client, self.server, message, text))
    }

    /// To the last of what the client said that came out.
    fn server_says(
        &self,
        seen: &[Input],
        flags: Flags,
        sequence: u32,
        text: &str,
    ) -> Option<Input> {
        let last = seen.last().filter(|(by_near, _)| !by_near)?;
        let (source, destination, protocol, upper) = parts(&last.1)?;
        if protocol != 6 || upper.get(2..4)? != [0, 21] {
            return None;
        }
        let started = u32::from_be_bytes(upper.get(4..8)?.try_into().ok()?);
        let said = upper.len() as u32 - 20 + u32::from(upper[13] & Flags::SYN.0 != 0);
        let message = Message::Tcp {
            source_port: 21,
            destination_port: u16::from_be_bytes([upper[0], upper[1]]),
            flags,
            sequence,
            acknowledgement: started + said,
            window: 5000,
        };
        Some((false, with_text(destination, source, message, text)))
    }
}

fn with_text(source: IpAddr, destination: IpAddr, message: Message, text: &str) -> Vec<u8> {
    let mut craft = Craft::new(Addresses::new(source, destination).expect("one family"), message);
    craft.ethernet = None;
    craft.payload_len = text.len();
    let mut bytes = craft.frame();
    let at = bytes.len() - text.len();
    let before = checksum::sum(&bytes[at..]);
    bytes[at..].copy_from_slice(text.as_bytes());
    let place = at - 4;
    let sum = u16::from_be_bytes([bytes[place], bytes[place + 1]]);
    let updated = checksum::update(sum, before, checksum::sum(&bytes[at..]));
    bytes[place..place + 2].copy_from_slice(&updated.to_be_bytes());
    bytes
}
