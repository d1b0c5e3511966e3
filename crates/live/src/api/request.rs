//! [`Request`]: a client's request, and its form on a line.
//!
//! docs/control.md describes the protocol for authors of clients.

use serde::{Deserialize, Serialize};

use super::words::{BanAction, FlowWords};
use crate::answers::{Place, Refusal};

/// A peer to be added.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPeer {
    /// The tunnel; may be left out where there is only one.
    #[serde(default)]
    pub tunnel: Option<String>,
    /// The peer's name.
    pub name: String,
    /// The peer's public key, in base64.
    pub key: String,
    /// The secret that the pair shares besides, in base64.
    #[serde(default)]
    pub preshared: Option<String>,
    /// The peer's endpoint, by address or by name.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The prefixes that belong to the peer.
    #[serde(default)]
    pub allowed: Vec<String>,
    /// Seconds of silence after which the peer gets a keepalive.
    #[serde(default)]
    pub keepalive: Option<u16>,
}

/// Prints nothing of a secret.
impl std::fmt::Debug for NewPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewPeer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Asks what has become of all frames.
    Status {},
    /// Asks for the counters of rules.
    Counters {
        /// With the rules, as the save tool prints them, instead of by themselves.
        #[serde(default)]
        save: bool,
    },
    /// Stops the run.
    Stop {},
    /// Puts rules in force.
    Apply {
        /// Save text, complete or changes to the rules in force.
        text: String,
        /// The text's name in errors.
        #[serde(default)]
        name: String,
        /// The family of the rules: `ip ip6 arp bridge`; by default the text decides.
        #[serde(default)]
        family: Option<String>,
        /// Whether the text changes the rules instead of replacing them.
        #[serde(default)]
        noflush: bool,
        /// The revision that has to be in force.
        #[serde(default)]
        if_rev: Option<u64>,
        /// Changes nothing: the answer says what would change.
        #[serde(default)]
        dry_run: bool,
        /// Seconds after which the change is reverted, unless it is confirmed.
        #[serde(default)]
        confirm: Option<u64>,
    },
    /// Puts an earlier revision in force again.
    Rollback {
        /// The number of the revision; by default the one before.
        #[serde(default)]
        revision: Option<u64>,
    },
    /// Asks for the rules of a revision.
    Get {
        /// The number of the revision; by default the one in force.
        #[serde(default)]
        revision: Option<u64>,
    },
    /// Asks for the revisions that are kept.
    Log {},
    /// Confirms the revision that waits for it.
    Confirm {},
    /// Changes the access list: `bans_text` defines its lines.
    Bans {
        /// One change per line.
        text: String,
        /// The action of lines that name none.
        #[serde(default)]
        action: Option<BanAction>,
        /// Number of the first line, for refusals to count from.
        #[serde(default = "one")]
        line: usize,
    },
    /// Asks for the access list, as changes that make it of an empty one, a part at a time.
    BansList {
        /// The first change wanted, from 0.
        #[serde(default)]
        from: usize,
        /// The number of changes wanted.
        most: usize,
    },
    /// Asks for the contents of the sets.
    SetsList {
        /// The name of the only set wanted.
        #[serde(default)]
        set: Option<String>,
        /// The number of elements of each set to show.
        #[serde(default)]
        most: usize,
    },
    /// Changes the sets: lines of `ipset restore`.
    SetsRestore {
        /// One change per line.
        text: String,
        /// Number of the first line, for refusals to count from.
        #[serde(default = "one")]
        line: usize,
    },
    /// Asks for the connections, a part at a time.
    ConntrackList {
        /// The connections that are wanted.
        #[serde(default)]
        flows: FlowWords,
        /// Where the previous answer said that it goes on.
        #[serde(default)]
        from: Option<Place>,
        /// The number of connections wanted; the answer may hold some more.
        most: usize,
    },
    /// Ends these connections.
    ConntrackDelete {
        /// The connections that are to end.
        flows: FlowWords,
        /// Where the previous answer said that it goes on.
        #[serde(default)]
        from: Option<Place>,
    },
    /// Ends all connections.
    ConntrackFlush {
        /// Where the previous answer said that it goes on.
        #[serde(default)]
        from: Option<Place>,
    },
    /// Asks for the state of the peers of tunnels.
    Peers {},
    /// Adds a peer to a tunnel.
    AddPeer(NewPeer),
    /// Removes a peer from a tunnel.
    RemovePeer {
        /// The tunnel; may be left out where there is only one.
        #[serde(default)]
        tunnel: Option<String>,
        /// The peer's name or key.
        peer: String,
    },
    /// Asks for frames as they are dropped, a line for each.
    Watch(Watch),
    /// Asks for the last frames that were dropped.
    Drops {},
    /// Asks for the rules in force, and what they depend on, as files.
    Snapshot {},
    /// Asks for the differing verdicts of the shadow.
    Shadow {},
    /// Starts a shadow of these rules: texts as of the save tools, one for each family that is to have other rules.
    ShadowStart {
        /// The texts, each whole.
        texts: Vec<String>,
    },
    /// Stops the shadow.
    ShadowStop {},
    /// Puts the rules of the shadow in force.
    Promote {},
    /// Asks for the busiest talkers of the last second. They are counted from the first such request on.
    Talkers {},
}

/// Which frames are watched, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// The filter; docs/control.md has the words.
    #[serde(default)]
    pub filter: String,
    /// The number of frames after which the watch ends.
    #[serde(default)]
    pub count: Option<u64>,
    /// Whether frames come with their bytes.
    #[serde(default)]
    pub frames: bool,
}

fn one() -> usize {
    1
}

impl Request {
    /// Reads a request from a line.
    ///
    /// # Errors
    /// The line is no request.
    pub(crate) fn from_line(line: &str) -> Result<Self, Refusal> {
        serde_json::from_str(line).map_err(Refusal::request)
    }
}
