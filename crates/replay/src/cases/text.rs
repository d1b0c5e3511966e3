//! Results for people: the failing cases, each with the command that tells its story.

use std::fmt::Write;

use super::Results;
use crate::visible::visible;

impl Results<'_> {
    /// The results as text. It ends with the next command worth typing.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let file = &self.cases.file;
        let mut next = None;
        // Writing to a String cannot fail.
        for (judged, wrong) in self.failed() {
            let case = judged.case;
            let _ =
                writeln!(out, "FAIL {file}:{} {}: {}", case.line, one_line(&case.name), wrong.what);
            let why = self.why_command(case, wrong.packet);
            let _ = writeln!(out, "     {why}");
            next.get_or_insert(why);
        }
        let (passed, failed) = (self.passed(), self.failed().count());
        let _ = writeln!(out, "{passed} passed, {failed} failed");
        let first = self.cases.cases.first();
        let next = match next {
            Some(why) => Some(format!("{why} --near 3")),
            None => first.map(|case| self.why_command(case, case.packets.len().saturating_sub(1))),
        };
        let _ = next.map(|next| writeln!(out, "next: {next}"));
        visible(&out).into_owned()
    }
}

/// A name without line breaks and other control characters.
pub(super) fn one_line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
