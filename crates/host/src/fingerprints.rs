//! [`Fingerprints`]: what the SYN of each operating system looks like, as listed in `pf.os` and loaded into the kernel
//! by `nfnl_osf -f`, for `-m osf`.
//!
//! A line is `window:ttl:df:size:options:genre:version:subtype:details`. Of options their order counts and no values; a
//! letter that nfnl_osf does not know stands for none.
//! Source: iptables `utils/nfnl_osf.c`, `utils/pf.os`; kernel `net/netfilter/nfnetlink_osf.c`.

use crate::text::{TextError, Word};

/// Longest name of a genre that is kept.
const MAX_GENRE: usize = 31;
/// Most bytes of options that a fingerprint may have.
const MAX_OPTIONS: usize = 40;
/// Fields of a line.
const FIELDS: usize = 9;

/// Which windows a SYN has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Any.
    Any,
    /// This one.
    Is(u32),
    /// As many times the segment size.
    Segments(u32),
    /// As many times the MTU.
    Units(u32),
    /// Multiples of this; of 0 nothing is known.
    Multiple(u32),
}

/// One fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// The operating system.
    pub genre: Box<str>,
    /// The window of its SYN.
    pub window: Window,
    /// The initial time to live.
    pub ttl: u8,
    /// Whether the bit that forbids fragments is set.
    pub df: bool,
    /// The total length.
    pub len: u16,
    /// The kinds of its options, each with its length.
    pub options: Box<[(u8, u8)]>,
}

/// All that a kernel was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprints(Vec<Fingerprint>);

impl Fingerprints {
    /// Reads `pf.os`.
    ///
    /// # Errors
    /// A line that has another number of fields, where nfnl_osf stops; with the place.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let lines = (1..).zip(text.lines());
        let read = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        read.map(|(number, line)| Fingerprint::read(number, line))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Each of them.
    pub fn all(&self) -> impl Iterator<Item = &Fingerprint> {
        self.0.iter()
    }
}

impl Fingerprint {
    fn read(line: u32, text: &str) -> Result<Self, TextError> {
        let fields: Vec<&str> = text.split(':').map(str::trim_start).collect();
        let &[window, ttl, df, len, options, genre, ..] = &fields[..] else {
            return Err(wrong(line, text));
        };
        if fields.len() != FIELDS {
            return Err(wrong(line, text));
        }
        let genre = genre.strip_prefix(['@', '*']).unwrap_or(genre);
        let cut = (0..=MAX_GENRE.min(genre.len())).rev().find(|at| genre.is_char_boundary(*at));
        Ok(Self {
            genre: genre[..cut.unwrap_or(0)].into(),
            window: window_of(window),
            ttl: number(ttl) as u8,
            df: number(df) as u8 != 0,
            len: number(len) as u16,
            options: options.split(',').filter_map(option_of).take(MAX_OPTIONS).collect(),
        })
    }
}

fn wrong(line: u32, text: &str) -> TextError {
    Word { line, column: 1, text }.not("nine fields between colons, as pf.os has them")
}

/// `strtoul`: the digits that it begins with.
fn number(text: &str) -> u64 {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold(0, |sum: u64, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

fn window_of(text: &str) -> Window {
    let factor = |rest: &str| number(rest.strip_prefix('%').unwrap_or(rest)) as u32;
    match text.split_at_checked(1) {
        Some(("S", rest)) => Window::Segments(factor(rest)),
        Some(("T", rest)) => Window::Units(factor(rest)),
        Some(("%", rest)) => Window::Multiple(number(rest) as u32),
        _ => match number(text) as u32 {
            0 => Window::Any,
            size => Window::Is(size),
        },
    }
}

fn option_of(text: &str) -> Option<(u8, u8)> {
    Some(match text.bytes().next()? {
        b'E' => (0, 1),
        b'N' => (1, 1),
        b'M' => (2, 4),
        b'W' => (3, 3),
        b'S' => (4, 2),
        b'T' => (8, 10),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_nfnl_osf_reads_it() {
        let text = "# comment\n\nS4:64:1:60:M*,S,T,N,W0:Linux:2.4::Linux 2.4 (Google crawlbot)\n\
            %8192:128:0:48:M536,N,N,S:@Windows:98: no sack:Windows 98\n\
            65535:64:1:64:M*,N,W1,N,N,T0,S,E:*FreeBSD:7.0::x\nT2:255:1:44:.:Mac::: \n*:1:0:40:?4,N:A:::";
        let read = Fingerprints::parse(text).unwrap();
        let [linux, windows, bsd, mac, any] = &read.0[..] else { panic!("{read:?}") };
        assert_eq!((&*linux.genre, linux.window), ("Linux", Window::Segments(4)));
        assert_eq!((linux.ttl, linux.df, linux.len), (64, true, 60));
        assert_eq!(*linux.options, [(2, 4), (4, 2), (8, 10), (1, 1), (3, 3)]);
        assert_eq!((&*windows.genre, windows.window), ("Windows", Window::Multiple(8192)));
        assert_eq!((&*bsd.genre, bsd.window), ("FreeBSD", Window::Is(65535)));
        assert_eq!(bsd.options.last(), Some(&(0, 1)));
        assert_eq!((mac.window, &*mac.options), (Window::Units(2), &[][..]));
        assert_eq!((any.window, &*any.options), (Window::Any, &[(1, 1)][..]));
    }

    #[test]
    fn other_lines_are_refused_with_their_place() {
        let error = Fingerprints::parse("# x\nS4:64:1:60:M*:Linux\n").unwrap_err();
        assert!(error.to_string().starts_with("2:1: expected nine fields"), "{error}");
    }
}
