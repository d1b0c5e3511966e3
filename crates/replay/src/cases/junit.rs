//! Results as JUnit XML, which CI servers read.
//!
//! Contract: well-formed XML 1.0 whatever the names hold.
//! Source: the schema that Jenkins' xUnit plugin publishes (`junit-10.xsd`); GitLab and GitHub's reporters
//! read the attributes `file` and `line` besides.

use std::fmt::Write;

use super::{CaseResult, Results};

impl Results {
    /// The XML document of `--junit`.
    #[must_use]
    pub fn junit(&self) -> String {
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\" time=\"{:.6}\"",
            self.results.len(),
            self.failed().count(),
            self.elapsed_s
        );
        let file = escape(&self.cases.file);
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "<testsuites name=\"tamis\" {counts}>");
        let _ = writeln!(out, "<testsuite name=\"{file}\" {counts}>");
        for result in &self.results {
            out.push_str(&self.junit_case(result));
        }
        out.push_str("</testsuite>\n</testsuites>\n");
        out
    }

    fn junit_case(&self, result: &CaseResult) -> String {
        let case = self.case(result);
        let head = format!(
            "<testcase name=\"{}\" classname=\"{file}\" file=\"{file}\" line=\"{}\" time=\"{:.6}\"",
            escape(&case.name),
            case.line,
            result.elapsed_s,
            file = escape(&self.cases.file),
        );
        match &result.wrong {
            None => format!("{head}/>\n"),
            Some(wrong) => format!(
                "{head}>\n<failure type=\"verdict\" message=\"{}\">{}</failure>\n</testcase>\n",
                escape(&wrong.what),
                escape(&format!("{}\n{}", wrong.what, self.why_command(case, wrong.packet, ""))),
            ),
        }
    }
}

/// Text for an element or an attribute in double quotes. What XML 1.0 cannot hold at all becomes U+FFFD.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_stands_in_an_attribute_and_in_an_element(text in any::<String>()) {
            let xml = format!("<a b=\"{0}\">{0}</a>", escape(&text));
            let document = roxmltree::Document::parse(&xml).unwrap();
            let expected: String = text
                .chars()
                .map(|c| match c {
                    '\t' | '\n' | '\r' => c,
                    '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
                    _ => c,
                })
                .collect();
            let root = document.root_element();
            prop_assert_eq!(root.attribute("b").unwrap(), &expected);
            prop_assert_eq!(root.text().unwrap_or_default(), &expected);
        }
    }
}
