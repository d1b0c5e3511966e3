//! What a packet spec does not give: the bytes of its frame that are not known, and the keys that would give them.
//!
//! Contract: a byte that neither the text nor what is assumed of every described packet gives is in [`Gaps`]. Assumed are
//! time to live, type of service, no IP options, a whole packet that fits its links, and right checksums.

use std::ops::Range;

use packet::craft::{Addresses, Craft, Message};
use packet::{Gaps, ah, dccp, esp, icmpv4, ipv4, ipv6, ipv6_ext, sctp, tcp, udp};

use super::contents::{Contents, Options, Payload};
use super::lack::Lack;
use super::word::{SpecError, expected};

/// Bytes of an Ethernet header.
const LINK: usize = 14;

/// A frame, and what is not known of it.
pub(super) struct Filled {
    pub(super) frame: Vec<u8>,
    /// Length of the frame on the wire, as far as it is known.
    pub(super) wire_len: usize,
    pub(super) gaps: Gaps,
    pub(super) lacks: Vec<Lack>,
}

/// What is known of a packet's size and contents.
#[derive(Default)]
struct Known {
    /// How long the TCP header is.
    header: bool,
    options: bool,
    payload: bool,
    /// How long the packet is.
    length: bool,
}

/// Builds a packet with these contents; `len` is its length in bytes, at this column.
pub(super) fn fill(
    mut craft: Craft,
    contents: &Contents,
    len: Option<(usize, usize)>,
    has_ports: bool,
) -> Result<Filled, SpecError> {
    put_header(&mut craft, contents);
    let known = put_payload(&mut craft, contents, len)?;
    let mut frame = craft.frame();
    let wire_len = frame.len();
    let mut found = Found { frame_len: frame.len(), ..Found::default() };
    found.network(&craft, contents, &known);
    let at = LINK + craft.network_len();
    let is_later = craft.fragment.is_some_and(|fragment| fragment.offset >= 8);
    let payload = if is_later { at } else { found.upper(&craft, contents, &known, at, has_ports) };
    found.payload(&craft, contents, &known, payload.min(frame.len()));
    let Found { ranges, mut lacks, .. } = found;
    if !known.length {
        lacks.push(Lack::Len);
    }
    lacks.sort_unstable();
    lacks.dedup();
    // What an extension header of IPv6 leads to is not known either.
    if let (Addresses::V6 { .. }, Message::Other { protocol, .. }) =
        (craft.addresses, &craft.message)
        && ipv6_ext::is_extension(*protocol)
        && *protocol != ipv6_ext::NO_NEXT
    {
        frame.truncate(at);
    }
    Ok(Filled { frame, wire_len, gaps: Gaps { ranges, payload, open: !known.length }, lacks })
}

/// Bytes of the header of another protocol than TCP, UDP and ICMP.
pub(super) fn header_of(protocol: u8) -> usize {
    match protocol {
        esp::PROTOCOL => esp::HEADER_LEN,
        ah::PROTOCOL => ah::HEADER_LEN,
        sctp::PROTOCOL => sctp::HEADER_LEN,
        dccp::PROTOCOL => dccp::MIN_HEADER_LEN,
        udp::PROTOCOL_LITE => udp::HEADER_LEN,
        packet::gre::PROTOCOL => 4,
        _ => 0,
    }
}

