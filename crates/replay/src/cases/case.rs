//! [`Cases`]: what a file of cases says.

use conntrack::Mode;
use dataplane::{Config, Path};
use host::{Network, Queues};

use super::place::PlaceName;
use crate::named_file::NamedFile;
use crate::spec::{Contents, Spec};

/// A cases file as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cases {
    /// Name of the file, as given.
    pub file: String,
    /// `rules`: the rules file, found from where the cases file lies.
    pub rules: Option<NamedFile>,
    /// `rules6`: the file of IPv6 rules that goes with them.
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
    /// What packets hold that do not say so: `payload`, `options`, `mac` and others.
    pub contents: Contents,
    /// Contents as written, each with its key.
    pub written: Vec<(&'static str, String)>,
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
    /// Where it stands: line and column, from 1.
    pub at: (usize, usize),
    /// The SPEC with the contents of `[defaults]`, for use on a command line.
    pub typed: String,
    /// The SPEC as read.
    pub spec: Spec,
    /// The verdict that it is to come to.
    pub verdict: Expect,
}

/// An expected verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The packet goes through.
    Accept,
    /// The packet is dropped silently.
    Drop,
    /// The packet is dropped, and its sender gets an answer.
    Reject,
    /// The verdict depends on something that is not known.
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
    pub(super) const ALL: [Self; 4] = [Self::Accept, Self::Drop, Self::Reject, Self::Unknown];

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

    pub(super) fn from_word(word: &str) -> Option<Self> {
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
