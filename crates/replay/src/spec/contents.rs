//! [`Contents`]: what a packet spec gives of a packet beyond addresses, ports and flags: `payload=`, `dns=`, `options=`,
//! `seq=`, `ack=`, `win=`, `chunk=`, `type=`, `spi=`, `mac=`, `label=`, `id=`, `df=`.
//!
//! Contract: nothing is drawn or made up. `usual` and the names of chunks stand for bytes that are always the same, and
//! an answer that uses it says so.

use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{dccp, sctp};

use super::word::number;

/// The keys of contents.
pub(super) const KEYS: [&str; 13] = [
    "mac", "options", "payload", "dns", "seq", "ack", "win", "chunk", "type", "spi", "label", "id",
    "df",
];

/// Keys that may be given for all packets at once.
pub const USUAL_KEYS: [&str; 12] =
    ["mac", "options", "payload", "seq", "ack", "win", "chunk", "type", "spi", "label", "id", "df"];

/// What is given of a packet's contents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    pub(super) mac: Option<[u8; 6]>,
    pub(super) options: Option<Options>,
    pub(super) payload: Option<Payload>,
    pub(super) sequence: Option<u32>,
    pub(super) acknowledgement: Option<u32>,
    pub(super) window: Option<u16>,
    pub(super) chunks: Option<Vec<u8>>,
    /// The type of a DCCP packet.
    pub(super) kind: Option<u8>,
    pub(super) spi: Option<u32>,
    pub(super) label: Option<u32>,
    pub(super) id: Option<u16>,
    /// Whether routers may not cut it.
    pub(super) dont_fragment: Option<bool>,
}

/// The options of a TCP header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Options {
    /// Options of a host of today: a SYN says how long segments and windows may be.
    Usual,
    /// These bytes.
    These(Vec<u8>),
}

/// What follows the headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Payload {
    /// These bytes.
    These(Vec<u8>),
    /// A DNS query that wants recursion, with one question; its identifier is not known.
    Question(Vec<u8>),
}

impl Payload {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::These(bytes) | Self::Question(bytes) => bytes,
        }
    }
}

