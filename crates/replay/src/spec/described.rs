//! [`Spec`]: a packet that is described, and how it arrives.

use conntrack::{CtState, Mode, SECOND};
use dataplane::{Arrival, Config, Path};
use packet::{Gaps, Link};

use super::lack::Lack;
use crate::logged::Prefix;

/// How connections of packet specs are tracked unless that is given: as the kernel does, from an empty
/// table. Nothing came before a packet that nobody captured.
pub const CT: Mode = Mode::Kernel;

/// A packet to evaluate, with what is given about it beyond its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// An Ethernet frame, with 0 or what is usual where its words give nothing.
    pub frame: Vec<u8>,
    /// Length of the frame on the wire, or the least that it may be.
    pub wire_len: usize,
    /// What of the frame is not known.
    pub gaps: Gaps,
    /// Contents that the words do not give, as keys that could give them.
    pub(crate) lacks: Vec<Lack>,
    /// What is taken for granted, in words.
    pub(crate) assumed: Vec<String>,
    /// The input interface.
    pub input: Option<String>,
    /// The output interface.
    pub output: Option<String>,
    /// Mark of the packet.
    pub mark: u32,
    /// The state of its connection; if it is not given, tracking finds it, and for a packet that nothing
    /// came before this is NEW.
    pub ctstate: Option<CtState>,
    /// Nanoseconds since the packet before it.
    pub after: u64,
    /// The way that it is on, if that is said.
    pub path: Option<Path>,
    /// The prefix of the rule that logged it, of a line of the kernel's log.
    pub logged: Option<Prefix>,
}

/// Where nothing is given, packets come a second apart.
pub(super) const APART: u64 = SECOND;

impl Spec {
    /// How it arrives, as the packet of this number from 1 and at this time in nanoseconds.
    pub(crate) fn arrival(&self, number: u64, time: u64, config: &Config) -> Arrival<'_> {
        Arrival {
            time: Some(time),
            input: self.input.as_deref(),
            output: self.output.as_deref(),
            mark: self.mark,
            mark_given: true,
            ctstate: self.ctstate,
            path: self.way(config),
            gaps: Some(&self.gaps),
            ..Arrival::new(number, Link::Ethernet, self.wire_len)
        }
    }
}

/// What `why` and `test` evaluate packet specs with, where no option says otherwise.
#[cfg(test)]
pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.ct.mode = CT;
    config
}
