//! [`look`]: searches a segment of a control connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::text::Form;
use crate::key::Direction;
use crate::tcp::before;

/// Places after line ends that are remembered for each direction.
const REMEMBERED: usize = 2;

/// Where lines of a control connection begin: sequence numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KnownStarts {
    known: [[Option<u32>; REMEMBERED]; 2],
    /// Any place may be one.
    anywhere: bool,
}

impl KnownStarts {
    fn of(&mut self, direction: Direction) -> &mut [Option<u32>; REMEMBERED] {
        let [original, reply] = &mut self.known;
        if direction == Direction::Original { original } else { reply }
    }

    fn is_start(&mut self, direction: Direction, sequence: u32) -> bool {
        self.anywhere || self.of(direction).contains(&Some(sequence))
    }

    /// From now on any place may be one.
    pub(crate) fn lose_track(&mut self) {
        self.anywhere = true;
    }

    /// Remembers one, in place of the older of two.
    fn add(&mut self, direction: Direction, sequence: u32) {
        let starts = self.of(direction);
        if starts.contains(&Some(sequence)) {
            return;
        }
        let [first, second] = starts;
        match (*first, *second) {
            (None, _) => *first = Some(sequence),
            (Some(_), None) => *second = Some(sequence),
            (Some(a), Some(b)) if before(a, b) => {
                if before(a, sequence) {
                    *first = Some(sequence);
                }
            }
            (Some(_), Some(b)) => {
                if before(b, sequence) {
                    *second = Some(sequence);
                }
            }
        }
    }
}

/// What the helper makes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// A data connection.
    Data(Data),
    /// A command that is cut: the kernel drops the packet, to have it sent again whole.
    Partial,
}

/// Where a data connection goes to, and where in the payload that is stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    pub(crate) form: Form,
    /// Offset of the numbers in the payload.
    pub(crate) start: usize,
    /// How many characters they are, the delimiters of the extended forms included.
    pub(crate) len: usize,
}

/// Looks into the payload of a segment.
pub(crate) fn look(
    starts: &mut KnownStarts,
    direction: Direction,
    sequence: u32,
    payload: &[u8],
    speaker: IpAddr,
) -> Found {
    let Some(last) = payload.last() else { return Found::Nothing };
    let found = if starts.is_start(direction, sequence) {
        search(direction, payload, speaker)
    } else {
        Found::Nothing
    };
    if *last == b'\n' && found != Found::Partial {
        starts.add(direction, sequence.wrapping_add(payload.len() as u32));
    }
    found
}

/// Whether a payload, wherever its line begins, announces a data connection to the speaker, or is cut.
pub(crate) fn may_expect(direction: Direction, payload: &[u8], speaker: IpAddr) -> bool {
    match search(direction, payload, speaker) {
        Found::Nothing => false,
        Found::Data(data) => data.address == speaker,
        Found::Partial => !payload.is_empty(),
    }
}

/// An address and a port, where the text holds them.
type Ends = Option<Named>;

/// What a text names, and where in it.
struct Named {
    address: IpAddr,
    port: u16,
    start: usize,
    len: usize,
}

/// How one command or answer is written.
struct Pattern {
    word: &'static [u8],
    /// The numbers begin after this character; `None`: at the first digit.
    begin: Option<u8>,
    numbers: fn(&[u8], speaker: IpAddr) -> Ends,
    form: Form,
}

const COMMANDS: [Pattern; 2] = [
    Pattern { word: b"PORT", begin: Some(b' '), numbers: port, form: Form::Six },
    Pattern { word: b"EPRT", begin: Some(b' '), numbers: extended_port, form: Form::Extended },
];

const ANSWERS: [Pattern; 2] = [
    Pattern { word: b"227 ", begin: None, numbers: passive, form: Form::Six },
    Pattern { word: b"229 ", begin: Some(b'('), numbers: extended_passive, form: Form::PortOnly },
];

fn search(direction: Direction, payload: &[u8], speaker: IpAddr) -> Found {
    let patterns = if direction == Direction::Original { &COMMANDS } else { &ANSWERS };
    let found = patterns.iter().map(|pattern| pattern.find(payload, speaker));
    found.into_iter().find(|found| *found != Found::Nothing).unwrap_or(Found::Nothing)
}

