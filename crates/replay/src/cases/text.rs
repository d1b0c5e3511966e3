//! Results for people: the failing cases, each with the command that tells its story.

use std::fmt::Write;

use packet::visible::{self, word};

use super::Results;

impl Results {
    /// The results as text. It ends with the next command worth typing.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let file = word(&self.cases.file);
        let mut next = None;
        // Writing to a String cannot fail.
        for (case, wrong) in self.failed() {
            let _ = writeln!(out, "FAIL {file}:{} {}: {}", case.line, word(&case.name), wrong.what);
            let _ = writeln!(out, "     {}", self.why_command(case, wrong.packet, ""));
            next.get_or_insert((case, wrong.packet));
        }
        let (passed, failed) = (self.passed(), self.failed().count());
        let _ = writeln!(out, "{passed} passed, {failed} failed");
        let first = self.cases.cases.first();
        let next = match next {
            Some((case, packet)) => Some(self.why_command(case, packet, " --near 3")),
            None => {
                first.map(|case| self.why_command(case, case.packets.len().saturating_sub(1), ""))
            }
        };
        let _ = next.map(|next| writeln!(out, "next: {next}"));
        visible::text(&out).into_owned()
    }
}
