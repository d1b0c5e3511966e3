//! Where jumps lead and where chains are jumped to from, by line of the rules text, and a line as markup
//! with those links in it.

use std::collections::HashMap;
use std::fmt::{Result, Write};
use std::ops::Range;

use rules::model::Action;

use super::markup::{anchor, escape};
use crate::rules_file::RulesFile;

/// Jumps that a chain's declaration links to; how many more there are is said.
const SHOWN: usize = 8;

/// The links of one rules file.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Line of a jump: name of its chain and the line it leads to.
    to: HashMap<u32, (String, u32)>,
    /// Line of a chain's declaration: lines that jump to it, ascending.
    from: HashMap<u32, Vec<u32>>,
}

impl Links {
    pub(super) fn of(file: &RulesFile) -> Self {
        let mut links = Self::default();
        for (_, table, _, rule) in file.rules() {
            let (Action::Jump(index) | Action::Goto(index)) = rule.action else { continue };
            let Some(chain) = table.chains.get(index as usize) else { continue };
            let first = chain.rules.iter().map(|rule| rule.line).min().unwrap_or(chain.line);
            if first > 0 {
                links.to.insert(rule.line, (chain.name.to_string(), first));
            }
            links.from.entry(chain.line).or_default().push(rule.line);
        }
        for lines in links.from.values_mut() {
            lines.sort_unstable();
            // A line with address lists made several rules.
            lines.dedup();
        }
        links
    }

    /// One line of the text, with its links.
    pub(super) fn write_line(
        &self,
        out: &mut String,
        file: usize,
        line: u32,
        text: &str,
    ) -> Result {
        let words = words(text);
        let mut written = 0;
        for (index, word) in words.iter().enumerate() {
            let Some(before) = index.checked_sub(1).and_then(|before| words.get(before)) else {
                continue;
            };
            let is_target = matches!(&text[before.clone()], "-j" | "-g" | "--jump" | "--goto");
            let is_quoted = text[word.clone()].starts_with('"');
            if is_target || is_quoted {
                out.push_str(&escape(&text[written..word.start]));
                written = word.end;
            }
            if is_target {
                self.write_target(out, file, line, &text[word.clone()])?;
            } else if is_quoted {
                write!(out, "<q>{}</q>", escape(&text[word.clone()]))?;
            }
        }
        out.push_str(&escape(&text[written..]));
        self.write_jumps(out, file, line)
    }

    fn write_target(&self, out: &mut String, file: usize, line: u32, word: &str) -> Result {
        let class = match word {
            "ACCEPT" => "accept",
            "DROP" => "drop",
            "REJECT" => "reject",
            _ => "",
        };
        match self.to.get(&line) {
            Some((chain, first)) if chain.as_str() == word => {
                write!(out, "<a href=\"#{}\">{}</a>", anchor(file, *first), escape(word))
            }
            _ if class.is_empty() => write!(out, "<b>{}</b>", escape(word)),
            _ => write!(out, "<b class=\"{class}\">{}</b>", escape(word)),
        }
    }

    /// After a chain's declaration: where it is jumped to from.
    fn write_jumps(&self, out: &mut String, file: usize, line: u32) -> Result {
        let Some(from) = self.from.get(&line) else { return Ok(()) };
        out.push_str("<span class=\"from\">from");
        for jump in from.iter().take(SHOWN) {
            write!(out, " <a href=\"#{}\">L{jump}</a>", anchor(file, *jump))?;
        }
        if from.len() > SHOWN {
            write!(out, " and {} more", from.len() - SHOWN)?;
        }
        out.push_str("</span>");
        Ok(())
    }
}

/// The words of a line as the save format has them: apart by blanks, except between double quotes, where a
/// backslash takes the next character as it is.
fn words(line: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut start = None;
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in line.char_indices() {
        if escaped {
            escaped = false;
        } else if c.is_whitespace() && !quoted {
            words.extend(start.take().map(|start| start..at));
        } else {
            start.get_or_insert(at);
            quoted ^= c == '"';
            escaped = quoted && c == '\\';
        }
    }
    words.extend(start.map(|start| start..line.len()));
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rules::save::LoadOptions;

    use super::*;

    const RULES: &str = "*filter
:FORWARD DROP [0:0]
:office - [0:0]
:empty - [0:0]
-A FORWARD -m comment --comment \"not -j office \\\" at all\" -j office
-A FORWARD -g empty
-A office -s 10.0.0.1,10.0.0.2 -j DROP
-A FORWARD -s 10.0.0.1,10.0.0.2 -j office
COMMIT
";

    fn line(number: u32) -> String {
        let file = RulesFile::from_text("x", RULES.to_owned(), &LoadOptions::default()).unwrap();
        let text = RULES.lines().nth(number as usize - 1).unwrap();
        let mut out = String::new();
        Links::of(&file).write_line(&mut out, 0, number, text).unwrap();
        out
    }

    #[test]
    fn jumps_lead_to_the_first_rule_of_their_chain() {
        let quoted = "<q>&quot;not -j office \\&quot; at all&quot;</q>";
        assert_eq!(
            line(5),
            format!("-A FORWARD -m comment --comment {quoted} -j <a href=\"#L7\">office</a>")
        );
    }

    #[test]
    fn a_jump_to_an_empty_chain_leads_to_its_declaration() {
        assert_eq!(line(6), "-A FORWARD -g <a href=\"#L4\">empty</a>");
    }

    #[test]
    fn declarations_name_their_jumps_once() {
        let links = "<a href=\"#L5\">L5</a> <a href=\"#L8\">L8</a>";
        assert_eq!(line(3), format!(":office - [0:0]<span class=\"from\">from {links}</span>"));
        assert_eq!(line(2), ":FORWARD DROP [0:0]");
    }

    #[test]
    fn verdicts_are_marked() {
        assert!(line(7).ends_with("-j <b class=\"drop\">DROP</b>"));
    }

    proptest! {
        #[test]
        fn words_cover_all_but_blanks(text in "[a\"\\\\ \t\u{e9}]*") {
            let mut at = 0;
            for word in words(&text) {
                prop_assert!(text[at..word.start].chars().all(char::is_whitespace));
                prop_assert!(!word.is_empty());
                at = word.end;
            }
            prop_assert!(text[at..].chars().all(char::is_whitespace));
        }
    }
}
