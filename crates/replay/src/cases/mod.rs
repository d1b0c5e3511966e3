//! Cases: packet specs, and what rules are expected to do with them. `tamis test` holds rules to them.
//!
//! A cases file is TOML:
//!
//! ```toml
//! rules = "rules.v4"         # optional; lies beside this file or below; RULES on the command line wins
//! rules6 = "rules.v6"        # optional: IPv6 rules beside them, as --rules6
//!
//! [defaults]                 # optional; each key is the option of that name, which wins
//! in = "eth0"
//! out = "eth1"
//! net = ["eth0=0.0.0.0/0", "eth1=10.0.0.0/8"]
//! local = ["192.0.2.1"]
//! path = "forward"           # forward, input, output or auto
//! ct = "kernel"              # kernel, midstream or off
//! queue-verdict = ["accept", "3=drop"]
//!
//! [[case]]
//! name = "the database is not reachable from outside"
//! packet = "in=eth0 out=eth1 tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn"
//! expect = "drop"            # accept, drop, reject or unknown
//! by = "filter/FORWARD/12"   # optional: table/chain/number, table/chain/policy or ttl
//!
//! [[case]]
//! name = "an answer comes back"
//! packets = ["udp 10.0.0.9:4000 > 192.0.2.53:53", "udp 192.0.2.53:53 > 10.0.0.9:4000"]
//! expect = ["accept", "accept"]   # one for each packet; a single string is expected of every packet
//! by_text = "-A FORWARD -p udp --sport 53 -j ACCEPT"     # instead of by: the rule's text
//! ```
//!
//! `packets` are a conversation: they run in order through one handler, which remembers. `by` and `by_text`
//! say what is to decide the last packet. A case starts afresh: it sees nothing of the cases before it.
//!
//! Contract: what is wrong in a file is an error with its line and column; what is wrong about the rules
//! (a rule that is gone, a verdict that changed) is a failing case.

mod evaluate;
mod github;
mod json;
mod junit;
mod named;
mod place;
mod read;
pub mod record;
mod text;

pub use evaluate::{CaseResult, Decided, Got, Results, evaluate};
pub use github::annotation;
pub use named::NamedFile;
pub use place::PlaceName;

use conntrack::Mode;
use dataplane::{Config, Path};
use host::{Network, Queues};

use crate::spec::Spec;

/// A cases file as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cases {
    /// Its name, as given.
    pub file: String,
    /// `rules`: the rules file, found from where the cases file lies.
    pub rules: Option<NamedFile>,
    /// `rules6`: IPv6 rules beside them.
    pub rules6: Option<NamedFile>,
    /// `[defaults]`.
    pub defaults: Defaults,
    /// `[[case]]`, at least one, in the order of the file.
    pub cases: Vec<Case>,
}

/// How the packets of all cases walk, where the command line does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Defaults {
    /// `in`.
    pub input: Option<String>,
    /// `out`.
    pub output: Option<String>,
    /// `net`.
    pub nets: Vec<(String, Network)>,
    /// `local`.
    pub local: Vec<Network>,
    /// `path`; `auto` is `None`.
    pub path: Option<Path>,
    /// `ct`.
    pub ct: Option<Mode>,
    /// `queue-verdict`.
    pub queues: Queues,
}

/// Which options of a configuration were given, where their value alone does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Given {
    /// `--path`.
    pub path: bool,
    /// `--ct`.
    pub ct: bool,
}

/// One `[[case]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// `name`.
    pub name: String,
    /// Line of its `[[case]]`, from 1.
    pub line: usize,
    /// `packet` or `packets`, each with what is expected of it; never empty.
    pub packets: Vec<Expected>,
    /// `by` or `by_text`: what is to decide the last packet.
    pub by: Option<ExpectedBy>,
}

/// A packet and its expected verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The SPEC as written.
    pub text: String,
    /// The SPEC as read.
    pub spec: Spec,
    /// The verdict that it is to come to.
    pub verdict: Expect,
}

/// An expected verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// It goes through.
    Accept,
    /// It is dropped silently.
    Drop,
    /// It is dropped and its sender told.
    Reject,
    /// Its verdict depends on something that is not known.
    Unknown,
}

/// What is expected to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedBy {
    /// `by`.
    Place(PlaceName),
    /// `by_text`.
    Text(String),
}

impl Expect {
    const ALL: [Self; 4] = [Self::Accept, Self::Drop, Self::Reject, Self::Unknown];

    /// The word of the file, which is that of `--verdicts`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Drop => "drop",
            Self::Reject => "reject",
            Self::Unknown => "unknown",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|expect| expect.word() == word)
    }
}

impl Defaults {
    /// Fills in what the configuration leaves open.
    #[must_use]
    pub fn under(&self, mut config: Config, given: Given) -> Config {
        if !given.path {
            config.path = self.path;
        }
        if !given.ct {
            config.ct.mode = self.ct.unwrap_or(config.ct.mode);
        }
        config.input = config.input.or_else(|| self.input.clone());
        config.output = config.output.or_else(|| self.output.clone());
        if config.nets.is_empty() {
            config.nets.clone_from(&self.nets);
        }
        if config.host.local.is_none() && !self.local.is_empty() {
            config.host.local = Some(self.local.clone());
        }
        if config.host.queues == Queues::default() {
            config.host.queues.clone_from(&self.queues);
        }
        config
    }
}
