//! `-m statistic`: every n-th packet, or packets at random.
//!
//! The counter of `--mode nth` starts so that packet `p` of each `n` matches, counting from 0. After packets that may
//! not have reached it, it stands at one of several places in a row: the answer is open while these disagree. A random
//! match is unknown, but for the probabilities 0 and 1. Source: iptables-extensions(8); kernel
//! `net/netfilter/xt_statistic.c`.

use crate::error::What;
use crate::ext::kit::{number, words};
use crate::ext::{Args, Given, IP, Match, MatchKind, Memory, NamedLists, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;

/// Probability 1: the kernel compares with 31 random bits.
const CERTAIN: u32 = 1 << 31;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "statistic",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("mode"),
        Opt::value("probability").invertible(),
        Opt::value("every").invertible(),
        Opt::value("packet"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Random {
    /// In units of 2^-31.
    probability: u32,
    invert: bool,
}

#[derive(Debug, Clone)]
struct Nth {
    every: u32,
    packet: u32,
    invert: bool,
}

/// The kernel's counter, which goes round. Each packet in doubt leaves one more place where it may stand, just before the
/// last one, so these are always in a row.
#[derive(Debug)]
struct Counter {
    last: u32,
    /// Where it stands if every packet in doubt reached it.
    count: u32,
    /// How many places before that it may stand as well.
    behind: u32,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let is_random = words::one_of(args.required("mode")?, &[("random", true), ("nth", false)])?;
    if is_random {
        args.one_of(&["probability", "every"])?;
        args.one_of(&["probability", "packet"])?;
        let given = args.required("probability")?;
        return Ok(Box::new(Random { probability: parse_share(given)?, invert: given.invert }));
    }
    args.one_of(&["every", "probability"])?;
    let given = args.required("every")?;
    let every = number::u32_from(given, 1)?;
    let packet = number::between(args.required("packet")?, 0, u64::from(every) - 1)? as u32;
    Ok(Box::new(Nth { every, packet, invert: given.invert }))
}

fn parse_share(given: &Given<'_>) -> Result<u32, What> {
    let plain = |text: &&str| text.bytes().all(|c| c.is_ascii_digit() || b".eE+-".contains(&c));
    Some(given.text())
        .filter(plain)
        .and_then(|text| text.parse::<f64>().ok())
        .filter(|share| (0.0..=1.0).contains(share))
        .map(|share| (share * f64::from(CERTAIN)).round() as u32)
        .ok_or_else(|| given.expected("a number 0-1"))
}

impl Match for Random {
    fn print(&self, to: &mut Printer) {
        let share = f64::from(self.probability) / f64::from(CERTAIN);
        to.option(false, "mode", "random");
        to.option(self.invert, "probability", format_args!("{share:.11}"));
    }

    fn repeats(&self) -> bool {
        false
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let outcome = match (self.probability, transit.chance) {
            (0, _) => Outcome::NO,
            (CERTAIN, _) => Outcome::YES,
            (_, None) => Outcome::MAYBE,
            (share, Some(chance)) => Outcome::from_bool(chance.draw() as u32 % CERTAIN < share),
        };
        outcome.invert(self.invert)
    }
}

impl Match for Nth {
    fn print(&self, to: &mut Printer) {
        to.option(false, "mode", "nth");
        to.option(self.invert, "every", self.every).option(false, "packet", self.packet);
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        let last = self.every - 1;
        let count = last - self.packet;
        Some(Box::new(Counter { last, count, behind: 0, invert: self.invert }))
    }
}

impl Memory for Counter {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, _lists: &mut NamedLists) -> Outcome {
        self.count = if self.count == self.last { 0 } else { self.count + 1 };
        let outcome = match (self.count <= self.behind, self.behind) {
            (false, _) => Outcome::NO,
            (true, 0) => Outcome::YES,
            (true, _) => Outcome::MAYBE,
        };
        if !transit.certain {
            self.behind = self.last.min(self.behind.saturating_add(1));
        }
        outcome.invert(self.invert)
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::testing::{evaluate, ipv4_udp, with_transit};
    use crate::family::{Family, Hook};
    use conntrack::Entropy;
    use host::Host;
    use packet::{Checksums, Link, Packet};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn first(nth: &Nth, packets: usize) -> Vec<bool> {
        let (mut memory, bytes) = (nth.memory().unwrap(), ipv4_udp(b""));
        with_transit(&bytes, bytes.len(), |transit| {
            (0..packets)
                .map(|_| memory.evaluate(transit, &mut NamedLists::default()) == Outcome::YES)
                .collect()
        })
    }

    #[test]
    fn nth_counts_as_the_kernel_does() {
        let nth = |every, packet, invert| first(&Nth { every, packet, invert }, 6);
        assert_eq!(nth(3, 0, false), [true, false, false, true, false, false]);
        assert_eq!(nth(3, 1, false), [false, true, false, false, true, false]);
        assert_eq!(nth(3, 2, true), [true, true, false, true, true, false]);
        assert_eq!(nth(1, 0, false), [true; 6]);
        assert_eq!(nth(u32::MAX, 5, false), [false, false, false, false, false, true]);
    }

    /// What the match says of each packet, and what every history that is possible says.
    fn against_histories(nth: &Nth, certain: &[bool]) -> Vec<(Outcome, Outcome)> {
        let (mut memory, bytes) = (nth.memory().unwrap(), ipv4_udp(b""));
        let mut stands = vec![nth.every - 1 - nth.packet];
        with_transit(&bytes, bytes.len(), |transit| {
            let outcomes = certain.iter().map(|certain| {
                transit.certain = *certain;
                let said = memory.evaluate(transit, &mut NamedLists::default());
                let after: Vec<u32> = stands.iter().map(|at| (at + 1) % nth.every).collect();
                let each = after.iter().map(|at| Outcome::from_bool((*at == 0) != nth.invert));
                let expected = each.reduce(Outcome::or).unwrap();
                stands = if *certain { after } else { [&*stands, &after].concat() };
                stands.sort_unstable();
                stands.dedup();
                (said, expected)
            });
            outcomes.collect()
        })
    }

    proptest! {
        #[test]
        fn doubt_leaves_the_places_that_some_history_reaches(
            (every, packet) in (1u32..12).prop_flat_map(|every| (Just(every), 0..every)),
            invert: bool,
            certain in vec(prop::bool::weighted(0.8), 0..200),
        ) {
            for (said, expected) in against_histories(&Nth { every, packet, invert }, &certain) {
                prop_assert_eq!(said, expected);
            }
        }
    }

    #[test]
    fn one_packet_in_doubt_leaves_most_of_a_round_known() {
        let nth = Nth { every: 5, packet: 0, invert: false };
        let said = against_histories(&nth, &[true, false, true, true, true, true, true, true]);
        let said: Vec<Outcome> = said.into_iter().map(|(said, _)| said).collect();
        let [yes, no, maybe] = [Outcome::YES, Outcome::NO, Outcome::MAYBE];
        assert_eq!(said, [yes, no, no, no, no, maybe, maybe, no]);
    }

    #[test]
    fn chance_is_known_at_its_ends_only() {
        let random =
            |probability, invert| evaluate(&Random { probability, invert }, &ipv4_udp(b""));
        assert_eq!(random(0, false), Outcome::NO);
        assert_eq!(random(0, true), Outcome::YES);
        assert_eq!(random(CERTAIN, false), Outcome::YES);
        assert_eq!(random(1, true), Outcome::MAYBE);
    }

    #[test]
    fn where_numbers_are_drawn_the_share_matches() {
        let (chance, host) = (Entropy::Seed(3).chance(), Host::default());
        let mut frame = ipv4_udp(b"");
        let len = frame.len();
        let mut packet = Packet::parse(&mut frame, len, Link::Ipv4, Checksums::Ignore);
        let transit = Transit {
            chance: chance.as_ref(),
            ..Transit::new(&mut packet, Family::Ipv4, Hook::Forward, &host)
        };
        let matched = |share: f64, invert| -> usize {
            let probability = (share * f64::from(CERTAIN)) as u32;
            let random = Random { probability, invert };
            let drawn = (0..10_000).map(|_| random.evaluate(&transit));
            drawn.filter(|outcome| *outcome == Outcome::YES).count()
        };
        assert!((2350..2650).contains(&matched(0.25, false)));
        assert!((7350..7650).contains(&matched(0.25, true)));
        assert_eq!((matched(0.0, false), matched(1.0, false)), (0, 10_000));
    }
}