impl Pattern {
    fn find(&self, payload: &[u8], speaker: IpAddr) -> Found {
        let len = self.word.len().min(payload.len());
        let same = payload.iter().zip(self.word).all(|(a, b)| a.eq_ignore_ascii_case(b));
        if !same {
            return Found::Nothing;
        }
        if payload.len() <= self.word.len() {
            return Found::Partial;
        }
        let rest = payload.get(len..).unwrap_or_default();
        let begin = match self.begin {
            Some(begin) => rest.iter().position(|byte| *byte == begin).map(|at| at + 1),
            None => Some(0),
        };
        let numbers = begin.and_then(|begin| Some((begin, rest.get(begin..)?)));
        let named = numbers.and_then(|(begin, text)| Some((begin, (self.numbers)(text, speaker)?)));
        let Some((begin, Named { address, port, start, len })) = named else {
            return Found::Partial;
        };
        let start = self.word.len() + begin + start;
        Found::Data(Data { address, port, form: self.form, start, len })
    }
}

/// `N` decimal numbers between separators, and what stands after them.
fn decimals<const N: usize>(text: &[u8], separator: u8) -> Option<([u32; N], &[u8])> {
    let mut numbers = [0u32; N];
    let mut index = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                let number = numbers.get_mut(index)?;
                *number = number.wrapping_mul(10).wrapping_add(u32::from(byte - b'0'));
            }
            _ if *byte == separator && index + 1 < N => index += 1,
            _ if index + 1 == N && *byte != separator => {
                // Without a digit before it there are no numbers at all.
                return (at > 0).then(|| (numbers, text.get(at..).unwrap_or_default()));
            }
            _ => return None,
        }
    }
    None
}

fn v4([a, b, c, d]: [u32; 4]) -> Ipv4Addr {
    Ipv4Addr::from(a << 24 | b << 16 | c << 8 | d)
}

fn six(text: &[u8], end: Option<u8>, speaker: IpAddr) -> Ends {
    let ([a, b, c, d, high, low], rest) = decimals::<6>(text, b',')?;
    if end.is_some_and(|end| rest.first() != Some(&end)) {
        return None;
    }
    let address = over(speaker, v4([a, b, c, d]));
    let len = text.len() - rest.len();
    Some(Named { address, port: (high << 8 | low) as u16, start: 0, len })
}

/// Puts the four numbers in place of the first four bytes of an IPv6 speaker's address.
fn over(speaker: IpAddr, numbers: Ipv4Addr) -> IpAddr {
    let IpAddr::V6(speaker) = speaker else { return numbers.into() };
    let rest = speaker.to_bits() & u128::MAX >> 32;
    Ipv6Addr::from_bits(u128::from(numbers.to_bits()) << 96 | rest).into()
}

/// `192,168,1,1,5,6`, ended by the line.
fn port(text: &[u8], speaker: IpAddr) -> Ends {
    six(text, Some(b'\r'), speaker)
}

/// `192,168,1,1,5,6`, anywhere in the answer.
fn passive(text: &[u8], speaker: IpAddr) -> Ends {
    let digit = text.iter().position(u8::is_ascii_digit)?;
    Some(Named { start: digit, ..six(text.get(digit..)?, None, speaker)? })
}

fn delimiter(text: &[u8]) -> Option<u8> {
    let delimiter = *text.first()?;
    (matches!(delimiter, 33..=126) && !delimiter.is_ascii_digit()).then_some(delimiter)
}

/// `|1|132.235.1.2|6275|` or `|2|3ffe::1|6275|`, of the speaker's family.
fn extended_port(text: &[u8], speaker: IpAddr) -> Ends {
    let delimiter = delimiter(text)?;
    let family = if speaker.is_ipv4() { b'1' } else { b'2' };
    let [_, first, second, ..] = text else { return None };
    if *first != family || *second != delimiter {
        return None;
    }
    let rest = text.get(3..)?;
    if speaker.is_ipv4() {
        let (numbers, rest) = decimals::<4>(rest, b'.')?;
        let number = rest.strip_prefix(&[delimiter])?;
        let (port, rest) = port_number(number, delimiter)?;
        return Some(Named {
            address: v4(numbers).into(),
            port,
            start: 0,
            len: text.len() - rest.len(),
        });
    }
    let end = rest.iter().position(|byte| *byte == delimiter)?;
    let address: Ipv6Addr = std::str::from_utf8(rest.get(..end)?).ok()?.parse().ok()?;
    let (port, rest) = port_number(rest.get(end + 1..)?, delimiter)?;
    Some(Named { address: address.into(), port, start: 0, len: text.len() - rest.len() })
}

