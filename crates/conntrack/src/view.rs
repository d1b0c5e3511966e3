//! [`CtView`]: what tracking says of one packet, for matches and targets to read.

use crate::index::Handle;
use crate::key::Direction;
use std::fmt;

/// A connection state, as `--ctstate` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CtState {
    /// Part of no flow, or malformed; also every packet before tracking has seen it.
    Invalid = 1,
    /// Part of a flow that was answered.
    Established = 2,
    /// Begins a flow that was expected by another one, or is an ICMP error about one.
    Related = 4,
    /// Begins a flow, or is part of one without an answer.
    New = 8,
    /// Exempt from tracking.
    Untracked = 16,
}

impl CtState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Invalid, Self::Established, Self::Related, Self::New, Self::Untracked];

    /// Returns the state's name in `--ctstate`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID",
            Self::Established => "ESTABLISHED",
            Self::Related => "RELATED",
            Self::New => "NEW",
            Self::Untracked => "UNTRACKED",
        }
    }
}

/// A non-empty set of states that remain possible.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct States(u8);

impl States {
    /// Nothing is known.
    pub const ANY: Self = Self(0x1f);

    /// Just this state.
    #[must_use]
    pub const fn of(state: CtState) -> Self {
        Self(state as u8)
    }

    /// Either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the states that are not among others, if any.
    #[inline]
    #[must_use]
    pub const fn without(self, others: Self) -> Option<Self> {
        match self.0 & !others.0 {
            0 => None,
            left => Some(Self(left)),
        }
    }

    /// Whether some state is in both.
    #[inline]
    #[must_use]
    pub const fn meets(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether a state is possible.
    #[inline]
    #[must_use]
    pub const fn may_be(self, state: CtState) -> bool {
        self.0 & state as u8 != 0
    }

    /// The state, where only one is possible.
    #[inline]
    #[must_use]
    pub fn only(self) -> Option<CtState> {
        Some(match self.0 {
            1 => CtState::Invalid,
            2 => CtState::Established,
            4 => CtState::Related,
            8 => CtState::New,
            16 => CtState::Untracked,
            _ => return None,
        })
    }
}

impl From<CtState> for States {
    fn from(state: CtState) -> Self {
        Self::of(state)
    }
}

/// Names joined by `|`.
impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = CtState::ALL
            .into_iter()
            .filter(|state| self.may_be(*state))
            .map(|state| format!("{state:?}"))
            .collect();
        f.write_str(&names.join("|"))
    }
}

/// How surely something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Certainty {
    /// Something happens for certain.
    #[default]
    Certain,
    /// Something may happen.
    Maybe,
}

/// What a packet of several states is taken for, where they are several because not all of its flow was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Taken {
    /// All that there may be of its flow was captured.
    #[default]
    Seen,
    /// For this state, where the states lead to different verdicts.
    For(CtState),
    /// For none: what its states do not agree on is unknown.
    ForNone,
}

/// Whether the table has room for a packet's flow. The kernel's hashes have a secret key: which flows it evicts from a
/// full table is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Space {
    /// There is room.
    #[default]
    Enough,
    /// The flow may have been evicted to make room for others, or may be there although it was.
    Tight,
    /// The flow is new, and the kernel may drop its packet here for want of room.
    MayBeFull,
    /// The flow is new, and the kernel drops its packet here for want of room.
    Full,
    /// Nothing is known of a flow, and the kernel may drop the packet here: its tracker of this protocol is not modelled.
    Unmodelled,
}

impl Space {
    /// Adds to an unlimited answer that the flow may have been evicted.
    pub(crate) fn or_tight(self) -> Self {
        if self == Self::Enough { Self::Tight } else { self }
    }
}

/// What tracking says of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CtView {
    /// The state, or all that remain possible.
    pub states: States,
    /// The flow of the packet, or, for an ICMP error, the flow that it is about. In doubt this is the flow that there
    /// may be.
    pub flow: Option<Handle>,
    /// Which way of the flow it goes; original where there is none.
    pub direction: Direction,
    /// The packet created the flow, which is not confirmed yet: this is the packet that the nat chains see.
    pub is_first: bool,
    /// The flow was taken for established because its beginning was not captured.
    pub assumed: bool,
    /// What it is taken for, if not all of its flow was captured.
    pub taken: Taken,
    /// Whether there was room for its flow in the table.
    pub space: Space,
}

impl CtView {
    /// A packet without a flow.
    #[must_use]
    pub const fn without_flow(states: States) -> Self {
        Self {
            states,
            flow: None,
            direction: Direction::Original,
            is_first: false,
            assumed: false,
            taken: Taken::Seen,
            space: Space::Enough,
        }
    }

    /// What the raw table sees, and what is left where tracking finds nothing.
    pub const INVALID: Self = Self::without_flow(States::of(CtState::Invalid));

    /// After NOTRACK.
    pub const UNTRACKED: Self = Self::without_flow(States::of(CtState::Untracked));

    /// Where nothing is known.
    pub const UNKNOWN: Self = Self::without_flow(States::ANY);

    /// The state, where only one is possible.
    #[must_use]
    pub fn state(&self) -> Option<CtState> {
        self.states.only()
    }

    /// Returns the packet's view in the state that it is taken for; `None` where it is taken for none.
    #[must_use]
    pub fn as_taken(&self) -> Option<Self> {
        match self.taken {
            // Whether it is dropped does not depend on its state.
            Taken::For(_) if self.space == Space::MayBeFull => None,
            Taken::For(state) => Some(Self { states: state.into(), taken: Taken::Seen, ..*self }),
            Taken::Seen | Taken::ForNone => None,
        }
    }
}
