//! The report as one self-contained page: the original rules text as a coverage report, with the hits of
//! each rule in the margin. No script, no network.

use std::collections::HashMap;
use std::fmt::Write;

use super::{Count, Report};
use crate::report::text::number;
use crate::rules_file::RulesFile;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--dim:#8889;--hit:#1a7f37;--maybe:#b58900}\
@media(prefers-color-scheme:dark){:root{--hit:#3fb950;--maybe:#d9a520}}\
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}\
h1{font-size:1.3rem}table{border-collapse:collapse;width:100%}\
td,th{text-align:right;padding:.15rem .6rem;border-bottom:1px solid var(--line)}\
td:first-child,th:first-child,.rules td:last-child{text-align:left}\
.rules{font:13px/1.45 ui-monospace,monospace}.rules td{border:0;padding:0 .6rem;white-space:pre-wrap;\
overflow-wrap:anywhere}.rules td:nth-child(-n+3){color:var(--dim);white-space:nowrap;user-select:none}\
.hit td:nth-child(2){color:var(--hit);font-weight:600}.maybe td:nth-child(2){color:var(--maybe)}\
.never td:last-child{color:var(--dim)}.scroll{overflow-x:auto}";

/// What the margin shows for one line of the text.
#[derive(Default, Clone, Copy)]
struct Margin {
    packets: u64,
    bytes: u64,
    maybe: u64,
    counted: bool,
}

impl Report<'_> {
    /// The report as one page.
    #[must_use]
    pub fn html(&self, title: &str) -> String {
        let mut out = String::new();
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{0}</title><style>{STYLE}</style></head><body><h1>{0}</h1>\n",
            escape(title)
        );
        self.html_verdicts(&mut out);
        self.html_unknown(&mut out);
        for (index, file) in self.files.iter().enumerate() {
            self.html_rules(&mut out, index, file);
        }
        out.push_str("</body></html>\n");
        out
    }

    fn html_verdicts(&self, out: &mut String) {
        let captures: Vec<String> =
            self.captures.iter().map(|capture| escape(&capture.file)).collect();
        let _ = write!(out, "<p>{} packets of {}</p>", number(self.packets), captures.join(", "));
        out.push_str("<table id=\"verdicts\"><tr><th>verdict<th>packets<th>bytes</tr>\n");
        let rows: [(&str, Count); 5] = [
            ("accept", self.verdicts.accept),
            ("drop", self.verdicts.drop),
            ("reject", self.verdicts.reject),
            ("unknown", self.verdicts.unknown),
            ("skip", self.verdicts.skip),
        ];
        for (name, count) in rows {
            let (packets, bytes) = (number(count.packets), number(count.bytes));
            let _ = writeln!(out, "<tr><td>{name}<td>{packets}<td>{bytes}</tr>");
        }
        out.push_str("</table>\n");
    }

    fn html_unknown(&self, out: &mut String) {
        let reasons = self.unknown_reasons();
        if reasons.is_empty() {
            return;
        }
        out.push_str("<p>Unknown because of:</p><ul>\n");
        for (line, what, packets) in reasons {
            let line = line.map_or_else(String::new, |line| format!("line {line}: "));
            let _ = writeln!(out, "<li>{line}{}: {} packets</li>", escape(&what), number(packets));
        }
        out.push_str("</ul>\n");
    }

    fn html_rules(&self, out: &mut String, index: usize, file: &RulesFile) {
        let margins = self.margins(index, file);
        let _ = writeln!(
            out,
            "<h2>{}</h2><div class=\"scroll\"><table class=\"rules\">",
            escape(&file.file)
        );
        for (number_of, line) in file.text.lines().enumerate() {
            let line_number = number_of as u32 + 1;
            let margin = margins.get(&line_number).copied().unwrap_or_default();
            let class = match margin {
                Margin { counted: false, .. } => "",
                Margin { packets: 1.., .. } => " class=\"hit\"",
                Margin { maybe: 1.., .. } => " class=\"maybe\"",
                _ => " class=\"never\"",
            };
            let (packets, bytes) = cells(margin);
            let _ = writeln!(
                out,
                "<tr id=\"L{line_number}\"{class}><td>{line_number}<td>{packets}<td>{bytes}<td>{}</tr>",
                escape(line)
            );
        }
        out.push_str("</table></div>\n");
    }

    /// Hits by line: a line with address lists made several rules.
    fn margins(&self, index: usize, file: &RulesFile) -> HashMap<u32, Margin> {
        let mut margins: HashMap<u32, Margin> = HashMap::new();
        for (at, _, _, rule) in file.rules() {
            let tally = self.counters[index].rule(at);
            let margin = margins.entry(rule.line).or_default();
            margin.packets += tally.packets;
            margin.bytes += tally.bytes;
            margin.maybe += tally.maybe;
            margin.counted = true;
        }
        margins
    }
}

/// Packets and bytes of a margin.
fn cells(margin: Margin) -> (String, String) {
    match margin {
        Margin { counted: false, .. } => (String::new(), String::new()),
        Margin { packets: 0, maybe: 1.., .. } => {
            (format!("{}?", number(margin.maybe)), String::new())
        }
        _ => (number(margin.packets), number(margin.bytes)),
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_rules_cannot_become_markup() {
        assert_eq!(escape("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}
