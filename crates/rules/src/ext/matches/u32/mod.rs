//! `-m u32`: tests of 32-bit words at computed offsets, `6&0xFF=17&&0>>22&0x3C@0=1:1023,4096`.
//!
//! Offsets count from the network header. A word that the packet does not hold makes the whole match
//! false before `!` is applied, so `! --u32` matches short packets. Source: iptables-extensions(8);
//! kernel `net/netfilter/xt_u32.c`.

mod grammar;
mod test;

use crate::error::What;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use test::Test;

/// Operations that take about the time of a rule.
const OPERATIONS_A_STEP: usize = 8;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "u32",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("u32").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct U32 {
    tests: Box<[Test]>,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("u32")?;
    let tests = grammar::parse(given.text()).map_err(|wrong| {
        given.expected(format!("{} at character {}", wrong.expected, wrong.offset + 1))
    })?;
    Ok(Box::new(U32 { tests: tests.into(), invert: given.invert }))
}

impl Match for U32 {
    fn print(&self, to: &mut Printer) {
        let tests: Vec<String> = self.tests.iter().map(Test::text).collect();
        to.option(self.invert, "u32", format_args!("\"{}\"", tests.join("&&")));
    }

    fn work(&self, _bytes: usize) -> u32 {
        let operations = self.tests.iter().map(|test| test.steps.len() + test.ranges.len());
        (operations.sum::<usize>() / OPERATIONS_A_STEP) as u32
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let all = self
            .tests
            .iter()
            .fold(Outcome::YES, |sum, test| sum.and_then(|| test.evaluate(transit)));
        all.invert(self.invert)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::testing::{evaluate, evaluate_cut, ipv4_udp};

    fn match_of(text: &str, invert: bool) -> U32 {
        U32 { tests: grammar::parse(text).unwrap().into(), invert }
    }

    fn holds(text: &str) -> Outcome {
        evaluate(&match_of(text, false), &ipv4_udp(b"abcdefgh"))
    }

    #[test]
    fn words_are_masked_shifted_and_compared() {
        assert_eq!(holds("6&0xFF=17"), Outcome::YES);
        assert_eq!(holds("6&0xFF=1:5,17"), Outcome::YES);
        assert_eq!(holds("6&0xFF=16,18:20"), Outcome::NO);
        assert_eq!(holds("0>>28=4"), Outcome::YES);
        assert_eq!(holds("6&0xFF<<4=0x110"), Outcome::YES);
        assert_eq!(holds("6&0xFF=17&&0>>28=5"), Outcome::NO);
        assert_eq!(holds("0<<31=0x80000000"), Outcome::NO);
    }

    #[test]
    fn at_moves_by_the_value() {
        assert_eq!(holds("0>>22&0x3C@8=0x61626364"), Outcome::YES);
        assert_eq!(holds("0>>22&0x3C@0>>16=1000"), Outcome::YES);
        assert_eq!(holds("0>>22&0x3C@12=0x65666768"), Outcome::YES);
    }

    #[test]
    fn beyond_the_packet_it_is_false_and_inverted_true() {
        assert_eq!(holds("0>>22&0x3C@13=0:0xffffffff"), Outcome::NO);
        assert_eq!(holds("0xffffffff=0:0xffffffff"), Outcome::NO);
        assert_eq!(holds("4@0=0:0xffffffff"), Outcome::NO);
        assert_eq!(evaluate(&match_of("33=0", true), &ipv4_udp(b"abcdefgh")), Outcome::YES);
    }

    #[test]
    fn bytes_that_were_not_captured_are_unknown() {
        let packet = ipv4_udp(b"abcdefgh");
        let cut = |text| evaluate_cut(&match_of(text, false), &packet, 28);
        assert_eq!(cut("28=0x61626364"), Outcome::MAYBE);
        assert_eq!(cut("28=0x61626364&&6&0xFF=6"), Outcome::NO);
        assert_eq!(cut("28&0=0"), Outcome::YES);
        assert_eq!(cut("33=0"), Outcome::NO);
    }
}
