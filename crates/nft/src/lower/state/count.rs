//! `ct count`: matches up to a number of connections that the rule has seen and that are still there, or with `over` more.
//!
//! A packet that is of no connection, and has no ports, is dropped. Source: kernel `net/netfilter/nft_connlimit.c`; the list is that
//! of `-m connlimit`.

use rules::ext::{Match, Memory, Printer, count_all};

/// A bound as a rule holds it.
#[derive(Debug, Clone)]
pub(crate) struct Count {
    limit: u32,
    over: bool,
    text: Box<str>,
}

impl Count {
    /// What the statement is named.
    pub(crate) const NAME: &str = "ct count";

    /// Makes it of the statement.
    pub(crate) fn new(limit: u32, over: bool, text: &str) -> Self {
        Self { limit, over, text: text.into() }
    }
}

impl Match for Count {
    fn print(&self, to: &mut Printer) {
        to.word(&self.text);
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        Some(count_all(self.limit, self.over))
    }

    fn tracks(&self) -> bool {
        true
    }
}
