//! Reads which connections a request is about.

use conntrack::{Prefix, Wanted};

use crate::answers::Refusal;
use crate::api::words::FlowWords;

/// Which connections these words are about.
///
/// # Errors
/// A word cannot be read.
pub(super) fn wanted(words: &FlowWords) -> Result<Wanted, Refusal> {
    Ok(Wanted {
        protocol: words.protocol.as_deref().map(protocol).transpose()?,
        source: prefix("src", words.src.as_deref())?,
        destination: prefix("dst", words.dst.as_deref())?,
        source_port: words.sport,
        destination_port: words.dport,
        reply_source: prefix("reply_src", words.reply_src.as_deref())?,
        reply_destination: prefix("reply_dst", words.reply_dst.as_deref())?,
        mark: words.mark.as_deref().map(mark).transpose()?,
    })
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

/// Reads a mark as conntrack(8) takes it: without a mask all bits count.
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