impl Contents {
    /// Takes a key's value.
    ///
    /// # Errors
    /// What was expected instead.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = |what: &str| format!("{what} for {key}, found \"{value}\"");
        let small = |what: &str| number(value).ok_or_else(|| wrong(what));
        match key {
            "mac" => self.mac = Some(mac(value).ok_or_else(|| wrong("xx:xx:xx:xx:xx:xx"))?),
            "options" => {
                let form = "usual, none, or a list of mss:N wscale:N sack ts:N:N nop 0xHEX";
                self.options = Some(options(value).ok_or_else(|| wrong(form))?);
            }
            "payload" => {
                let form = "text (%20 for a blank), 0xHEX, or none";
                self.payload = Some(Payload::These(bytes(value).ok_or_else(|| wrong(form))?));
            }
            "dns" => {
                let form = "NAME and a TYPE, such as example.org AAAA,";
                self.payload = Some(Payload::Question(query(value).ok_or_else(|| wrong(form))?));
            }
            "seq" => self.sequence = Some(small("a number of 32 bits")?),
            "ack" => self.acknowledgement = Some(small("a number of 32 bits")?),
            "win" => {
                self.window = Some(number(value).ok_or_else(|| wrong("a number 0-65535"))?);
            }
            "chunk" => {
                let names = CHUNKS.map(|(name, ..)| name).join(" ");
                let form = format!("a list of {names}");
                self.chunks = Some(chunks(value).ok_or_else(|| wrong(&form))?);
            }
            "type" => {
                let form = dccp::TYPE_NAMES.join(" ").to_ascii_lowercase();
                self.kind = Some(dccp_type(value).ok_or_else(|| wrong(&form))?);
            }
            "spi" => self.spi = Some(small("a number of 32 bits")?),
            "label" => {
                let label = number(value).filter(|label: &u32| *label < 1 << 20);
                self.label = Some(label.ok_or_else(|| wrong("a number of 20 bits"))?);
            }
            "df" => {
                let flags = [("yes", true), ("no", false)];
                let found = flags.iter().find(|(name, _)| *name == value);
                self.dont_fragment = Some(found.ok_or_else(|| wrong("yes or no"))?.1);
            }
            _ => self.id = Some(number(value).ok_or_else(|| wrong("a number 0-65535"))?),
        }
        Ok(())
    }

    /// What these do not say is as others say.
    #[must_use]
    pub(super) fn or(self, others: &Self) -> Self {
        let others = others.clone();
        Self {
            mac: self.mac.or(others.mac),
            options: self.options.or(others.options),
            payload: self.payload.or(others.payload),
            sequence: self.sequence.or(others.sequence),
            acknowledgement: self.acknowledgement.or(others.acknowledgement),
            window: self.window.or(others.window),
            chunks: self.chunks.or(others.chunks),
            kind: self.kind.or(others.kind),
            spi: self.spi.or(others.spi),
            label: self.label.or(others.label),
            id: self.id.or(others.id),
            dont_fragment: self.dont_fragment.or(others.dont_fragment),
        }
    }

    /// Contents for a packet of a given length: drops a payload, and chunks or options of another length.
    pub(super) fn of_length(mut self, craft: &Craft, len: Option<usize>) -> Self {
        let Some(len) = len else { return self };
        self.payload = None;
        self.chunks = self.chunks.filter(|chunks| craft.header_len() + chunks.len() == len);
        if let Message::Tcp { flags, .. } = &craft.message {
            let options = self.options.take();
            let fits = |options: &Options| {
                craft.header_len() + options.bytes(*flags, craft.addresses).len() <= len
            };
            self.options = options.filter(fits);
        }
        self
    }

    /// The protocols of a key, in words, where a packet like this cannot have it.
    pub(super) fn not_of(key: &str, craft: &Craft) -> Option<&'static str> {
        let protocol = match &craft.message {
            Message::Other { protocol, .. } => Some(*protocol),
            _ => None,
        };
        let (is_of, words) = match key {
            "options" | "seq" | "ack" | "win" => {
                (matches!(craft.message, Message::Tcp { .. }), "tcp")
            }
            "dns" => (matches!(craft.message, Message::Udp { .. }), "udp"),
            "chunk" => (protocol == Some(sctp::PROTOCOL), "sctp"),
            "type" => (protocol == Some(dccp::PROTOCOL), "dccp"),
            "spi" => (
                matches!(protocol, Some(packet::esp::PROTOCOL | packet::ah::PROTOCOL)),
                "esp and ah",
            ),
            "label" => (matches!(craft.addresses, Addresses::V6 { .. }), "IPv6"),
            "id" | "df" => (matches!(craft.addresses, Addresses::V4 { .. }), "IPv4"),
            _ => return None,
        };
        (!is_of).then_some(words)
    }
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|part| hex(part).filter(|byte| byte.len() == 1)?.pop()).collect();
    bytes?.try_into().ok()
}

/// `0xHEX`, `none`, or text with `%HH` for what would not stand in a word.
fn bytes(text: &str) -> Option<Vec<u8>> {
    if text == "none" {
        return Some(Vec::new());
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return hex(digits);
    }
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
            out.extend(hex(digits)?);
            rest = &rest[2..];
        } else {
            out.push(*first);
        }
    }
    (!out.is_empty() && out.len() < LONGEST).then_some(out)
}

/// More bytes than this are in no packet.
const LONGEST: usize = 65_000;

fn hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        || !digits.len().is_multiple_of(2)
        || digits.is_empty()
        || digits.len() > 2 * LONGEST
    {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// A list of TCP options, `none` or `usual`.
fn options(text: &str) -> Option<Options> {
    match text {
        "usual" => return Some(Options::Usual),
        "none" => return Some(Options::These(Vec::new())),
        _ => {}
    }
    let mut out = Vec::new();
    for option in text.split(',') {
        let (name, value) = option.split_once(':').unwrap_or((option, ""));
        match (name, value) {
            ("mss", value) => {
                let mss: u16 = number(value)?;
                out.extend([2, 4]);
                out.extend(mss.to_be_bytes());
            }
            ("wscale", value) => out.extend([3, 3, number(value)?]),
            ("sack", "") => out.extend([4, 2]),
            ("ts", value) => {
                let (value, echo) = value.split_once(':')?;
                out.extend([8, 10]);
                out.extend(
                    [number::<u32>(value)?, number(echo)?].map(u32::to_be_bytes).as_flattened(),
                );
            }
            ("nop", "") => out.push(1),
            ("eol", "") => out.push(0),
            (digits, "") => out.extend(hex(digits.strip_prefix("0x")?)?),
            _ => return None,
        }
    }
    (out.len() <= 40).then_some(Options::These(out))
}

impl Options {
    /// The usual ones of a segment, in words that [`options`] reads.
    pub(super) fn usual(flags: Flags, addresses: Addresses) -> &'static str {
        match (flags.contains(Flags::SYN), addresses) {
            (true, Addresses::V4 { .. }) => "mss:1460,sack,ts:1:0,nop,wscale:7",
            (true, Addresses::V6 { .. }) => "mss:1440,sack,ts:1:0,nop,wscale:7",
            (false, _) if flags.contains(Flags::RST) => "none",
            (false, _) => "nop,nop,ts:1:1",
        }
    }

    /// Their bytes, in such a segment.
    pub(super) fn bytes(&self, flags: Flags, addresses: Addresses) -> Vec<u8> {
        match self {
            Self::These(bytes) => bytes.clone(),
            Self::Usual => match options(Self::usual(flags, addresses)) {
                Some(Self::These(bytes)) => bytes,
                _ => Vec::new(),
            },
        }
    }
}

