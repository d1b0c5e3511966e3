//! Parts of requests that are words of other tools: what bans do, and which connections are wanted.

use access::list::Action;
use conntrack::{Prefix, Wanted};
use serde::{Deserialize, Serialize};

use super::request::Refusal;

/// What a change of the access list does.
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

/// Which connections are wanted, in words of conntrack(8); what is not there fits all.
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

impl FlowWords {
    /// What they say.
    ///
    /// # Errors
    /// A word cannot be read.
    pub(super) fn wanted(&self) -> Result<Wanted, Refusal> {
        Ok(Wanted {
            protocol: self.protocol.as_deref().map(protocol).transpose()?,
            source: prefix("src", self.src.as_deref())?,
            destination: prefix("dst", self.dst.as_deref())?,
            source_port: self.sport,
            destination_port: self.dport,
            reply_source: prefix("reply_src", self.reply_src.as_deref())?,
            reply_destination: prefix("reply_dst", self.reply_dst.as_deref())?,
            mark: self.mark.as_deref().map(mark).transpose()?,
        })
    }
}

fn protocol(text: &str) -> Result<u8, Refusal> {
    let number = text.parse().ok().or_else(|| rules::protocol_number(text));
    number.ok_or_else(|| Refusal::expected("protocol: a name such as tcp, or a number", text))
}

fn prefix(field: &str, text: Option<&str>) -> Result<Option<Prefix>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let prefix = Prefix::parse(text);
    let wrong = || Refusal::expected(&format!("{field}: ADDRESS or ADDRESS/BITS"), text);
    prefix.map(Some).ok_or_else(wrong)
}

/// As conntrack(8) takes it: without a mask all bits count.
fn mark(text: &str) -> Result<(u32, u32), Refusal> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let read = match text.split_once('/') {
        Some((mark, mask)) => number(mark).zip(number(mask)),
        None => number(text).map(|mark| (mark, u32::MAX)),
    };
    read.ok_or_else(|| Refusal::expected("mark: MARK or MARK/MASK", text))
}
