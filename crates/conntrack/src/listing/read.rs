//! Reads a listing, line by line; an error has the place ([`ListingError`]).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use packet::{icmpv4, icmpv6};

use super::kept::Kept;
use super::listed::{HEADING, Listed, Listing, State};
use crate::helper::Helper;
use crate::key::{Direction, Tuple, Zone};
use crate::sctp::State as SctpState;
use crate::second::SECOND;
use crate::tcp::State as TcpState;

/// A line that is no flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingError {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What was expected there.
    pub expected: &'static str,
    /// What does; empty at the end of the line.
    pub found: String,
}

/// `LINE:COLUMN: expected …, found …`.
impl fmt::Display for ListingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected {}, found ", self.line, self.column, self.expected)?;
        if self.found.is_empty() {
            f.write_str("the end of the line")
        } else {
            write!(f, "\"{}\"", self.found)
        }
    }
}

impl std::error::Error for ListingError {}

impl Listing {
    /// Reads a listing.
    ///
    /// # Errors
    /// A line is no flow.
    pub fn parse(text: &str) -> Result<Self, ListingError> {
        let mut flows = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let is_summary = line.starts_with("conntrack v");
            if !line.trim().is_empty() && !is_summary {
                flows.push(LineWords::new(number, line).flow(None)?);
            }
        }
        Ok(Self { flows, ..Self::default() })
    }

    /// Reads a listing that tamis wrote, and the lines of it that are no flows, which are left out.
    ///
    /// # Errors
    /// The text does not begin with the heading.
    pub fn parse_kept(text: &str) -> Result<(Self, Vec<ListingError>), ListingError> {
        let heading = text.lines().next().unwrap_or_default();
        let at = heading.strip_prefix(HEADING).and_then(nanoseconds).ok_or_else(|| {
            LineWords::new(1, heading).expected("# tamis connections/1 at=SECONDS")
        })?;
        let (mut flows, mut refused) = (Vec::new(), Vec::new());
        for (number, line) in (2..).zip(text.lines().skip(1)) {
            if line.trim().is_empty() {
                continue;
            }
            match LineWords::new(number, line).flow(Some(Kept::default())) {
                Ok(flow) => flows.push(flow),
                Err(error) => refused.push(error),
            }
        }
        Ok((Self::of_flows(flows, at), refused))
    }

    /// Says when the kernel printed it, in seconds since the Unix epoch, if that is a time: packets that came before had
    /// other flows before them.
    #[must_use]
    pub fn printed_at(self, seconds: &str) -> Self {
        Self { printed: nanoseconds(seconds), ..self }
    }
}

/// A time of seconds, with a fraction of nine digits at most.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction = format!("{fraction:0<9}").parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(SECOND)?.checked_add(fraction)
}

/// The words of a line.
struct LineWords<'t> {
    line: &'t str,
    number: u32,
    at: usize,
}

/// One direction of a flow.
struct Side {
    source: IpAddr,
    destination: IpAddr,
    parts: [u16; 2],
}

const ASSIGNMENT: &str = "NAME=VALUE or [FLAG]";

impl<'t> LineWords<'t> {
    fn new(number: u32, line: &'t str) -> Self {
        Self { line, number, at: 0 }
    }

    /// The next word, and where it begins.
    fn peek(&self) -> (usize, &'t str) {
        let rest = self.line.get(self.at..).unwrap_or_default();
        let start = self.at + rest.len() - rest.trim_start().len();
        let word = rest.split_whitespace().next().unwrap_or_default();
        (start, word)
    }

