//! `-m recent`: a list of addresses that packets are entered in and looked up in.
//!
//! Rules of one name share a list ([`NamedLists`]), which is empty at the start; the first of them says which part of an
//! address counts. What depends on the kernel's clock tick is open.
//!
//! Source: iptables-extensions(8); Linux 6.18 `net/netfilter/xt_recent.c`.

use packet::Read;

use crate::error::What;
use crate::ext::kit::named_lists::{Action, Named, NamedLists, Question, Visitor, Who};
use crate::ext::kit::number;
use crate::ext::{
    Args, Given, IP, ListSort, ListUse, Match, MatchKind, Memory, Opt, Printer, Support,
};
use crate::family::{Family, Hook};
use crate::outcome::Outcome;
use crate::transit::{Iface, Transit};
use crate::value;

const MAX_NAME: usize = 199;
const MAX_HITS: u64 = 65_535;
/// Times of each address where no rule counts hits.
const USUAL_ROOM: usize = 32;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "recent",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::flag("set").invertible(),
        Opt::flag("rcheck").invertible(),
        Opt::flag("update").invertible(),
        Opt::flag("remove").invertible(),
        Opt::value("seconds"),
        Opt::flag("reap"),
        Opt::value("hitcount"),
        Opt::flag("rttl"),
        Opt::value("name"),
        Opt::flag("rsource"),
        Opt::flag("rdest"),
        Opt::value("mask"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Recent {
    /// Name of the option that says what to do.
    action: &'static str,
    invert: bool,
    seconds: Option<u32>,
    reap: bool,
    hits: Option<u32>,
    ttl: bool,
    list: Box<str>,
    by_destination: bool,
    mask: [u8; 16],
    addr_len: u8,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let action = parse_action(args)?;
    let len = args.family.addr_len();
    let mask = args.get("mask").map(|given| parse_mask(given, len)).transpose()?;
    let side = args.given.iter().rfind(|given| matches!(given.name, "rsource" | "rdest"));
    let hits = |given| number::between(given, 0, MAX_HITS).map(|hits| hits as u32);
    Ok(Box::new(Recent {
        action: action.name,
        invert: action.invert,
        seconds: args.get("seconds").map(|given| number::u32_from(given, 1)).transpose()?,
        reap: args.has("reap"),
        hits: args.get("hitcount").map(hits).transpose()?.filter(|hits| *hits > 0),
        ttl: args.has("rttl"),
        list: args.get("name").map(parse_name).transpose()?.unwrap_or_else(|| "DEFAULT".into()),
        by_destination: side.is_some_and(|given| given.name == "rdest"),
        mask: mask.unwrap_or([0xff; 16]),
        addr_len: len as u8,
    }))
}

/// Finds the one action; `set` and `remove` take no conditions.
fn parse_action<'s, 'a>(args: &'s Args<'a>) -> Result<&'s Given<'a>, What> {
    let actions = ["set", "rcheck", "update", "remove"];
    args.one_of(&actions)?;
    args.any_of(&actions)?;
    if args.has("reap") {
        args.required("seconds")?;
    }
    for condition in ["seconds", "reap", "hitcount", "rttl"] {
        args.one_of(&["set", condition])?;
        args.one_of(&["remove", condition])?;
    }
    actions.iter().find_map(|name| args.get(name)).ok_or_else(|| args.expected("an action"))
}

fn parse_mask(given: &Given<'_>, len: usize) -> Result<[u8; 16], What> {
    value::address(given.text(), len).ok_or_else(|| given.expected("a mask written as an address"))
}

/// The list is a file in `/proc/net/xt_recent`.
fn parse_name(given: &Given<'_>) -> Result<Box<str>, What> {
    let name = given.text();
    if name.is_empty() || name.len() > MAX_NAME || name.contains('/') || matches!(name, "." | "..")
    {
        return Err(given.expected(format!("a file name of at most {MAX_NAME} bytes")));
    }
    Ok(name.into())
}

/// A rule's part in a list.
#[derive(Debug)]
struct Looking {
    name: Box<str>,
    mask: [u8; 16],
    room: usize,
    by_destination: bool,
    question: Question,
    list: Option<usize>,
    /// How often the last address was seen.
    seen: Option<[usize; 2]>,
}

impl Looking {
    /// The packet as the list sees it; `None` if its address is not known.
    fn visitor(&self, transit: &Transit<'_, '_>, mask: [u8; 16]) -> Option<Visitor> {
        let mut address = [0; 16];
        let is_v6 = transit.family == Family::Ipv6;
        let known = match (is_v6, self.by_destination) {
            (true, by_destination) => {
                transit.net::<16>(if by_destination { 24 } else { 8 }).map(|bytes| address = bytes)
            }
            (false, by_destination) => transit
                .net::<4>(if by_destination { 16 } else { 12 })
                .map(|bytes| address[..4].copy_from_slice(&bytes)),
        };
        if known != Read::Known(()) {
            return None;
        }
        address.iter_mut().zip(mask).for_each(|(byte, mask)| *byte &= mask);
        let (ttl, now) = (ttl_before_forwarding(transit), transit.time.unwrap_or(0));
        let family = if is_v6 { Family::Ipv6 } else { Family::Ipv4 };
        let who = Who { family, address };
        Some(Visitor { who, ttl, now, certain: transit.certain })
    }
}

/// Forwarding has lowered it by one where a packet goes out by an interface, unless it was made on this host.
fn ttl_before_forwarding(transit: &Transit<'_, '_>) -> Option<u8> {
    let Read::Known([ttl]) = transit.net::<1>(if transit.family == Family::Ipv6 { 7 } else { 8 })
    else {
        return None;
    };
    match transit.hook {
        Hook::Forward => Some(ttl.wrapping_add(1)),
        Hook::Postrouting if transit.input != Iface::Absent => Some(ttl.wrapping_add(1)),
        _ => Some(ttl),
    }
}

impl Memory for Looking {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, lists: &mut NamedLists) -> Outcome {
        if self.list.is_none() {
            self.join(lists);
        }
        let list = self.list.and_then(|at| lists.hold(at));
        let Some(mut list) = list else { return Outcome::MAYBE };
        let Named::Recent(list, mask) = &mut *list else { return Outcome::MAYBE };
        let Some(visitor) = self.visitor(transit, *mask) else {
            // Some address is entered, or changed.
            if self.question.action != Action::Check || self.question.reaps {
                list.make_indeterminate();
            }
            return match self.question.action {
                Action::Set => Outcome::from_bool(!self.question.invert),
                _ => Outcome::MAYBE,
            };
        };
        let outcome = list.ask(&self.question, &visitor);
        self.seen = list.seen();
        outcome
    }

    fn remark(&self) -> Option<String> {
        let seen = match self.seen? {
            [least, most] if least == most => format!("{least}"),
            [least, usize::MAX] => format!("at least {least}"),
            [least, most] => format!("{least} to {most}"),
        };
        let within = self.question.seconds.map(|seconds| format!(" within {seconds} s"));
        Some(format!("{}: seen {seen} times{}", self.name, within.unwrap_or_default()))
    }

    fn join(&mut self, lists: &mut NamedLists) {
        let sort = ListSort::Recent { mask: self.mask, room: self.room };
        self.list = Some(lists.join(ListUse { name: &self.name, sort }));
    }

    /// Only its list is; what this knows is the list's number.
    fn is_one(&self) -> bool {
        false
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

impl Recent {
    /// Times of each address that its list has to hold.
    fn room(&self) -> usize {
        self.hits.map_or(USUAL_ROOM, |hits| (hits as usize).next_power_of_two())
    }

    fn question(&self) -> Question {
        Question {
            action: match self.action {
                "set" => Action::Set,
                "update" => Action::Update,
                "remove" => Action::Remove,
                _ => Action::Check,
            },
            invert: self.invert,
            seconds: self.seconds,
            hits: self.hits.unwrap_or(0),
            by_ttl: self.ttl,
            reaps: self.reap,
        }
    }
}

impl Match for Recent {
    fn list(&self) -> Option<ListUse<'_>> {
        let sort = ListSort::Recent { mask: self.mask, room: self.room() };
        Some(ListUse { name: &self.list, sort })
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        Some(Box::new(Looking {
            name: self.list.clone(),
            mask: self.mask,
            room: self.room(),
            by_destination: self.by_destination,
            question: self.question(),
            list: None,
            seen: None,
        }))
    }

    fn print(&self, to: &mut Printer) {
        to.flag(self.invert, self.action);
        if let Some(seconds) = self.seconds {
            to.option(false, "seconds", seconds);
        }
        if self.reap {
            to.flag(false, "reap");
        }
        if let Some(hits) = self.hits {
            to.option(false, "hitcount", hits);
        }
        if self.ttl {
            to.flag(false, "rttl");
        }
        to.flag(false, "name").plain(&self.list);
        to.option(false, "mask", value::address_text(&self.mask, self.addr_len.into()));
        to.flag(false, if self.by_destination { "rdest" } else { "rsource" });
    }
}

#[cfg(test)]
mod tests;