/// Types of DNS records.
const RECORDS: [(&str, u16); 16] = [
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("PTR", 12),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("SRV", 33),
    ("NAPTR", 35),
    ("DS", 43),
    ("DNSKEY", 48),
    ("SVCB", 64),
    ("HTTPS", 65),
    ("AXFR", 252),
    ("ANY", 255),
];

/// The number of a type of DNS records, by name or as `TYPE65`.
pub(super) fn record(name: &str) -> Option<u16> {
    let upper = name.to_ascii_uppercase();
    let named = RECORDS.iter().find(|(known, _)| *known == upper).map(|(_, number)| *number);
    named.or_else(|| number(upper.strip_prefix("TYPE")?))
}

/// A query with the question `NAME TYPE`, of class IN.
fn query(text: &str) -> Option<Vec<u8>> {
    let (name, record_name) = text.split_once(' ')?;
    message(0, 0x0100, name, record(record_name)?)
}

/// The length of a query with this question alone.
pub(super) fn query_len(name: &str, record_name: &str) -> Option<usize> {
    Some(message(0, 0, name, record(record_name)?)?.len())
}

/// A DNS message with one question and nothing else.
///
/// Source: RFC 1035 section 4.1.
pub(super) fn message(id: u16, flags: u16, name: &str, record: u16) -> Option<Vec<u8>> {
    let words = [id, flags, 1, 0, 0, 0];
    let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let labels = name.strip_suffix('.').unwrap_or(name);
    // The root has none.
    for label in labels.split('.').filter(|_| name != ".") {
        let len = u8::try_from(label.len()).ok().filter(|len| (1..64).contains(len))?;
        out.push(len);
        out.extend(label.bytes());
    }
    out.push(0);
    out.extend(record.to_be_bytes());
    out.extend([0, 1]);
    (out.len() <= 12 + 255 + 4 && name.is_ascii()).then_some(out)
}

/// Names of SCTP chunks, their types, flags, and lengths.
const CHUNKS: [(&str, u8, u8, u16); 13] = [
    ("data", 0, 3, 20),
    ("init", 1, 0, 20),
    ("init-ack", 2, 0, 20),
    ("sack", 3, 0, 16),
    ("heartbeat", 4, 0, 8),
    ("heartbeat-ack", 5, 0, 8),
    ("abort", 6, 0, 4),
    ("shutdown", 7, 0, 8),
    ("shutdown-ack", 8, 0, 4),
    ("error", 9, 0, 8),
    ("cookie-echo", 10, 0, 8),
    ("cookie-ack", 11, 0, 4),
    ("shutdown-complete", 14, 0, 4),
];

/// Chunks by name, each as short as it can be.
fn chunks(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for name in text.split(',') {
        let lower = name.to_ascii_lowercase().replace('_', "-");
        let (_, kind, flags, len) = CHUNKS.iter().find(|(known, ..)| *known == lower)?;
        let start = out.len();
        out.extend([*kind, *flags]);
        out.extend(len.to_be_bytes());
        out.resize(start + usize::from(*len), 0);
        // The tag that all later packets have.
        if matches!(kind, 1 | 2) {
            out[start + 7] = 1;
        }
    }
    Some(out).filter(|out| out.len() < 1000)
}

fn dccp_type(text: &str) -> Option<u8> {
    let place = dccp::TYPE_NAMES.iter().position(|name| name.eq_ignore_ascii_case(text))?;
    u8::try_from(place).ok()
}
