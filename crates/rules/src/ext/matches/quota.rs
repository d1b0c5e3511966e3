//! `-m quota`: matches until a number of bytes has passed.
//!
//! What is left is the kernel's alone: the save text holds the quota that the rule was given, and a rule that is restored
//! begins with all of it. A packet that is longer than what is left uses the rest up, so no shorter one matches after it.
//!
//! Where packets may not have come, what is left lies between two numbers. Source: iptables-extensions(8); Linux 6.18
//! `net/netfilter/xt_quota.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, IP, Match, MatchKind, Memory, NamedLists, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;

/// Bytes of the longest packet.
const LONGEST: u64 = 40 + u16::MAX as u64;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "quota",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("quota").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Quota {
    bytes: u64,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("quota")?;
    Ok(Box::new(Quota { bytes: number::between(given, 0, u64::MAX)?, invert: given.invert }))
}

impl Match for Quota {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "quota", self.bytes);
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        Some(Box::new(Left { least: self.bytes, most: self.bytes, invert: self.invert }))
    }
}

/// The bytes that are left, at least and at most.
#[derive(Debug)]
struct Left {
    least: u64,
    most: u64,
    invert: bool,
}

impl Left {
    /// Whether a packet of this length that surely, or maybe, comes is within the quota.
    fn take(&mut self, len: u64, certain: bool) -> Outcome {
        let (surely, maybe) = (self.least >= len, self.most >= len);
        // Either of two: the packet was within it, or it used up the rest.
        let least = if surely { self.least - len } else { 0 };
        let most = if maybe { self.most - len } else { 0 };
        self.most = if certain { most } else { self.most };
        self.least = least;
        match (surely, maybe) {
            (true, _) => Outcome::YES,
            (false, true) => Outcome::MAYBE,
            (false, false) => Outcome::NO,
        }
    }
}

impl Memory for Left {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, _lists: &mut NamedLists) -> Outcome {
        let (len, certain) = (transit.packet.len() as u64, transit.certain);
        if !transit.packet.is_open() {
            return self.take(len, certain).invert(self.invert);
        }
        // It takes as much as a packet can have, or less, or nothing.
        let may_take = self.most >= len;
        self.least = self.least.saturating_sub(LONGEST);
        if may_take { Outcome::MAYBE } else { Outcome::NO.invert(self.invert) }
    }

    fn remark(&self) -> Option<String> {
        Some(match self.least == self.most {
            true => format!("{} bytes left", self.least),
            false => format!("{} to {} bytes left", self.least, self.most),
        })
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn a_packet_that_is_too_long_uses_up_the_rest() {
        let mut left = Left { least: 100, most: 100, invert: false };
        let said: Vec<_> = [60, 40, 0, 1].map(|len| left.take(len, true)).into();
        assert_eq!(said, [Outcome::YES, Outcome::YES, Outcome::YES, Outcome::NO]);
        let mut left = Left { least: 100, most: 100, invert: false };
        let said: Vec<_> = [60, 41, 1].map(|len| left.take(len, true)).into();
        assert_eq!(said, [Outcome::YES, Outcome::NO, Outcome::NO]);
    }

    /// What the kernel leaves.
    fn kernel(left: u64, len: u64) -> (bool, u64) {
        if left >= len { (true, left - len) } else { (false, 0) }
    }

    proptest! {
        #[test]
        fn every_history_lies_within(
            quota in 0..200_u64,
            packets in vec((0..60_u64, any::<bool>()), 0..12),
        ) {
            let mut left = Left { least: quota, most: quota, invert: false };
            let mut histories = vec![quota];
            for (len, certain) in packets {
                let said = left.take(len, certain);
                let (answers, after): (Vec<_>, Vec<_>) =
                    histories.iter().map(|left| kernel(*left, len)).unzip();
                for answer in answers {
                    prop_assert_eq!(said.or(Outcome::from_bool(answer)), said);
                }
                if !certain {
                    histories.extend(after);
                } else {
                    histories = after;
                }
                for history in &histories {
                    prop_assert!((left.least..=left.most).contains(history));
                }
            }
        }
    }
}
