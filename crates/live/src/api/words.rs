//! Parts of requests that are words of other tools: what bans do, and which connections are wanted.

use access::list::Action;
use serde::{Deserialize, Serialize};

/// The action of a change of the access list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BanAction {
    /// [`Action::Ban`].
    Ban,
    /// [`Action::Unban`].
    Unban,
    /// [`Action::Accept`].
    Accept,
    /// [`Action::Deny`].
    Deny,
}

/// Which connections are wanted, in words of conntrack(8); a word that is not there fits all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowWords {
    /// Name or number: `-p`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// ADDRESS or ADDRESS/BITS: `-s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<String>,
    /// `-d`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<String>,
    /// `--sport`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sport: Option<u16>,
    /// `--dport`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dport: Option<u16>,
    /// `-r`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_src: Option<String>,
    /// `-q`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_dst: Option<String>,
    /// MARK or MARK/MASK: `-m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

impl From<BanAction> for Action {
    fn from(action: BanAction) -> Self {
        match action {
            BanAction::Ban => Self::Ban,
            BanAction::Unban => Self::Unban,
            BanAction::Accept => Self::Accept,
            BanAction::Deny => Self::Deny,
        }
    }
}
