//! [`Request`]: what a client may ask, and how it stands on the line; [`Refusal`]: why it gets something else.
//!
//! docs/control.md has the protocol for who writes a client.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::words::{BanAction, FlowWords};
use crate::run::place::Place;

/// A peer to be.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPeer {
    /// The tunnel; the only one where nothing is said.
    #[serde(default)]
    pub tunnel: Option<String>,
    /// What it is called.
    pub name: String,
    /// Its public key, in base64.
    pub key: String,
    /// What the pair shares besides, in base64.
    #[serde(default)]
    pub preshared: Option<String>,
    /// Where it is, by address or by name.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The prefixes that are its own.
    #[serde(default)]
    pub allowed: Vec<String>,
    /// Seconds of silence after which it gets a keepalive.
    #[serde(default)]
    pub keepalive: Option<u16>,
}

/// Shows nothing of a secret.
impl std::fmt::Debug for NewPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewPeer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a client may ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What has become of all frames.
    Status {},
    /// The counters of rules.
    Counters {
        /// As the save tool prints them with the rules, not by themselves.
        #[serde(default)]
        save: bool,
    },
    /// That it stops.
    Stop {},
    /// That rules are put in force.
    Apply {
        /// Save text, complete or changes to the rules in force.
        text: String,
        /// What errors call it.
        #[serde(default)]
        name: String,
        /// Of the rules: `ip ip6 arp bridge`; told by the text where nothing is said.
        #[serde(default)]
        family: Option<String>,
        /// The text is changes.
        #[serde(default)]
        noflush: bool,
        /// The revision that has to be in force.
        #[serde(default)]
        if_rev: Option<u64>,
        /// Nothing changes: the answer says what would.
        #[serde(default)]
        dry_run: bool,
        /// It goes back after so many seconds, unless it is confirmed.
        #[serde(default)]
        confirm: Option<u64>,
    },
    /// That an earlier revision is in force again.
    Rollback {
        /// Its number; the one before where nothing is said.
        #[serde(default)]
        revision: Option<u64>,
    },
    /// The rules of a revision.
    Get {
        /// Its number; the one in force where nothing is said.
        #[serde(default)]
        revision: Option<u64>,
    },
    /// The revisions that are kept.
    Log {},
    /// That the revision stays that waits for it.
    Confirm {},
    /// Changes of the access list: `bans_text` says how its lines stand.
    Bans {
        /// One change a line.
        text: String,
        /// What lines do that do not say it.
        #[serde(default)]
        action: Option<BanAction>,
        /// Number of its first line, for refusals to count from.
        #[serde(default = "one")]
        line: usize,
    },
    /// What the access list says, as changes that make it of an empty one, so many at a time.
    BansList {
        /// The first of them, from 0.
        #[serde(default)]
        from: usize,
        /// How many.
        most: usize,
    },
    /// What the sets hold.
    SetsList {
        /// Of this name alone.
        #[serde(default)]
        set: Option<String>,
        /// Elements of each that are shown.
        #[serde(default)]
        most: usize,
    },
    /// Changes of the sets: lines of `ipset restore`.
    SetsRestore {
        /// One change a line.
        text: String,
        /// Number of its first line, for refusals to count from.
        #[serde(default = "one")]
        line: usize,
    },
    /// The connections, so many at a time.
    ConntrackList {
        /// Those that are wanted.
        #[serde(default)]
        flows: FlowWords,
        /// Where the answer before said that it goes on.
        #[serde(default)]
        from: Option<Place>,
        /// How many, or some more.
        most: usize,
    },
    /// That these connections end.
    ConntrackDelete {
        /// Those that are wanted.
        flows: FlowWords,
        /// Where the answer before said that it goes on.
        #[serde(default)]
        from: Option<Place>,
    },
    /// That all connections end.
    ConntrackFlush {
        /// Where the answer before said that it goes on.
        #[serde(default)]
        from: Option<Place>,
    },
    /// How the peers of tunnels are.
    Peers {},
    /// That a tunnel has one more peer.
    AddPeer(NewPeer),
    /// That a tunnel has a peer no more.
    RemovePeer {
        /// The tunnel; the only one where nothing is said.
        #[serde(default)]
        tunnel: Option<String>,
        /// Its name or its key.
        peer: String,
    },
    /// Frames as they are dropped, a line for each.
    Watch(Watch),
    /// The last frames that were dropped.
    Drops {},
    /// The rules in force, and what they depend on, as files.
    Snapshot {},
    /// What rules that are tried beside those in force would have done otherwise.
    Shadow {},
    /// That these are tried: texts as of the save tools, one for each family that is to have other rules.
    ShadowStart {
        /// Each whole.
        texts: Vec<String>,
    },
    /// That none are tried any more.
    ShadowStop {},
    /// That those that are tried are put in force.
    Promote {},
    /// Who talked most in the last second. They are counted from the first time that somebody asks.
    Talkers {},
}

/// Which frames are watched, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// Which; docs/control.md has the words.
    #[serde(default)]
    pub filter: String,
    /// So many, and no more.
    #[serde(default)]
    pub count: Option<u64>,
    /// With their bytes.
    #[serde(default)]
    pub frames: bool,
}

fn one() -> usize {
    1
}

/// Why a request gets no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Of what kind that is: clients tell them apart by it.
    pub kind: RefusalKind,
    /// In words.
    pub what: String,
}

/// Of what kind a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// It is none of the requests that there are.
    Request,
    /// The run refuses it.
    Refused,
    /// Too many clients are served.
    Busy,
    /// Another revision is in force than the one that a change was made for.
    Stale,
    /// A text cannot be read: file, line and column.
    Text,
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// It is no request.
    pub(super) fn from_line(line: &str) -> Result<Self, Refusal> {
        serde_json::from_str(line)
            .map_err(|error| Refusal { kind: RefusalKind::Request, what: error.to_string() })
    }
}

impl Refusal {
    pub(in crate::run) fn refused(what: impl ToString) -> Self {
        Self { kind: RefusalKind::Refused, what: what.to_string() }
    }

    /// A word of a request is not what was expected there.
    pub(super) fn expected(what: &str, found: &str) -> Self {
        let what = format!("expected {what}, found \"{}\"", packet::visible::word(found));
        Self { kind: RefusalKind::Request, what }
    }

    pub(super) fn json(&self) -> Value {
        json!({ "error": { "kind": self.kind, "what": self.what } })
    }

    /// What an answer says of a refusal, if it is one.
    pub(super) fn of(answer: &Value) -> Option<Self> {
        let error = answer.get("error")?;
        let kind = Deserialize::deserialize(&error["kind"]).unwrap_or(RefusalKind::Refused);
        let what = error["what"].as_str().unwrap_or_default().to_owned();
        Some(Self { kind, what })
    }
}
