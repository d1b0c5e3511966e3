//! [`Text`]: what is searched for, and the search.

use std::ops::Range;

use memchr::memmem::Finder;
use packet::Read;

use super::capitals::Capitals;
use super::pattern::{self, fold};
use crate::error::What;
use crate::ext::kit::{number, words};
use crate::ext::{Args, Given};
use crate::outcome::Outcome;
use crate::transit::Transit;

pub(super) const MAX_OFFSET: u16 = u16::MAX;

#[derive(Debug)]
pub(super) struct Text {
    pub(super) pattern: Box<[u8]>,
    pub(super) needle: Needle,
    pub(super) invert: bool,
    pub(super) algorithm: &'static str,
    pub(super) from: u16,
    pub(super) to: u16,
}

#[derive(Debug)]
pub(super) enum Needle {
    Exact(Box<Finder<'static>>),
    AnyCase(Capitals),
}

fn parse_offset(given: &Given<'_>) -> Result<u16, What> {
    number::between(given, 0, MAX_OFFSET.into()).map(|offset| offset as u16)
}

impl Needle {
    /// Where it first begins in `bytes`.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Exact(finder) => finder.find(bytes),
            Self::AnyCase(capitals) => capitals.find(bytes),
        }
    }
}

impl Text {
    /// Reads the options of these names: the text, the same in hexadecimal, from where and to where it is looked for,
    /// how, and whether capitals are as good.
    pub(super) fn parse(args: &Args<'_>, names: [&'static str; 6]) -> Result<Self, What> {
        let [text, hex, from, to, algo, icase] = names;
        let given = args.get(text).map_or_else(|| args.required(hex), Ok)?;
        let pattern = match given.name == text {
            true => Ok(given.text().as_bytes().to_vec()),
            false => pattern::parse_hex(given.text()),
        };
        let pattern = pattern.and_then(pattern::checked).map_err(|what| given.expected(what))?;
        let offset = |name| args.get(name).map(parse_offset).transpose();
        let (first, last) = (offset(from)?.unwrap_or(0), offset(to)?.unwrap_or(MAX_OFFSET));
        if first > last {
            return Err(args.expected(format!("--{from} not beyond --{to}")));
        }
        let needle = match args.has(icase) {
            true => Needle::AnyCase(Capitals::of(&pattern)),
            false => Needle::Exact(Box::new(Finder::new(&pattern).into_owned())),
        };
        let algorithm = words::one_of(args.required(algo)?, &[("bm", "bm"), ("kmp", "kmp")])?;
        let pattern = pattern.into();
        Ok(Self { pattern, needle, invert: given.invert, algorithm, from: first, to: last })
    }

    /// Looks in a range of the frame some of whose bytes are unknown: a find counts if all its bytes
    /// are known. Where one is not, the next that may count begins after the unknown bytes in it.
    fn search_known(&self, transit: &Transit<'_, '_>, within: Range<usize>) -> Outcome {
        let (frame, len) = (transit.packet.frame(), self.pattern.len());
        let mut range = within.start..within.end.min(frame.len());
        while let Some(at) = frame.get(range.clone()).and_then(|bytes| self.needle.find(bytes)) {
            let start = range.start + at;
            match transit.packet.unknown_until(start..start + len) {
                None => return Outcome::YES,
                Some(end) => range.start = end.max(start + 1),
            }
        }
        let mut starts = within.start..=within.end.saturating_sub(len);
        match starts.any(|start| self.may_begin(transit, start)) {
            true => Outcome::MAYBE,
            false => Outcome::NO,
        }
    }

    /// Whether the text may begin there, where not all bytes are known.
    fn may_begin(&self, transit: &Transit<'_, '_>, start: usize) -> bool {
        let packet = &transit.packet;
        let same = |(at, byte): (usize, &u8)| match packet.read(start + at) {
            Read::Known([found]) => match self.needle {
                Needle::Exact(_) => found == *byte,
                Needle::AnyCase(_) => fold(found) == fold(*byte),
            },
            Read::Unknown => true,
            Read::Absent => false,
        };
        let end = start + self.pattern.len();
        packet.unknown_until(start..end).is_some() && self.pattern.iter().enumerate().all(same)
    }

    /// The kernel may step over a match.
    pub(super) fn may_be_missed(&self) -> bool {
        match &self.needle {
            Needle::AnyCase(capitals) if self.algorithm == "bm" => {
                capitals.has(fold(0xdf)) || capitals.has(fold(0xff))
            }
            _ => false,
        }
    }

    pub(super) fn search(&self, transit: &Transit<'_, '_>) -> Outcome {
        let from = usize::from(self.from);
        let to = match transit.packet.is_open() {
            true => self.to.into(),
            false => usize::from(self.to).min(transit.packet.len()),
        };
        if from + self.pattern.len() > to {
            return Outcome::NO;
        }
        let start = transit.packet.network_offset() + from;
        match transit.packet.read_slice(start, to - from) {
            Read::Known(bytes) => Outcome::from_bool(self.needle.find(bytes).is_some()),
            Read::Unknown => self.search_known(transit, start..start + (to - from)),
            Read::Absent => Outcome::NO,
        }
    }
}
