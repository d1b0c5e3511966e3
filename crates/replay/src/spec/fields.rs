//! [`Fields`]: what the words of a SPEC give, key by key, and the frame that they make.

use std::net::IpAddr;

use conntrack::CtState;
use dataplane::Path;
use packet::craft::{Addresses, Craft, Ethernet, Fragment, arp_frame};

use super::contents::{self, Contents};
use super::gaps::{self, Filled};
use super::message::{DRAWN, endpoints, message};
use super::word::{SpecError, Word, expected, number};

/// Keys that may stand with arp.
pub(super) const OF_ARP: [&str; 6] = ["in", "out", "mark", "mac", "path", "after"];

#[derive(Default)]
pub(super) struct Fields {
    pub(super) input: Option<String>,
    pub(super) output: Option<String>,
    pub(super) mark: Option<u32>,
    pub(super) ctstate: Option<CtState>,
    pub(super) after: Option<u64>,
    pub(super) path: Option<Path>,
    pub(super) ttl: Option<u8>,
    pub(super) tos: Option<u8>,
    pub(super) len: Option<(usize, usize)>,
    pub(super) fragment: Option<Fragment>,
    pub(super) contents: Contents,
    /// The keys of its contents, each with its column.
    pub(super) given: Vec<(usize, String)>,
    /// What is taken for granted.
    pub(super) assumed: Vec<String>,
}

impl Fields {
    pub(super) fn set(
        &mut self,
        (column, _): Word<'_>,
        key: &str,
        value: &str,
    ) -> Result<(), SpecError> {
        let at = column + key.len() + 1;
        let wrong = |what: &str| expected(at, format!("{what} for {key}, found \"{value}\""));
        match key {
            "in" | "out" if value.is_empty() => return Err(wrong("the name of an interface")),
            "in" => self.input = Some(value.to_owned()),
            "out" => self.output = Some(value.to_owned()),
            "mark" => self.mark = Some(number(value).ok_or_else(|| wrong("a number of 32 bits"))?),
            "ctstate" => self.ctstate = Some(state(value).ok_or_else(|| wrong(&states()))?),
            "after" => {
                self.after =
                    Some(seconds(value).ok_or_else(|| wrong("seconds, such as 60 or 0.5"))?)
            }
            "path" => {
                self.path = Some(path(value).ok_or_else(|| wrong("forward, input or output"))?)
            }
            "ttl" => self.ttl = Some(number(value).ok_or_else(|| wrong("a number 0-255"))?),
            "tos" => self.tos = Some(number(value).ok_or_else(|| wrong("a number 0-255"))?),
            _ if contents::KEYS.contains(&key) => {
                self.contents.set(key, value).map_err(|what| expected(at, what))?;
                self.given.push((column, key.to_owned()));
            }
            "len" => {
                let len: u16 = number(value).ok_or_else(|| wrong("an IP length in bytes"))?;
                self.len = Some((at, len.into()));
            }
            "frag" => {
                self.fragment = Some(fragment(value).ok_or_else(|| wrong("OFFSET or OFFSET+"))?)
            }
            _ => {
                return Err(expected(
                    column,
                    format!(
                        "in= out= path= ttl= tos= mark= ctstate= after= len= frag= {}=",
                        contents::KEYS.join("= ")
                    ),
                ));
            }
        }
        Ok(())
    }

    fn ethernet(&self) -> Ethernet {
        let usual = Ethernet::default();
        Ethernet { source: self.contents.mac.unwrap_or(usual.source), ..usual }
    }

    /// `who-has A tell B`.
    pub(super) fn arp(&self, words: &[Word<'_>], end: usize) -> Result<Vec<u8>, SpecError> {
        let [(_, "who-has"), target, (_, "tell"), sender] = words else {
            let column = words.first().map_or(end, |(column, _)| *column);
            return Err(expected(column, "who-has ADDRESS tell ADDRESS"));
        };
        let v4 = |(column, text): Word<'_>| match text.parse() {
            Ok(IpAddr::V4(addr)) => Ok(addr.octets()),
            _ => Err(expected(column, format!("an IPv4 address, found \"{text}\""))),
        };
        Ok(arp_frame(self.ethernet(), packet::arp::REQUEST, v4(*sender)?, v4(*target)?))
    }

    pub(super) fn frame(
        &mut self,
        name: Word<'_>,
        words: &[Word<'_>],
        usual: &Contents,
        end: usize,
    ) -> Result<Filled, SpecError> {
        let (source, destination, rest) = endpoints(words, end)?;
        let addresses = Addresses::new(source.addr, destination.addr)
            .ok_or_else(|| expected(end, "two addresses of one family"))?;
        let message = message(name, &source, &destination, rest, end)?;
        let mut craft = Craft::new(addresses, message);
        let usual = usual.clone().of_length(&craft, self.len.map(|(_, len)| len));
        self.contents = std::mem::take(&mut self.contents).or(&usual);
        craft.ethernet = Some(self.ethernet());
        craft.ttl = self.ttl.unwrap_or(64);
        craft.tos = self.tos.unwrap_or(0);
        craft.fragment = self.fragment;
        craft.dont_fragment = self.contents.dont_fragment.unwrap_or(false);
        for (column, key) in &self.given {
            if let Some(protocols) = Contents::not_of(key, &craft) {
                return Err(expected(*column, format!("{key}= in packets of {protocols} only")));
            }
        }
        let given =
            [self.ttl.is_some(), self.tos.is_some(), self.fragment.is_some(), self.mark.is_some()];
        self.assumed = gaps::assumed(&craft, &self.contents, given);
        let has_ports = source.has_port() || destination.has_port();
        if has_ports && !source.has_port() {
            self.assumed.insert(0, format!("source port {DRAWN}"));
        }
        gaps::fill(craft, &self.contents, self.len, has_ports)
    }
}

/// Seconds as nanoseconds: at most a year.
fn seconds(text: &str) -> Option<u64> {
    const YEAR: f64 = 31_536_000.0;
    let seconds: f64 = text.parse().ok().filter(|seconds| (0.0..=YEAR).contains(seconds))?;
    Some((seconds * 1e9) as u64)
}

fn path(text: &str) -> Option<Path> {
    [Path::Forward, Path::Input, Path::Output].into_iter().find(|path| path.name() == text)
}

/// A connection state, named as `--ctstate` names it.
fn state(text: &str) -> Option<CtState> {
    CtState::ALL.into_iter().find(|state| state.name().eq_ignore_ascii_case(text))
}

fn states() -> String {
    CtState::ALL.map(CtState::name).join(" ")
}

/// An offset in bytes, with `+` when more fragments follow.
fn fragment(text: &str) -> Option<Fragment> {
    let (offset, more) = match text.strip_suffix('+') {
        Some(offset) => (offset, true),
        None => (text, false),
    };
    Some(Fragment { offset: number(offset)?, more })
}
