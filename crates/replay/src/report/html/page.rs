//! The page, section by section.

use super::markup::{day, escape};
use crate::report::Report;
use crate::time_text::time_text;
use std::fmt::{Result, Write};

const STYLE: &str = include_str!("report.css");

const SCRIPT: &str =
    concat!(include_str!("report.js"), include_str!("search.js"), include_str!("rules.js"));
/// Nothing is loaded from anywhere, and nothing runs but the page's own style and script, which are known by their SHA-256.
/// Lengths of bars are attributes, which no script is.
const POLICY: &str = "default-src 'none'; script-src 'sha256-GHMAy6APNal8TUooSQi70qmJlHA8IST25NPmA3uKlg8='; \
                      style-src 'sha256-Pi/NXR1wpGtNmpo6t0hi5UVJ4vXJXokNr+VxsX2BE9c='; \
                      style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A part of the page: its anchor, its title, and what writes it.
struct Section {
    id: &'static str,
    title: &'static str,
    write: fn(&Report, &mut String) -> Result,
}

const SECTIONS: [Section; 12] = [
    Section { id: "changes", title: "Changes", write: |report, out| report.write_changes(out) },
    Section { id: "verdicts", title: "Verdicts", write: |report, out| report.write_summary(out) },
    Section { id: "timeline", title: "Over time", write: |report, out| report.write_chart(out) },
    Section { id: "drops", title: "Top drops", write: |report, out| report.write_drops(out) },
    Section { id: "who", title: "Who is dropped", write: |report, out| report.write_dropped(out) },
    Section { id: "whose", title: "Whose packets", write: |report, out| report.write_others(out) },
    Section { id: "accepts", title: "Top accepts", write: |report, out| report.write_accepts(out) },
    Section {
        id: "unknown",
        title: "Unknown because",
        write: |report, out| report.write_unknown(out),
    },
    Section { id: "notes", title: "Notes", write: |report, out| report.write_notes(out) },
    Section { id: "packets", title: "Packets", write: |report, out| report.write_listed(out) },
    Section { id: "rules", title: "Rules", write: |report, out| report.write_rules(out) },
    Section {
        id: "new-rules",
        title: "New rules",
        write: |report, out| report.write_new_rules(out),
    },
];

impl Report {
    /// The report as one page; `command` is the command line that made it.
    #[must_use]
    pub fn html(&self, command: &str) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_page(&mut out, command);
        out
    }

    fn write_page(&self, out: &mut String, command: &str) -> Result {
        let mut sections = Vec::with_capacity(SECTIONS.len());
        for section in &SECTIONS {
            let mut body = String::new();
            (section.write)(self, &mut body)?;
            if !body.is_empty() {
                sections.push((section, body));
            }
        }
        self.write_head(out)?;
        self.write_masthead(out)?;
        out.push_str("<nav aria-label=\"Contents\">");
        for (Section { id, title, .. }, _) in &sections {
            write!(out, "<a href=\"#{id}\">{title}</a>")?;
        }
        out.push_str("<button id=\"theme\" type=\"button\" hidden>theme</button></nav>\n<main>\n");
        for (Section { id, title, .. }, body) in &sections {
            write!(out, "<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>\n")?;
        }
        out.push_str("</main>\n");
        self.write_footer(out, command)?;
        write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n")
    }

    fn write_head(&self, out: &mut String) -> Result {
        let names: Vec<&str> = self.files.iter().map(|file| &*file.file).collect();
        let title = format!("tamis: {}", names.join(", "));
        // The day of a packet's time is shown only where days differ.
        let one_day = self
            .span()
            .is_some_and(|(first, last)| day(&time_text(first)) == day(&time_text(last)));
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body{}>\n",
            escape(&title),
            if one_day { " class=\"one-day\"" } else { "" }
        )
    }

    fn write_footer(&self, out: &mut String, command: &str) -> Result {
        let version = env!("CARGO_PKG_VERSION");
        write!(
            out,
            "<footer>\n<p>Made by tamis {version} with <code class=\"command\" tabindex=\"0\">{}</code></p>\n\
             <p>Next <code class=\"command\" tabindex=\"0\">{}</code></p>\n</footer>\n",
            escape(command),
            escape(&self.next_command())
        )
    }
}

#[cfg(test)]
mod tests {
    use base64ct::{Base64, Encoding};
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_names_style_and_script_and_nothing_inline() {
        for (of, text) in [("script-src", SCRIPT), ("style-src", STYLE)] {
            let hash = Base64::encode_string(&Sha256::digest(text));
            assert!(POLICY.contains(&format!("{of} 'sha256-{hash}';")), "{of} 'sha256-{hash}'");
        }
    }
}
