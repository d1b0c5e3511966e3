//! Results as annotations that GitHub shows next to the lines of the cases file.
//!
//! Source: GitHub Actions, "Workflow commands": `::error file=…,line=…,title=…::message`.

use std::fmt::Write;

use packet::visible;

use super::Results;

impl Results {
    /// Returns one workflow command for each failing case.
    #[must_use]
    pub fn github(&self) -> String {
        let mut out = String::new();
        let file = &self.cases.file;
        for (case, wrong) in self.failed() {
            let why = self.why_command(case, wrong.packet, "");
            let message = format!("{}\n{why}", wrong.what);
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", annotation("error", file, case.line, &case.name, &message));
        }
        out
    }
}

/// An annotation of a line of a file: `level` is error, warning or notice.
#[must_use]
pub fn annotation(level: &str, file: &str, line: usize, title: &str, text: &str) -> String {
    let (file, title, text) = (property(file), property(title), message(text));
    format!("::{level} file={file},line={line},title={title}::{text}")
}

/// Text after the second `::`.
fn message(text: &str) -> String {
    visible::text(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