    fn next(&mut self) -> &'t str {
        let (start, word) = self.peek();
        self.at = start + word.len();
        word
    }

    /// An error about the word that comes.
    fn expected(&self, expected: &'static str) -> ListingError {
        let (start, word) = self.peek();
        ListingError {
            line: self.number,
            column: start as u32 + 1,
            expected,
            found: word.to_owned(),
        }
    }

    fn number<T: FromStr>(&mut self, expected: &'static str) -> Result<T, ListingError> {
        let number = self.peek().1.parse().map_err(|_| self.expected(expected))?;
        self.next();
        Ok(number)
    }

    /// The value of `NAME=`.
    fn value<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ListingError> {
        let value = self.peek().1.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
        let value = value.and_then(read).ok_or_else(|| self.expected(expected))?;
        self.next();
        Ok(value)
    }

    /// The flow; with what tamis writes of it, if there is room for that.
    fn flow(&mut self, kept: Option<Kept>) -> Result<Listed, ListingError> {
        if matches!(self.peek().1, "ipv4" | "ipv6") {
            self.next();
            self.number::<u8>("the number of the address family")?;
        }
        if self.peek().1.contains('=') {
            return Err(self.expected("the name of a protocol"));
        }
        self.next();
        let protocol = self.number::<u8>("the number of a protocol")?;
        // What hardware carries has no timeout.
        let left = match self.peek().1 {
            word if word.starts_with(|c: char| c.is_ascii_digit()) => {
                self.number("seconds that the connection has left")?
            }
            _ => u64::from(u32::MAX),
        };
        let state = self.state(protocol)?;
        while self.peek().1.contains("timeout=") {
            self.next();
        }
        let first = self.side(protocol)?;
        let mut rest = Rest { kept, ..Rest::default() };
        self.assignments(Direction::Original, &mut rest)?;
        let second = self.side(protocol)?;
        self.assignments(Direction::Reply, &mut rest)?;
        if let (_, [_, ..]) = (self.at, self.peek().1.as_bytes()) {
            return Err(self.expected("the end of the line"));
        }
        let tuple = |side: Side| Tuple::new(side.source, side.destination, protocol, side.parts);
        let [original, reply] = rest.zones;
        Ok(Listed {
            original: tuple(first).in_zone(original),
            reply: tuple(second).in_zone(reply),
            left,
            state,
            replied: !rest.unreplied,
            assured: rest.assured,
            mark: rest.mark,
            helper: rest.helper,
            kept: rest.kept,
        })
    }

    fn state(&mut self, protocol: u8) -> Result<State, ListingError> {
        let word = self.peek().1;
        let state = match protocol {
            packet::tcp::PROTOCOL => TcpState::named(word).map(State::Tcp),
            packet::sctp::PROTOCOL => SctpState::named(word).map(State::Sctp),
            _ => {
                // Other protocols may have one, which is nothing here.
                if !word.contains('=') && !word.starts_with('[') {
                    self.next();
                }
                return Ok(State::Plain);
            }
        };
        // One that hardware carries has none.
        if state.is_none() && word.starts_with("src=") {
            return Ok(State::Plain);
        }
        let state = state.ok_or_else(|| self.expected("the state of the connection"))?;
        self.next();
        Ok(state)
    }

    fn side(&mut self, protocol: u8) -> Result<Side, ListingError> {
        let address = |text: &str| text.parse().ok();
        let source = self.value("src", "src=ADDRESS", address)?;
        let destination = self.value("dst", "dst=ADDRESS", address)?;
        if IpAddr::is_ipv6(&source) != IpAddr::is_ipv6(&destination) {
            return Err(self.expected("addresses of one family before this"));
        }
        let port = |text: &str| text.parse::<u16>().ok();
        let byte = |text: &str| text.parse::<u8>().ok();
        let parts = match protocol {
            icmpv4::PROTOCOL | icmpv6::PROTOCOL => {
                let kind = self.value("type", "type=NUMBER", byte)?;
                let code = self.value("code", "code=NUMBER", byte)?;
                let id = self.value("id", "id=NUMBER", port)?;
                [id, u16::from_be_bytes([kind, code])]
            }
            packet::gre::PROTOCOL if self.peek().1.starts_with("srckey=") => {
                let key = |text: &str| u16::from_str_radix(text.trim_start_matches("0x"), 16).ok();
                let source = self.value("srckey", "srckey=0xKEY", key)?;
                [source, self.value("dstkey", "dstkey=0xKEY", key)?]
            }
            _ if self.peek().1.starts_with("sport=") => {
                let source = self.value("sport", "sport=PORT", port)?;
                [source, self.value("dport", "dport=PORT", port)?]
            }
            packet::tcp::PROTOCOL | packet::udp::PROTOCOL => {
                return Err(self.expected("sport=PORT"));
            }
            _ => [0, 0],
        };
        Ok(Side { source, destination, parts })
    }

    /// What stands after a direction, up to the next one.
    fn assignments(&mut self, direction: Direction, rest: &mut Rest) -> Result<(), ListingError> {
        loop {
            let word = self.peek().1;
            match word.split_once('=') {
                _ if word.is_empty() => return Ok(()),
                Some(("src", _)) => return Ok(()),
                Some(("mark", text)) => {
                    rest.mark = text.parse().map_err(|_| self.expected("mark=NUMBER"))?;
                }
                Some((name @ ("zone" | "zone-orig" | "zone-reply"), text)) => {
                    let id = text.parse().map_err(|_| self.expected("zone=NUMBER"))?;
                    let (original, reply) = (name != "zone-reply", name != "zone-orig");
                    let zone = Zone { id, original, reply };
                    rest.add(zone);
                }
                Some(("helper", name)) => rest.helper = Helper::named(name),
                Some((name, text)) => {
                    if let Some(kept) = &mut rest.kept {
                        kept.take(direction, name, text).map_err(|what| self.expected(what))?;
                    }
                }
                None => match word {
                    "[UNREPLIED]" => rest.unreplied = true,
                    "[ASSURED]" => rest.assured = true,
                    _ if word.starts_with('[') => {}
                    _ => return Err(self.expected(ASSIGNMENT)),
                },
            }
            self.next();
        }
    }
}

/// What a line says apart from states and directions.
#[derive(Default)]
struct Rest {
    unreplied: bool,
    assured: bool,
    mark: u32,
    /// Zones of the original direction, and of replies.
    zones: [u16; 2],
    helper: Helper,
    kept: Option<Kept>,
}

