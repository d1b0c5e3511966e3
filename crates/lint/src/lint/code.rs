//! What there is to find, by codes that stay.

use std::fmt;

use serde::{Serialize, Serializer};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The rules do not do what is written.
    Error,
    /// The rules may do something else than is meant.
    Warning,
    /// The rules may be shorter.
    Note,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// Every packet that the rule matches is taken by rules before it.
    Shadowed,
    /// No packet gets to the rule.
    Unreachable,
    /// No packet passes all of its tests.
    NeverMatches,
    /// An equal rule stands before it.
    Duplicate,
    /// No packet would fare otherwise without it.
    Redundant,
    /// No rule that packets get to jumps to the chain.
    UnusedChain,
    /// The chain that it jumps to does nothing.
    IdleChain,
    /// It accepts whatever gets to it, although the policy is to drop.
    AcceptsAll,
    /// It drops packets of a state, some of which were accepted before.
    LateState,
    /// The host has no such interface.
    NoSuchInterface,
    /// The host has no such set.
    MissingSet,
    /// It fills a set that no rule asks.
    SetUnread,
    /// It sets a mark that no rule reads.
    MarkUnread,
    /// It asks for a mark that no rule sets.
    MarkUnset,
    /// It sends elsewhere what INPUT denies, and FORWARD lets it through.
    PastInput,
    /// The file ends in a COMMIT without a newline.
    OpenCommit,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 16] = [
        Self::Shadowed,
        Self::Unreachable,
        Self::NeverMatches,
        Self::Duplicate,
        Self::Redundant,
        Self::UnusedChain,
        Self::IdleChain,
        Self::AcceptsAll,
        Self::LateState,
        Self::NoSuchInterface,
        Self::MissingSet,
        Self::SetUnread,
        Self::MarkUnread,
        Self::MarkUnset,
        Self::PastInput,
        Self::OpenCommit,
    ];

    /// The name of the code in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Shadowed => "shadowed",
            Self::Unreachable => "unreachable",
            Self::NeverMatches => "never-matches",
            Self::Duplicate => "duplicate",
            Self::Redundant => "redundant",
            Self::UnusedChain => "unused-chain",
            Self::IdleChain => "idle-chain",
            Self::AcceptsAll => "accepts-all",
            Self::LateState => "late-state",
            Self::NoSuchInterface => "no-such-interface",
            Self::MissingSet => "missing-set",
            Self::SetUnread => "set-unread",
            Self::MarkUnread => "mark-unread",
            Self::MarkUnset => "mark-unset",
            Self::PastInput => "past-input",
            Self::OpenCommit => "open-commit",
        }
    }

    /// What it means, in one line.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Shadowed => "rules before it take every packet that it matches",
            Self::Unreachable => "no packet gets to it",
            Self::NeverMatches => "no packet passes all of its tests",
            Self::Duplicate => "the same rule stands before it",
            Self::Redundant => "without it the same would happen to every packet",
            Self::UnusedChain => "no rule that packets can get to jumps to the chain",
            Self::IdleChain => "the chain that it jumps to does nothing",
            Self::AcceptsAll => "it accepts whatever gets to it, although the policy is to drop",
            Self::LateState => "it drops packets of a state, some of which were accepted before it",
            Self::NoSuchInterface => "the host has no such interface",
            Self::MissingSet => "the host has no such set",
            Self::SetUnread => "it fills a set that no rule asks",
            Self::MarkUnread => "it sets a mark that no rule reads",
            Self::MarkUnset => "it asks for a mark that no rule sets",
            Self::PastInput => "it sends elsewhere what INPUT denies, and FORWARD lets it through",
            Self::OpenCommit => {
                "the last COMMIT has no newline: iptables-legacy-restore refuses the file"
            }
        }
    }

    /// What several such findings are called, if many of them are reported as one.
    #[must_use]
    pub fn of_many(self) -> Option<&'static str> {
        match self {
            Self::UnusedChain => Some("chains that no built-in chain leads to"),
            Self::IdleChain => Some("jumps to chains that do nothing"),
            Self::MarkUnread => Some("rules set marks, and none here reads one"),
            Self::MarkUnset => Some("rules ask for marks, and none here sets one"),
            _ => None,
        }
    }

    /// What it means, what it rests on, and what to do.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Shadowed => {
                "Every packet that the rule matches ends its way through the chain at one of the rules that are named, \
                 taken together: the rule never counts a packet. It is an error where one of them does something else \
                 with it than the rule would, for then the rule says what does not happen; else a warning. Move it up, \
                 or take it away.\n\
                 Tests that can only be asked (a set, a mark, a string) count as the same test where their text is the \
                 same; tests that remember packets (limit, recent) never do."
            }
            Self::Unreachable => {
                "A rule before it takes whatever gets to the chain. Move the rules up, or take them away."
            }
            Self::NeverMatches => {
                "Its tests contradict each other, or no packet that gets into the chain passes them: an output \
                 interface in INPUT, a protocol other than that of the rule that jumps here, a range that runs \
                 backwards, a mark that rules before it have set to another value. It is a note where the rule only drops \
                 what goes by an interface that the rules which jump here leave out, as docker and podman keep networks \
                 apart of which the host has one: it is there for the next one."
            }
            Self::Duplicate => {
                "The same tests and the same target stand in the same chain before it. If the target ends the walk, \
                 it never counts a packet; if not, it is applied twice. Rules with tests that remember packets are \
                 left out: two limits let more packets pass than one."
            }
            Self::Redundant => {
                "Every packet that the rule takes would get the same verdict without it, by rules after it or the \
                 policy, and no rule that logs, marks or jumps would see it on its way. Rules that are there to count, \
                 or to be fast, are redundant on purpose. Take one away at a time: two may be redundant because of \
                 each other. Packets that end inside a header are not looked at."
            }
            Self::UnusedChain => {
                "Neither a built-in chain nor a chain that it leads to jumps or goes to it. Docker and fail2ban keep \
                 empty ones for later."
            }
            Self::IdleChain => "All that the chain does is return.",
            Self::AcceptsAll => {
                "A rule in INPUT or FORWARD without a test that any packet fails: the policy, DROP, never decides. \
                 Was an interface (-i lo), an address or a state left out?"
            }
            Self::LateState => {
                "A rule drops all packets of a state, INVALID above all, but rules before it accept some of them \
                 without asking for the state. Packets from lo are left out. Move it up if it is meant for all."
            }
            Self::NoSuchInterface => {
                "The links of the host (links.txt of its folder) name no such interface. It may come later: ppp0, \
                 wg0, docker0."
            }
            Self::MissingSet => {
                "The sets of the host (ipset.save of its folder, or --ipset) have no set of that name. Rules with it \
                 are refused as long as it is not there: ipset restore comes before iptables-restore."
            }
            Self::SetUnread => {
                "A rule adds packets to a set, but no rule of any table asks for it. Rules of the other family, a list \
                 of sets, or a program may."
            }
            Self::MarkUnread => {
                "A rule marks packets or connections, but no rule of any table asks for a mark, or copies it on. Marks \
                 are also read by ip rule (rule.txt of a folder is looked at), by tc and by programs; if none of them \
                 does, take the rule away."
            }
            Self::MarkUnset => {
                "A rule asks for a mark, but no rule of any table sets one. A program (SO_MARK), tc or IPsec may; if \
                 none of them does, the mark is 0."
            }
            Self::PastInput => {
                "A rule of INPUT names and denies these packets, but a rule of nat gives them another destination \
                 first, so that they go through FORWARD, which lets them through: the port is open. Docker publishes \
                 ports that way. Deny them in DOCKER-USER, or publish on 127.0.0.1. The packet is walked both ways: \
                 with the translation, and as INPUT would see it."
            }
            Self::OpenCommit => {
                "iptables-legacy-restore knows the word only with the newline after it: it stops at the last line and \
                 loads nothing of that table. iptables-nft-restore takes it. Add the newline."
            }
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Severity {
    /// The name of the severity in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}
