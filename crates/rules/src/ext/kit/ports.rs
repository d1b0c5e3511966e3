//! Port range tests, as the tcp, udp and kindred matches hold them.

use packet::{L4, Read};

use crate::error::What;
use crate::ext::{Args, Given, Opt, PortRanges, Printer};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;
use crate::value;

/// `--sport` as the protocol matches declare it.
pub(crate) const SPORT: Opt = Opt::value("sport").alias(&["source-port"]).invertible();
/// `--dport` as the protocol matches declare it.
pub(crate) const DPORT: Opt = Opt::value("dport").alias(&["destination-port"]).invertible();

/// An inclusive port range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortTest {
    low: u16,
    high: u16,
    invert: bool,
}

impl PortTest {
    /// Every port.
    pub(crate) const ANY: Self = Self { low: 0, high: u16::MAX, invert: false };

    /// The test of an option of this name, or every port.
    pub(crate) fn parse(args: &Args<'_>, name: &str) -> Result<Self, What> {
        args.get(name).map_or(Ok(Self::ANY), Self::from_given)
    }

    /// Parses the option for a match whose older tools took and saved ranges that run backwards, such as `60000:29`: no
    /// port passes those, or with `!` every port.
    pub(crate) fn parse_backwards(args: &Args<'_>, name: &str) -> Result<Self, What> {
        let Some(given) = args.get(name) else { return Ok(Self::ANY) };
        match value::port_ends(given.text()).filter(|_| !args.strict) {
            Some((low, high)) => Ok(Self { low, high, invert: given.invert }),
            None => Self::from_given(given),
        }
    }

    /// The test that an option gives.
    pub(crate) fn from_given(given: &Given<'_>) -> Result<Self, What> {
        let (low, high) = value::port_range(given.text())
            .ok_or_else(|| given.expected("a port 0-65535 or a range low:high"))?;
        Ok(Self { low, high, invert: given.invert })
    }

    /// The test of an option of this name, if given: some matches print it even when every port passes.
    pub(crate) fn parse_given(args: &Args<'_>, name: &str) -> Result<Option<Self>, What> {
        args.get(name).map(Self::from_given).transpose()
    }

    /// Prints the option unless it is every port.
    pub(crate) fn print(self, name: &str, to: &mut Printer) {
        if self != Self::ANY {
            self.print_always(name, to);
        }
    }

    /// Prints the option.
    pub(crate) fn print_always(self, name: &str, to: &mut Printer) {
        to.option(self.invert, name, range_text(self.low, self.high));
    }

    /// Whether it is the range of all ports, with `!` or without.
    pub(crate) fn is_every_port(self) -> bool {
        (self.low, self.high) == (Self::ANY.low, Self::ANY.high)
    }

    /// Whether it is `! PORT`, for one port other than 0.
    pub(crate) fn is_single_inverted(self) -> bool {
        self.invert && self.low == self.high && self.low != 0
    }

    /// Tests of source and destination port as data. The two implementations differ on the range of all ports with `!`,
    /// and on two single ports that are both inverted.
    pub(crate) fn predicate(source: Self, destination: Self) -> Option<Predicate> {
        let differs = |test: Self| test.invert && test.is_every_port();
        let both = source.is_single_inverted() && destination.is_single_inverted();
        if both || differs(source) || differs(destination) {
            return None;
        }
        let range = |test: Self, field| Predicate::range(field, (test.low, test.high), test.invert);
        Some(Predicate::All(vec![
            range(source, Field::SourcePort),
            range(destination, Field::DestinationPort),
        ]))
    }

    /// Whether a port passes.
    #[inline]
    pub(crate) fn accepts(self, port: u16) -> bool {
        (self.low <= port && port <= self.high) != self.invert
    }
}

impl PortRanges {
    /// Returns two tests as ranges; `None` for inverted or backward tests, which have to be evaluated.
    pub(crate) fn of(protocol: u8, source: PortTest, destination: PortTest) -> Option<Self> {
        let range = |test: PortTest| {
            (!test.invert && test.low <= test.high).then_some((test.low, test.high))
        };
        Some(Self { protocol, source: range(source)?, destination: range(destination)? })
    }
}

/// `low`, or `low:high`.
pub(crate) fn range_text(low: u16, high: u16) -> String {
    if low == high { low.to_string() } else { format!("{low}:{high}") }
}

/// The first `N` bytes of the upper-layer header, or the outcome that their lack decides: fragments do
/// not match, a header that the packet does not hold in full is a hot drop.
#[inline]
pub(crate) fn upper_header<const N: usize>(
    transit: &Transit<'_, '_>,
) -> Result<(usize, [u8; N]), Outcome> {
    match transit.upper_layer() {
        L4::Upper(upper) => match transit.packet.read(upper.offset) {
            Read::Known(bytes) => Ok((upper.offset, bytes)),
            Read::Unknown => Err(Outcome::MAYBE),
            Read::Absent => Err(Outcome::HOT_DROP),
        },
        L4::Fragment { .. } | L4::Broken { .. } | L4::None => Err(Outcome::NO),
        L4::Unknown => Err(Outcome::MAYBE.or(Outcome::HOT_DROP)),
    }
}

/// The first `N` bytes of an upper-layer header of `full` bytes, and its offset in the frame. Bytes after
/// the first `N` only have to be on the wire.
#[inline]
pub(crate) fn upper_start<const N: usize>(
    transit: &Transit<'_, '_>,
    full: usize,
) -> Result<(usize, [u8; N]), Outcome> {
    match transit.upper_layer() {
        L4::Upper(upper) => {
            header_start(transit, upper.offset, full).map(|bytes| (upper.offset, bytes))
        }
        L4::Fragment { .. } | L4::Broken { .. } | L4::None => Err(Outcome::NO),
        L4::Unknown => Err(Outcome::MAYBE.or(Outcome::HOT_DROP)),
    }
}

/// The first `N` bytes of a header of `full` bytes at an offset in the frame: a hot drop where the packet
/// ends inside the header.
#[inline]
pub(crate) fn header_start<const N: usize>(
    transit: &Transit<'_, '_>,
    offset: usize,
    full: usize,
) -> Result<[u8; N], Outcome> {
    if let Read::Known(header) = transit.packet.read_slice(offset, full)
        && let Some(start) = header.first_chunk()
    {
        return Ok(*start);
    }
    match (transit.packet.read_slice(offset, full), transit.packet.read(offset)) {
        (Read::Absent, _) | (_, Read::Absent) => Err(Outcome::HOT_DROP),
        (_, Read::Known(bytes)) => Ok(bytes),
        (_, Read::Unknown) => Err(Outcome::MAYBE),
    }
}

/// Source and destination port of the upper-layer header, or an outcome as [`upper_header`] gives it,
/// for a header of `N` bytes in all. When the ports are known but later bytes are not captured, the
/// ports still decide.
#[inline]
pub(crate) fn ports<const N: usize>(transit: &Transit<'_, '_>) -> Result<(u16, u16), Outcome> {
    let both = |b: [u8; 4]| (u16::from_be_bytes([b[0], b[1]]), u16::from_be_bytes([b[2], b[3]]));
    match upper_header::<N>(transit) {
        Ok((_, bytes)) => Ok(both([bytes[0], bytes[1], bytes[2], bytes[3]])),
        Err(Outcome::MAYBE) => match upper_header::<4>(transit) {
            Ok((_, bytes)) => Ok(both(bytes)),
            Err(outcome) => Err(outcome),
        },
        Err(outcome) => Err(outcome),
    }
}