impl Rest {
    fn add(&mut self, zone: Zone) {
        let [original, reply] = &mut self.zones;
        if zone.original {
            *original = zone.id;
        }
        if zone.reply {
            *reply = zone.id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Listed {
        let mut listing = Listing::parse(line).unwrap();
        assert_eq!(listing.len(), 1, "{line}");
        listing.flows.remove(0)
    }

    const TCP: &str = "tcp      6 431999 ESTABLISHED src=10.0.0.1 dst=192.0.2.1 sport=40000 dport=80 \
        packets=5 bytes=270 src=10.0.0.9 dst=10.0.0.1 sport=8080 dport=40000 packets=3 bytes=164 [ASSURED] mark=7 use=1";

    #[test]
    fn the_three_ways_to_print_a_flow_are_one() {
        let flow = one(TCP);
        assert_eq!(flow.original.to_string(), "10.0.0.1:40000 > 192.0.2.1:80 proto 6");
        assert_eq!(flow.reply.to_string(), "10.0.0.9:8080 > 10.0.0.1:40000 proto 6");
        assert_eq!((flow.left, flow.state), (431_999, State::Tcp(TcpState::Established)));
        assert!(flow.replied && flow.assured);
        assert_eq!((flow.mark, flow.helper), (7, Helper::None));
        assert_eq!(one(&format!("ipv4     2 {TCP}")), flow);
        assert_eq!(one(&format!("ipv4     2 {}", TCP.replace("use=1", "zone=0 use=2"))), flow);
    }

    #[test]
    fn every_protocol_has_its_words() {
        let icmp = one("icmp 1 29 src=127.0.0.1 dst=127.0.0.2 type=8 code=0 id=4347 [UNREPLIED] \
            src=127.0.0.2 dst=127.0.0.1 type=0 code=0 id=4347 mark=0 use=1");
        assert_eq!((icmp.original.inverse(), icmp.replied), (Some(icmp.reply), false));
        let six =
            one("ipv6 10 udp 17 29 src=2001:db8::1 dst=2001:db8::2 sport=1 dport=2 [UNREPLIED] \
            src=2001:db8::2 dst=2001:db8::1 sport=2 dport=1 mark=0 zone=5 use=1 helper=sip");
        assert_eq!((six.original.zone(), six.reply.zone(), six.helper), (5, 5, Helper::Sip));
        let gre = one(
            "ipv4 2 gre 47 29 timeout=30, stream_timeout=180 src=10.0.0.1 dst=10.0.0.2 srckey=0x0 \
            dstkey=0x1f src=10.0.0.2 dst=10.0.0.1 srckey=0x1f dstkey=0x0 mark=0 use=2",
        );
        assert_eq!(gre.original.destination_part(), 31);
        let zoned =
            one("unknown 99 599 src=10.0.0.1 dst=10.0.0.2 zone-orig=6 [UNREPLIED] src=10.0.0.2 \
            dst=10.0.0.1 mark=0 use=1");
        assert_eq!((zoned.original.zone(), zoned.reply.zone()), (6, 0));
        let sctp =
            one("sctp 132 9 COOKIE_WAIT src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2 [UNREPLIED] \
            src=10.0.0.2 dst=10.0.0.1 sport=2 dport=1 mark=0 use=1");
        assert_eq!(sctp.state, State::Sctp(SctpState::CookieWait));
        let carried =
            one("tcp 6 src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2 src=10.0.0.2 dst=10.0.0.1 \
            sport=2 dport=1 [OFFLOAD] mark=0 use=3");
        assert_eq!((carried.state, carried.left), (State::Plain, u64::from(u32::MAX)));
    }

    #[test]
    fn the_summary_and_blank_lines_are_passed_over() {
        let text = format!(
            "{TCP}\n\nconntrack v1.4.7 (conntrack-tools): 1 flow entries have been shown.\n"
        );
        assert_eq!(Listing::parse(&text).unwrap().len(), 1);
        assert!(Listing::parse("").unwrap().is_empty());
    }

    #[test]
    fn errors_say_where_and_what() {
        for (line, expected) in [
            ("tcp six", "1:5: expected the number of a protocol, found \"six\""),
            ("tcp 6 9 OPEN", "1:9: expected the state of the connection, found \"OPEN\""),
            ("\nudp 17 9 src=1.2.3", "2:10: expected src=ADDRESS, found \"src=1.2.3\""),
            (
                "udp 17 9 src=1.2.3.4 dst=1.2.3.5",
                "1:33: expected sport=PORT, found the end of the line",
            ),
            (
                "udp 17 9 src=1.2.3.4 dst=1.2.3.5 sport=1 dport=2 what",
                "1:50: expected NAME=VALUE or [FLAG], found \"what\"",
            ),
        ] {
            assert_eq!(Listing::parse(line).unwrap_err().to_string(), expected, "{line}");
        }
    }

    #[test]
    fn no_cut_of_a_line_panics() {
        for end in 0..TCP.len() {
            let _ = Listing::parse(&TCP[..end]);
        }
    }
}
