//! Packets on the page: examples, each with the path that it took, what unknown verdicts depend on, and the
//! packets that `--list` asked for.

use std::fmt::{Result, Write};

use super::markup::{ROWS, anchor, escape, line_link, write_time};
use crate::report::examples::{End, Example, PathOf};
use crate::report::text::{number, plural};
use crate::report::{Report, UnknownReason};
use crate::source::Numbers;

impl Report {
    /// What unknown verdicts depend on.
    pub(super) fn write_unknown(&self, out: &mut String) -> Result {
        let reasons = self.unknown_places();
        if reasons.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "<p class=\"dim\">A verdict is unknown where it depends on something that is not modelled, \
             not captured or not told; it is never guessed. {} in all.</p>",
            plural(self.verdicts.unknown.packets, "packet")
        )?;
        out.push_str(
            "<div class=\"scroll\" tabindex=\"0\"><table id=\"unknown-table\" class=\"sort\">\n\
             <thead><tr><th scope=\"col\" class=\"n\">packets<th scope=\"col\">what they depend on</thead>\n",
        );
        for UnknownReason { place, what, packets, .. } in reasons.iter().take(ROWS) {
            let text = number(*packets);
            write!(out, "<tbody><tr><td class=\"n\" data-v=\"{packets}\">{text}<td>")?;
            if let Some((file, line)) = place {
                line_link(out, *file, *line)?;
            }
            writeln!(out, "{}", escape(what))?;
        }
        out.push_str("</table></div>\n");
        if reasons.len() > ROWS {
            let more = number((reasons.len() - ROWS) as u64);
            writeln!(out, "<p class=\"dim\">and {more} more (--json has them all)</p>")?;
        }
        self.write_example_list(out, self.examples.of(End::Unknown))
    }

    /// The packets of `--list`.
    pub(super) fn write_listed(&self, out: &mut String) -> Result {
        if self.listed.is_empty() {
            return Ok(());
        }
        out.push_str(
            "<div class=\"scroll\" tabindex=\"0\"><table id=\"listed-table\" class=\"sort rows\">\n\
             <thead><tr><th scope=\"col\" class=\"n\">number<th scope=\"col\">time\
             <th scope=\"col\">verdict<th scope=\"col\">packet<th scope=\"col\">what decided</thead>\n",
        );
        for listed in &self.listed {
            let (frame, word) = (listed.frame, listed.disposition.verdict.word());
            write!(
                out,
                "<tbody><tr><td class=\"n\" data-v=\"{frame}\">{}",
                shown(&self.numbers, frame)
            )?;
            write!(out, "<td class=\"when\" data-v=\"{}\">", listed.time.unwrap_or(0))?;
            write_time(out, listed.time)?;
            write!(out, "<td><i class=\"key {word}\"></i>{word}<td>")?;
            self.write_opening(out, frame, &format!("<code>{}</code>", escape(&listed.packet)))?;
            out.push_str("<td>");
            if let Some((line, text)) = self.decided_by(&listed.disposition) {
                let file = listed.disposition.family.and_then(|family| self.file_index(family));
                line_link(out, file.unwrap_or(0), line)?;
                write!(out, "<code>{}</code>", escape(&text))?;
            }
            out.push('\n');
        }
        out.push_str("</table></div>\n");
        Ok(())
    }

    /// Examples that open to their paths.
    pub(super) fn write_example_list(&self, out: &mut String, examples: &[Example]) -> Result {
        write_list(out, examples, |out, example| {
            self.write_opening(out, example.frame, &line_of(example, &self.numbers)?)
        })
    }

    /// A packet's line, which opens to its path where that is known.
    fn write_opening(&self, out: &mut String, frame: u64, line: &str) -> Result {
        let Some(path) = self.paths_of.get(&frame) else {
            out.push_str(line);
            return Ok(());
        };
        write!(out, "<details><summary>{line}</summary><pre class=\"path\" tabindex=\"0\">")?;
        self.write_path(out, path)?;
        out.push_str("</pre></details>");
        Ok(())
    }

    /// A path, its rules as links.
    fn write_path(&self, out: &mut String, path: &PathOf) -> Result {
        let file = path.family.and_then(|family| self.file_index(family));
        for line in path.text.lines() {
            match file.zip(line_named(line)) {
                Some((file, (start, end, number))) => write!(
                    out,
                    "{}<a href=\"#{}\">{}</a>{}",
                    escape(&line[..start]),
                    anchor(file, number),
                    &line[start..end],
                    escape(&line[end..])
                )?,
                None => out.push_str(&escape(line)),
            }
            out.push('\n');
        }
        Ok(())
    }
}

/// Where the line of a path names a line of the rules, as a rule that was met or as what decided: from where to
/// where, and its number.
fn line_named(line: &str) -> Option<(usize, usize, u32)> {
    let indent = line.len() - line.trim_start().len();
    let after = |words: &str| line.find(words).map(|at| at + words.len());
    let is_verdict = line.starts_with(|first: char| first.is_ascii_uppercase());
    let start = match indent {
        0 if is_verdict => after(" by ")?,
        0 => return None,
        _ if line[indent..].starts_with("depends on ") => after("depends on ")?,
        _ => indent,
    };
    let digits = line[start..].strip_prefix('L')?;
    let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits[..length].parse().ok().filter(|number| *number > 0)?;
    let ends = digits[length..].is_empty() || digits[length..].starts_with(' ');
    ends.then_some((start, start + 1 + length, number))
}

/// A frame number, which may name its capture.
fn shown(numbers: &Numbers, frame: u64) -> String {
    match numbers.file(frame) {
        Some(_) => escape(&numbers.show(frame).to_string()),
        None => number(frame),
    }
}

/// Examples without their paths.
pub(super) fn write_plain_examples(
    out: &mut String,
    examples: &[Example],
    numbers: &Numbers,
) -> Result {
    write_list(out, examples, |out, example| {
        out.push_str(&line_of(example, numbers)?);
        Ok(())
    })
}

fn write_list(
    out: &mut String,
    examples: &[Example],
    mut write: impl FnMut(&mut String, &Example) -> Result,
) -> Result {
    if examples.is_empty() {
        return Ok(());
    }
    out.push_str("<ol class=\"examples\">");
    for example in examples {
        out.push_str("<li>");
        write(out, example)?;
    }
    out.push_str("</ol>");
    Ok(())
}

/// A packet in a line.
fn line_of(example: &Example, numbers: &Numbers) -> std::result::Result<String, std::fmt::Error> {
    let mut line = format!("<b>#{}</b> ", shown(numbers, example.frame));
    write_time(&mut line, example.time)?;
    write!(line, " <code>{}</code>", escape(&example.packet))?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_the_rules_that_they_name() {
        let named = |line: &'static str| line_named(line).map(|(from, to, n)| (&line[from..to], n));
        assert_eq!(named("  L12    -p tcp   no: proto"), Some(("L12", 12)));
        assert_eq!(named("    L7     web -j DROP   MATCH"), Some(("L7", 7)));
        assert_eq!(named("DROP by L5 -A FORWARD -j DROP"), Some(("L5", 5)));
        assert_eq!(named("  depends on L31 -m string"), Some(("L31", 31)));
        for none in ["filter/FORWARD", "DROP by policy DROP", "  nat: L", "  L5x", "path    L5 "] {
            assert_eq!(named(none), None, "{none}");
        }
    }
}