/// Fields of the upper-layer header.
fn put_header(craft: &mut Craft, contents: &Contents) {
    craft.id = contents.id.map_or(craft.id, u32::from);
    let addresses = craft.addresses;
    match &mut craft.message {
        Message::Tcp { flags, sequence, acknowledgement, window, .. } => {
            *sequence = contents.sequence.unwrap_or(*sequence);
            *acknowledgement = contents.acknowledgement.unwrap_or(*acknowledgement);
            *window = contents.window.unwrap_or(*window);
            let options = contents.options.as_ref();
            craft.options = options.map_or_else(Vec::new, |o| o.bytes(*flags, addresses));
        }
        Message::Other { protocol, header } => {
            let mut put = |range: Range<usize>, bytes: &[u8]| {
                if let Some(place) = header.get_mut(range) {
                    place.copy_from_slice(bytes);
                }
            };
            match *protocol {
                esp::PROTOCOL => put(esp::SPI, &contents.spi.unwrap_or(0).to_be_bytes()),
                ah::PROTOCOL => put(ah::SPI, &contents.spi.unwrap_or(0).to_be_bytes()),
                dccp::PROTOCOL => put(dccp::TYPE, &[contents.kind.unwrap_or(0) << 1 | 1]),
                sctp::PROTOCOL => put(sctp::VERIFICATION_TAG, &tag(contents).to_be_bytes()),
                // Without a checksum it would be malformed.
                udp::PROTOCOL_LITE => put(udp::CHECKSUM, &[0xff, 0xff]),
                _ => {}
            }
        }
        _ => {}
    }
}

/// The tag of an SCTP packet; none is agreed on before an INIT.
fn tag(contents: &Contents) -> u32 {
    let chunks = contents.chunks.as_deref().or(contents.payload.as_ref().map(Payload::bytes));
    u32::from(chunks.is_some_and(|chunks| chunks.first() != Some(&1)))
}

/// Payload and length.
fn put_payload(
    craft: &mut Craft,
    contents: &Contents,
    len: Option<(usize, usize)>,
) -> Result<Known, SpecError> {
    let is_tcp = matches!(craft.message, Message::Tcp { .. });
    let is_sctp = matches!(craft.message, Message::Other { protocol: sctp::PROTOCOL, .. });
    let chunks = contents.chunks.as_ref().filter(|_| is_sctp);
    let given = match (chunks, &contents.payload) {
        (Some(chunks), _) => Some(chunks.clone()),
        (None, Some(payload)) if matches!(payload, Payload::These(_)) || is_udp(craft) => {
            Some(payload.bytes().to_vec())
        }
        (None, _) => None,
    };
    let mut known = Known { options: contents.options.is_some(), ..Known::default() };
    known.payload = given.is_some();
    known.length = given.is_some() && (known.options || !is_tcp);
    craft.payload = given.unwrap_or_default();
    if let Some((column, len)) = len {
        let least = craft.header_len() + craft.payload.len();
        let rest = len.checked_sub(least);
        let rest =
            rest.ok_or_else(|| expected(column, format!("a length of at least {least} bytes")))?;
        if is_tcp && !known.options && known.payload && rest <= 40 && rest.is_multiple_of(4) {
            craft.options = vec![1; rest];
            (known.header, known.options) = (true, rest == 0);
        } else if known.payload && rest > 0 {
            return Err(expected(column, format!("a length of {least} bytes, with this payload")));
        } else {
            craft.payload_len = rest;
            known.payload = rest == 0;
            known.options |= rest == 0;
        }
        known.length = true;
    }
    known.header |= known.options;
    Ok(known)
}

fn is_udp(craft: &Craft) -> bool {
    matches!(craft.message, Message::Udp { .. })
}

/// What was found to be missing so far.
#[derive(Default)]
struct Found {
    ranges: Vec<Range<usize>>,
    lacks: Vec<Lack>,
    frame_len: usize,
}

impl Found {
    fn gap(&mut self, at: usize, range: Range<usize>) {
        self.ranges.push(at + range.start..at + range.end);
    }

    fn lack(&mut self, lack: Lack, at: usize, range: Range<usize>) {
        self.lacks.push(lack);
        self.gap(at, range);
    }

