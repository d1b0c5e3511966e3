//! [`Reach`]: what reaches a place, or goes there from one, and what judges the packets that show it.

use rules::model::Hook;

use crate::space::Piece;

/// What a walk along the whole way said of a packet spec.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// The verdict, as one word: `accept` is what is looked for.
    pub verdict: String,
    /// What decided, as text, and its line; 0 for none.
    pub by: Option<(u32, String)>,
    /// What decided, as cases name it: `filter/FORWARD/12`.
    pub place: Option<String>,
    /// What the verdict depends on, where it is unknown.
    pub because: Vec<String>,
    /// `tamis why`, which walks all tables, says otherwise of the packet.
    pub differs: bool,
}

/// Walks a packet spec along its whole way; for an established connection without what translates it: the spec has the
/// addresses that the filter sees.
pub type Judge<'j> = dyn FnMut(States, &str) -> Judged + 'j;

/// Which states of connections packets are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum States {
    /// Packets that open a connection, or are not tracked.
    New,
    /// Packets that are part of a connection, or related to one.
    Established,
    /// All packets, where the rules make the kernel track none.
    Any,
}

impl States {
    /// The name of the states in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Established => "established",
            Self::Any => "any",
        }
    }
}

/// Packets that are let through, or that may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaching {
    /// The hook of the filter table on their way.
    pub way: Hook,
    /// The states of their connections.
    pub states: States,
    /// All of them are, whatever depends on what is not known.
    pub is_certain: bool,
    /// Which they are, as they come in.
    pub piece: Piece,
    /// What makes another destination of theirs, and which.
    pub translated: Option<Translated>,
    /// What makes another source of some of them as they leave.
    pub leaves_as: Vec<(u32, String)>,
    /// The rule of the filter table that accepts them, or its policy: line and text.
    pub by: Option<(u32, String)>,
    /// What it depends on.
    pub depends: Vec<String>,
    /// One of the packets, as `tamis why --packet` takes it, and what a walk says of it.
    pub witness: Option<(String, Judged)>,
}

/// Another destination that a rule gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// Line of the rule.
    pub line: u32,
    /// The rule.
    pub by: String,
    /// Where packets go: `10.0.0.5:80`, `this host:3128`.
    pub to: String,
}

/// A way that nothing comes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The hook of the filter table on it.
    pub way: Hook,
    /// The states of connections.
    pub states: States,
    /// A packet that asks, and what a walk says of it.
    pub probe: Option<(String, Judged)>,
}

/// All that reaches, or goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Way after way.
    pub regions: Vec<Reaching>,
    /// Ways that are closed.
    pub closed: Vec<Closed>,
    /// There are more regions than are listed.
    pub more: bool,
    /// Ways that were too large to follow.
    pub too_large: Vec<Hook>,
    /// The host's own addresses are not known, so that packets to it and through it are both listed.
    pub either_way: bool,
    /// Routes of the host tell where packets go, and whether they come in.
    pub follows_routes: bool,
    /// Routes and links were too many to follow: regions hold wherever routes send packets.
    pub is_unrouted: bool,
    /// Where no packet goes there at all, a packet that would, and what a walk says of it.
    pub stray: Option<(String, Judged)>,
}

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Some packet reaches the place.
    Yes,
    /// No packet is known to reach it, but some may.
    Perhaps,
    /// No packet reaches it.
    No,
}

impl Reach {
    /// What it comes to, of packets that open connections: that others go on does not reach anything.
    #[must_use]
    pub fn reached(&self) -> Reached {
        let mut opening = self.regions.iter().filter(|it| it.states != States::Established);
        if opening.any(|it| it.is_certain) {
            return Reached::Yes;
        }
        let may = self.regions.iter().any(|it| it.states != States::Established);
        if may || !self.too_large.is_empty() { Reached::Perhaps } else { Reached::No }
    }
}
