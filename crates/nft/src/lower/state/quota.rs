//! `quota`: matches until a number of bytes has passed, or with `over` from then on.
//!
//! Every packet that reaches it uses it up, whether it matches or not. Source: kernel `net/netfilter/nft_quota.c`.

use crate::stmt;
use rules::ext::{Match, Memory, NamedLists, Printer};
use rules::{Outcome, Transit};

/// Bytes of the longest packet.
const LONGEST: u64 = 40 + u16::MAX as u64;

/// A quota as a rule holds it.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    quota: stmt::Quota,
    text: Box<str>,
}

impl Quota {
    /// Makes it of the statement.
    pub(crate) fn new(quota: &stmt::Quota, text: &str) -> Self {
        Self { quota: quota.clone(), text: text.into() }
    }

    /// Makes the state that it has at first.
    pub(crate) fn used(&self) -> Used {
        let stmt::Quota { over, bytes, used } = self.quota;
        Used { least: used, most: used, bytes, over }
    }
}

impl Match for Quota {
    fn print(&self, to: &mut Printer) {
        to.word(&self.text);
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        Some(Box::new(self.used()))
    }
}

/// The bytes that were used, at least and at most.
#[derive(Debug)]
pub(crate) struct Used {
    least: u64,
    most: u64,
    bytes: u64,
    over: bool,
}

impl Used {
    /// Whether a packet whose length is between these two, which surely or maybe comes, is within the quota.
    fn take(&mut self, (short, long): (u64, u64), certain: bool) -> Outcome {
        let least = self.least.saturating_add(short);
        let most = self.most.saturating_add(long);
        self.least = if certain { least } else { self.least };
        self.most = most;
        match (least > self.bytes, most > self.bytes) {
            (true, _) => Outcome::NO,
            (false, false) => Outcome::YES,
            (false, true) => Outcome::MAYBE,
        }
    }
}

impl Used {
    /// Whether a packet is within the quota, where nobody else asks, or others do of which it is not known.
    pub(crate) fn ask(&mut self, transit: &Transit<'_, '_>, others_ask: bool) -> Outcome {
        if others_ask {
            self.most = u64::MAX;
        }
        let len = transit.packet.len() as u64;
        let longest = if transit.packet.is_open() { LONGEST } else { len };
        self.take((len, longest), transit.certain).invert(self.over)
    }
}

impl Memory for Used {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, _lists: &mut NamedLists) -> Outcome {
        self.ask(transit, false)
    }

    fn remark(&self) -> Option<String> {
        Some(match self.least == self.most {
            true => format!("{} of {} bytes used", self.least, self.bytes),
            false => format!("{} to {} of {} bytes used", self.least, self.most, self.bytes),
        })
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_uses_it_up() {
        let mut used = Used { least: 0, most: 0, bytes: 100, over: false };
        let mut take = |len, certain| used.take((len, len), certain);
        assert_eq!(take(60, true), Outcome::YES);
        assert_eq!(take(40, true), Outcome::YES);
        assert_eq!(take(1, true), Outcome::NO);
        assert_eq!(take(0, true), Outcome::NO);
        let mut used = Used { least: 0, most: 0, bytes: 100, over: false };
        assert_eq!(used.take((60, 60), false), Outcome::YES);
        assert_eq!(used.take((60, 60), true), Outcome::MAYBE);
        assert_eq!(used.take((60, 60), true), Outcome::NO);
    }
}