    /// Notes the gaps of the link header and the network header.
    fn network(&mut self, craft: &Craft, contents: &Contents, known: &Known) {
        self.macs(contents);
        if let Addresses::V6 { .. } = craft.addresses {
            if contents.label.is_none() {
                self.lack(Lack::Label, LINK, 2..4);
            }
            if !known.length {
                self.gap(LINK, ipv6::PAYLOAD_LEN);
            }
            return;
        }
        // Fragments of one packet have one identifier.
        let has_id = contents.id.is_some() || craft.fragment.is_some();
        if !known.length {
            self.gap(LINK, ipv4::TOTAL_LEN);
        }
        if !has_id {
            self.lack(Lack::Id, LINK, ipv4::ID);
        }
        // That of a fragment says of which part it is.
        let has_flags = contents.dont_fragment.is_some() || craft.fragment.is_some();
        if !has_flags {
            self.lack(Lack::Df, LINK, ipv4::FRAGMENT);
        }
        if !known.length || !has_id || !has_flags {
            self.gap(LINK, ipv4::CHECKSUM);
        }
    }

    /// Notes the gaps of the Ethernet header.
    fn macs(&mut self, contents: &Contents) {
        self.gap(0, 0..6);
        if contents.mac.is_none() {
            self.lack(Lack::Mac, 6, 0..6);
        }
    }

    /// Notes the gaps of the upper-layer header at `at`; returns where its payload begins.
    fn upper(
        &mut self,
        craft: &Craft,
        contents: &Contents,
        known: &Known,
        at: usize,
        has_ports: bool,
    ) -> usize {
        match &craft.message {
            Message::Tcp { .. } => self.tcp(craft, contents, known, at),
            Message::Udp { .. } => {
                if !known.length || craft.fragment.is_some() {
                    self.gap(at, udp::LENGTH);
                }
                let is_query = matches!(contents.payload, Some(Payload::Question(_)));
                if !known.payload || is_query {
                    self.gap(at, udp::CHECKSUM);
                }
                at + udp::HEADER_LEN
            }
            Message::Icmp { kind, .. } => {
                let is_error = match craft.addresses {
                    Addresses::V4 { .. } => matches!(kind, 3 | 4 | 5 | 11 | 12),
                    Addresses::V6 { .. } => *kind < 128 || *kind == 137,
                };
                if is_error && !known.payload {
                    self.lacks.push(Lack::Quote);
                }
                self.gap(at, icmpv4::CHECKSUM.start..8);
                at + 8
            }
            Message::Other { protocol, header } => {
                self.other(*protocol, contents, at, has_ports);
                if *protocol == sctp::PROTOCOL && !known.payload {
                    self.lacks.push(Lack::Chunk);
                }
                let chunks = if *protocol == sctp::PROTOCOL { craft.payload.len() } else { 0 };
                at + header.len() + chunks
            }
        }
    }

    fn tcp(&mut self, craft: &Craft, contents: &Contents, known: &Known, at: usize) -> usize {
        let fields = [
            (Lack::Seq, contents.sequence.is_some(), tcp::SEQUENCE),
            (Lack::Ack, contents.acknowledgement.is_some(), tcp::ACKNOWLEDGEMENT),
            (Lack::Win, contents.window.is_some(), tcp::WINDOW),
        ];
        let mut is_whole = known.options && known.payload;
        for (lack, is_given, range) in fields {
            if !is_given {
                self.lack(lack, at, range);
            }
            is_whole &= is_given;
        }
        if !known.header {
            self.gap(at, tcp::DATA_OFFSET);
        }
        if !is_whole {
            self.gap(at, tcp::CHECKSUM.start..tcp::URGENT.end);
        }
        let options = craft.options.len().next_multiple_of(4);
        let payload = at + tcp::MIN_HEADER_LEN + options;
        if !known.options {
            let end = if known.header { payload } else { self.frame_len };
            self.lacks.push(Lack::Options);
            self.ranges.push(at + tcp::MIN_HEADER_LEN..end);
        }
        payload
    }

