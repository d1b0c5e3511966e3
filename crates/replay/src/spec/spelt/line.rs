//! [`line`]: the SPEC that a line of any of these programs amounts to.

use super::said::{Among, Said};
use super::{connection, log, tcpdump, trace};
use crate::logged::Prefix;
use crate::spec::word::{SpecError, Word, split};

/// What a line says of a packet, as a SPEC and beyond one.
#[derive(Debug)]
pub(in super::super) struct Line {
    pub(in super::super) words: String,
    /// The prefix of the rule that logged it.
    pub(in super::super) logged: Option<Prefix>,
    pub(in super::super) among: Among,
}

/// What such a line says; `None` if it seems to be none.
pub(in super::super) fn line(text: &str) -> Result<Option<Line>, SpecError> {
    let words = split(text);
    let logged = || log::prefix(text);
    let reads: [(Read, bool); 4] = [
        (log::read, true),
        (trace::read, false),
        (connection::read, false),
        (tcpdump::read, false),
    ];
    for (read, is_log) in reads {
        if let Some(said) = read(&words, text.len() + 1)? {
            said.check(&words, text.len() + 1)?;
            let logged = if is_log { logged() } else { None };
            return Ok(Some(Line { words: said.to_string(), logged, among: said.among }));
        }
    }
    Ok(None)
}

/// Reads the words of a line that ends at a column.
type Read = fn(&[Word<'_>], usize) -> Result<Option<Said>, SpecError>;
