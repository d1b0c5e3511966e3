//! [`Story`]: what happened to one packet, step by step.

use conntrack::Side;
use dataplane::{Arrival, Disposition, FinalVerdict, Path};
use host::sighting::Sighting;
use packet::{Checksums, Packet};
use rules::Outcome;
use rules::eval::{Alive, RuleRef};
use rules::model::Hook;
use rules::nat::Translated;

use super::past::Expired;
use crate::near::Misses;
use crate::report::Report;
use crate::spec::Spec;

/// How much of a story to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The end, and why rules that may have logged the packet did not match.
    End,
    /// Every step.
    Steps,
    /// Every step, and this many rules that nearly matched.
    Near(usize),
}

impl From<Option<usize>> for Detail {
    fn from(near: Option<usize>) -> Self {
        near.map_or(Self::Steps, Self::Near)
    }
}

/// The story of one packet. It owns what it shows.
#[derive(Debug)]
pub struct Story {
    pub(super) report: Report,
    /// The packets of the conversation before this one.
    pub(super) before: Vec<Before>,
    pub(super) packet: String,
    /// What is taken for granted of the packet, if it was described.
    pub(super) assumed: Vec<String>,
    pub(super) end: Disposition,
    pub(super) steps: Vec<Step>,
    pub(super) untold: u64,
    /// Rules that did not match for one test; `None` if nobody asks.
    pub(super) misses: Option<Misses>,
    /// What its frame is, in a capture that tells.
    pub(super) seen: Option<SeenAs>,
    /// Rules that may have recorded it, where it is a record of the firewall's, or a line of the log.
    pub(super) logged: Vec<String>,
    /// What lines say of it and the rules do not.
    pub(super) contradiction: Option<Contradiction>,
}

/// What other programs' lines say of a packet that cannot be under these rules.
#[derive(Debug)]
pub(super) struct Contradiction {
    /// Which lines.
    pub(super) by: &'static str,
    /// What, in words.
    pub(super) what: String,
}

impl Story {
    /// The packet's verdict.
    #[must_use]
    pub fn verdict(&self) -> FinalVerdict {
        match self.contradiction {
            Some(_) => FinalVerdict::Unknown,
            None => self.end.verdict,
        }
    }

    /// Whether the packet was accepted; for an unknown verdict, near misses that accept say more.
    pub(super) fn is_accepted(&self) -> bool {
        matches!(self.end.verdict, FinalVerdict::Accept(_))
    }

    /// How deep in jumps each step is: 0 in a built-in chain.
    pub(super) fn depths(&self) -> Vec<usize> {
        let mut chains: Vec<(u32, u32)> = Vec::new();
        let depth = |step: &Step| match step {
            Step::Rule { at, .. } => {
                let chain = (at.table, at.chain);
                match chains.iter().position(|one| *one == chain) {
                    Some(depth) => chains.truncate(depth + 1),
                    None => chains.push(chain),
                }
                chains.len() - 1
            }
            Step::Enters { .. } => {
                chains.clear();
                0
            }
            _ => 0,
        };
        self.steps.iter().map(depth).collect()
    }
}

/// What a frame is, and which other ones show its packet.
#[derive(Debug)]
pub(super) struct SeenAs {
    pub(super) sighting: Sighting,
    /// The frame that shows the packet leaving.
    pub(super) left: Option<u64>,
}

/// A packet that came before.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) packet: String,
    pub(super) end: Disposition,
}

/// A step of the story.
#[derive(Debug)]
pub(super) enum Step {
    Starts {
        path: Path,
        input: String,
        output: String,
    },
    Enters {
        table: u32,
        chain: Option<u32>,
        hook: Hook,
    },
    Rule {
        at: RuleRef,
        outcome: Outcome,
        alive: Alive,
        refused: Option<String>,
        /// What its matches that remember packets went by.
        remarks: Vec<String>,
    },
    Policy {
        table: u32,
        chain: u32,
    },
    Ttl(Option<u8>),
    Tracked {
        state: String,
        flow: Option<FlowStory>,
    },
    /// The possible states do not agree, and the packet is taken to be in this one.
    Taken {
        state: String,
    },
    Translated {
        side: Side,
        to: Translated,
    },
    /// What a helper's connection has written into the packet.
    Edited(Vec<String>),
    Rerouted {
        path: Path,
        input: String,
        output: String,
    },
    Settled {
        state: String,
    },
    /// Something that the verdict does not tell.
    Remark(String),
}

/// A connection as a packet found it.
#[derive(Debug)]
pub(super) struct FlowStory {
    /// Number of the packet that began it.
    pub(super) born: u64,
    /// The packet begins the connection.
    pub(super) begins: bool,
    /// Tuple of the connection, as its first packet had it.
    pub(super) tuple: String,
    /// The packet goes in the reply direction.
    pub(super) is_reply: bool,
    /// For a connection that begins, the earlier entry of its ends that had expired.
    pub(super) expired: Option<Expired>,
    /// What tracking remembers of its protocol, with this packet.
    pub(super) state: String,
}

/// A packet in a line.
pub(super) fn shown(bytes: &mut [u8], arrival: &Arrival<'_>) -> String {
    Packet::parse(bytes, arrival.wire_len, arrival.link, Checksums::Ignore).to_string()
}

/// The story of a packet spec, with what the spec does not give.
pub(super) fn of_spec(mut story: Story, spec: &Spec) -> Story {
    story.report.lacks.clone_from(&spec.lacks);
    story.assumed.clone_from(&spec.assumed);
    story
}