    /// Notes the gaps of the header of another protocol.
    fn other(&mut self, protocol: u8, contents: &Contents, at: usize, has_ports: bool) {
        match protocol {
            esp::PROTOCOL => {
                if contents.spi.is_none() {
                    self.lack(Lack::Spi, at, esp::SPI);
                }
                self.gap(at, esp::SEQUENCE);
            }
            ah::PROTOCOL => {
                self.gap(at, 0..4);
                if contents.spi.is_none() {
                    self.lack(Lack::Spi, at, ah::SPI);
                }
                self.gap(at, ah::SEQUENCE);
            }
            _ => {
                let ports = if has_ports { 4 } else { 0 };
                match (protocol, &contents.chunks) {
                    (dccp::PROTOCOL, _) if contents.kind.is_some() => {
                        self.gap(at, ports..dccp::TYPE.start);
                        self.gap(at, dccp::TYPE.end..dccp::MIN_HEADER_LEN);
                    }
                    (sctp::PROTOCOL, Some(chunks)) => self.chunks(chunks, contents, at, ports),
                    _ => self.gap(at, ports..header_of(protocol).max(ports)),
                }
                if protocol == dccp::PROTOCOL && contents.kind.is_none() {
                    self.lacks.push(Lack::Type);
                }
            }
        }
    }

    /// Notes the gaps of an SCTP packet whose chunks are named: their contents.
    fn chunks(&mut self, chunks: &[u8], contents: &Contents, at: usize, ports: usize) {
        let tag = if tag(contents) == 0 { sctp::VERIFICATION_TAG.end } else { ports.max(4) };
        self.gap(at, ports..ports.max(4));
        self.gap(at, tag..sctp::HEADER_LEN);
        let mut rest = chunks;
        let mut start = at + sctp::HEADER_LEN;
        while let Some([_, _, high, low]) = rest.get(..4) {
            let len = usize::from(u16::from_be_bytes([*high, *low])).max(4);
            self.ranges.push(start + sctp::CHUNK_HEADER_LEN..start + len);
            start += len;
            rest = rest.get(len..).unwrap_or_default();
        }
    }

    /// Notes the gaps of the payload, from `start` on.
    fn payload(&mut self, craft: &Craft, contents: &Contents, known: &Known, start: usize) {
        let is_query = matches!(contents.payload, Some(Payload::Question(_))) && is_udp(craft);
        if is_query && craft.fragment.is_none() {
            // Its identifier.
            self.gap(start, 0..2);
        }
        if !known.payload {
            self.lacks.push(Lack::Payload);
            self.ranges.push(start..self.frame_len);
        }
    }
}

/// What an ARP frame does not give.
pub(super) fn of_arp(frame: Vec<u8>, contents: &Contents) -> Filled {
    let mut found = Found { frame_len: frame.len(), ..Found::default() };
    found.macs(contents);
    if contents.mac.is_none() {
        found.gap(LINK, packet::arp::SENDER_HARDWARE);
    }
    let wire_len = frame.len();
    let gaps = Gaps { ranges: found.ranges, payload: wire_len, open: false };
    Filled { frame, wire_len, gaps, lacks: found.lacks }
}

/// What is taken for granted of a packet, in words.
pub(super) fn assumed(craft: &Craft, contents: &Contents, given: [bool; 4]) -> Vec<String> {
    let [ttl, tos, fragment, mark] = given;
    let mut words: Vec<String> = Vec::new();
    let mut say = |is_given: bool, what: &str| {
        if !is_given {
            words.push(what.to_owned());
        }
    };
    say(ttl, "ttl=64");
    say(tos, "tos=0");
    say(fragment, "whole");
    say(mark, "mark=0");
    if let (Message::Tcp { flags, .. }, Some(Options::Usual)) = (&craft.message, &contents.options)
    {
        words.push(format!("options={}", Options::usual(*flags, craft.addresses)));
    }
    if let (Message::Udp { .. }, Some(Payload::Question(_))) = (&craft.message, &contents.payload) {
        words.push("a query that wants recursion".to_owned());
    }
    if contents.chunks.is_some()
        && matches!(craft.message, Message::Other { protocol: sctp::PROTOCOL, .. })
    {
        words.push("no other chunk".to_owned());
    }
    if let Addresses::V4 { .. } = craft.addresses {
        words.push("no IP options".to_owned());
    }
    words.push("right checksums".to_owned());
    words
}
