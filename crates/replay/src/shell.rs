//! Words for a POSIX shell, so that a command that tamis prints can be typed as it stands.
//!
//! Source: POSIX.1-2024, Shell Command Language, 2.2 Quoting; `$'…'` is new there, and bash, zsh, ksh and ash have it.

use std::borrow::Cow;
use std::fmt::Write;

use packet::visible;

/// The text as one word of a command line, which stays on its line and does not steer the screen.
#[must_use]
pub fn quote(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:,=+@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(match visible::word(text) {
        Cow::Borrowed(text) => format!("'{}'", text.replace('\'', r"'\''")),
        Cow::Owned(_) => spelled(text),
    })
}

/// `$'…'`, in which bytes are spelled in octal.
fn spelled(text: &str) -> String {
    let mut out = String::from("$'");
    for c in text.chars() {
        let mut bytes = [0; 4];
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            // The mark of a CI server's commands.
            _ if visible::steers(c) || c == '#' => {
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
            _ => out.push(c),
        }
    }
    out + "'"
}

/// A command of tamis to be typed: operands, then options, each with a blank before it. Operands that look like options
/// come last, after `--`.
#[must_use]
pub fn command(verb: &str, operands: &[&str], options: &str) -> String {
    let quoted: String = operands.iter().map(|operand| format!(" {}", quote(operand))).collect();
    match operands.iter().any(|operand| looks_like_option(operand)) {
        true => format!("tamis {verb}{options} --{quoted}"),
        false => format!("tamis {verb}{quoted}{options}"),
    }
}

/// An option and its value, with a blank before it.
#[must_use]
pub fn option(name: &str, value: &str) -> String {
    let between = if looks_like_option(value) { '=' } else { ' ' };
    format!(" --{name}{between}{}", quote(value))
}

fn looks_like_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_quotes_is_quoted() {
        assert_eq!(quote("rules.v4"), "rules.v4");
        assert_eq!(quote("tcp 1.2.3.4:5 > 6.7.8.9:10"), "'tcp 1.2.3.4:5 > 6.7.8.9:10'");
        assert_eq!(quote("it's; rm"), r"'it'\''s; rm'");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("$(x)"), "'$(x)'");
    }

    #[test]
    fn a_word_stays_on_its_line_and_means_what_it_meant() {
        assert_eq!(quote("a\n::error::b"), r"$'a\012::error::b'");
        assert_eq!(quote("it's\t\\"), r"$'it\'s\011\\'");
        assert_eq!(quote("x\u{202e}##[y]"), r"$'x\342\200\256\043\043[y]'");
    }

    #[test]
    fn what_looks_like_an_option_is_none() {
        assert_eq!(command("why", &["r.v4", "-"], " --packet 1"), "tamis why r.v4 - --packet 1");
        assert_eq!(command("why", &["-r", "c"], " --packet 1"), "tamis why --packet 1 -- -r c");
        assert_eq!(option("in", "eth 0"), " --in 'eth 0'");
        assert_eq!(option("in", "-eth0"), " --in=-eth0");
    }
}