/// `|||6446|`: the port alone, at the speaker's address.
fn extended_passive(text: &[u8], speaker: IpAddr) -> Ends {
    let delimiter = delimiter(text)?;
    let number = text.strip_prefix(&[delimiter; 3])?;
    let (port, rest) = port_number(number, delimiter)?;
    Some(Named { address: speaker, port, start: 0, len: text.len() - rest.len() })
}

/// A port other than 0, up to the delimiter, and what stands after that.
fn port_number(text: &[u8], delimiter: u8) -> Option<(u16, &[u8])> {
    let mut number = 0u16;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                number = number.wrapping_mul(10).wrapping_add(u16::from(byte - b'0'));
            }
            _ if *byte == delimiter && number != 0 => {
                return Some((number, text.get(at + 1..).unwrap_or_default()));
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    /// What is found in a line whose beginning is known.
    fn line(direction: Direction, text: &str, speaker: IpAddr) -> Found {
        let mut starts = KnownStarts::default();
        starts.add(direction, 100);
        look(&mut starts, direction, 100, text.as_bytes(), speaker)
    }

    /// The line announces a connection to the speaker at port 1286, by these characters of it.
    fn named(direction: Direction, text: &str, speaker: IpAddr, (form, numbers): (Form, &str)) {
        let Found::Data(data) = line(direction, text, speaker) else { panic!("{text}") };
        assert_eq!((data.address, data.port, data.form), (speaker, 5 << 8 | 6, form), "{text}");
        assert_eq!(&text[data.start..data.start + data.len], numbers);
    }

    fn v6(text: &str) -> IpAddr {
        IpAddr::V6(text.parse().unwrap())
    }

    #[test]
    fn the_four_forms() {
        use Direction::{Original, Reply};
        let numbers = "10,0,0,1,5,6";
        named(Original, "PORT 10,0,0,1,5,6\r\n", CLIENT, (Form::Six, numbers));
        named(Original, "port 10,0,0,1,5,6\r\n", CLIENT, (Form::Six, numbers));
        let passive = "227 Entering Passive Mode (10,0,0,1,5,6).\r\n";
        named(Reply, passive, CLIENT, (Form::Six, numbers));
        named(Reply, "227 ok 10,0,0,1,5,6\r\n", CLIENT, (Form::Six, numbers));
        named(
            Original,
            "EPRT |1|10.0.0.1|1286|\r\n",
            CLIENT,
            (Form::Extended, "|1|10.0.0.1|1286|"),
        );
        named(Reply, "229 Extended (|||1286|)\r\n", CLIENT, (Form::PortOnly, "|||1286|"));
        let text = "EPRT !2!2001:db8::1!1286!\r\n";
        named(Original, text, v6("2001:db8::1"), (Form::Extended, "!2!2001:db8::1!1286!"));
        named(
            Original,
            "PORT 32,1,13,184,5,6\r\n",
            v6("2001:db8::1"),
            (Form::Six, "32,1,13,184,5,6"),
        );
    }

    #[test]
    fn other_lines_say_nothing_and_cut_ones_are_partial() {
        use Direction::{Original, Reply};
        for text in ["USER x\r\n", "227 Entering (10,0,0,1,5,6)\r\n", "\r\n"] {
            assert_eq!(line(Original, text, CLIENT), Found::Nothing, "{text}");
        }
        for text in ["PORT 10,0,0,1,5", "PO", "PORT", "EPRT |2|10.0.0.1|99|\r\n", "PORT x\r\n"] {
            assert_eq!(line(Original, text, CLIENT), Found::Partial, "{text}");
        }
        for text in ["229 (|||0|)\r\n", "229 no port\r\n", "227 none\r\n"] {
            assert_eq!(line(Reply, text, CLIENT), Found::Partial, "{text}");
        }
    }

    #[test]
    fn only_known_line_starts_are_read() {
        let mut starts = KnownStarts::default();
        let command = b"PORT 10,0,0,1,5,6\r\n";
        let mut look = |at, text: &[u8]| look(&mut starts, Direction::Original, at, text, CLIENT);
        assert_eq!(look(1, command), Found::Nothing, "nothing is known of the first line");
        assert!(matches!(look(20, command), Found::Data(..)));
        assert_eq!(look(40, command), Found::Nothing, "a gap");
        assert_eq!(look(39, b"USER x\r\n"), Found::Nothing);
        assert!(matches!(look(47, command), Found::Data(..)));
    }
}
