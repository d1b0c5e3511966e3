//! `--follow`: a line for each packet as it comes, with its number, its verdict and what decided.

use std::io::{self, Write};

use dataplane::{Disposition, FinalVerdict};
use packet::visible;

use crate::decider::DeciderPlace;
use crate::evaluated::Evaluated;
use crate::list::Lists;

/// Where the lines go.
pub(crate) struct Lines<'w> {
    pub(crate) to: &'w mut dyn Write,
    /// Writes packets on this list alone.
    pub(crate) list: Option<Lists>,
}

impl Lines<'_> {
    /// Writes the line of a packet, if it is wanted.
    pub(crate) fn write(&mut self, evaluated: &Evaluated<'_>) -> io::Result<()> {
        let Evaluated { end, place, .. } = *evaluated;
        let word = end.verdict.word();
        let new = evaluated.new.filter(|(new, _)| new.verdict.word() != word);
        if self.list.as_ref().is_some_and(|list| !list.lists(end, new.is_some())) {
            return Ok(());
        }
        let number = evaluated.numbers.show(evaluated.frame);
        let packet = evaluated.words.as_ref().map_or_else(
            || format!("a frame of link type {}", evaluated.meta.link_type.0),
            |words| words.line.clone(),
        );
        let by = decided(end, place);
        let new = new.map_or_else(String::new, |(end, place)| {
            format!("  -> {}{}", end.verdict.word(), decided(end, place))
        });
        let line = format!("#{number} {word}: {packet}{by}{new}");
        writeln!(self.to, "{}", visible::word(&line))
    }
}

/// What decided, or what a verdict that is not known depends on.
fn decided(end: &Disposition, place: &DeciderPlace<'_>) -> String {
    let between = match end.verdict {
        FinalVerdict::Accept(_) | FinalVerdict::Drop(_) | FinalVerdict::Reject(_) => "  by ",
        FinalVerdict::Unknown | FinalVerdict::Skip(_) => "  ",
    };
    between.to_owned() + &place.with_line()
}
