//! Which names a chain may have: names that the tools take and that still read back as one word when printed.
//!
//! Source: iptables `assert_valid_chain_name`, and libiptc, which holds the verdicts for chains; measured
//! with iptables 1.8.9. The tools check `:CHAIN` lines less than `-N`: they take a quote, a control
//! character or a leading `!` there and print what they do not take again.

use crate::error::What;
use crate::lexer::Word;

/// Longest name in bytes: `XT_EXTENSION_MAXNAMELEN` less its NUL.
const MAX_LEN: usize = 28;
/// Names of verdicts, which no chain may have.
const VERDICTS: [&str; 4] = ["ACCEPT", "DROP", "QUEUE", "RETURN"];

/// Checks the name of a chain that is being declared.
///
/// # Errors
/// What a name must be, at the column of the name.
pub(crate) fn check(name: &Word<'_>) -> Result<(), What> {
    let text = &*name.text;
    let refuse = |what: &str| {
        let what = format!("a chain name {what}, found \"{}\"", text.escape_debug());
        Err(What::new(name.column, what))
    };
    if text.is_empty() || text.len() > MAX_LEN || text.starts_with(['-', '!']) {
        return refuse(&format!("of 1 to {MAX_LEN} bytes that does not start with - or !"));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"') {
        return refuse("without white space, control characters and quotes");
    }
    if VERDICTS.contains(&text) {
        return refuse("that is no verdict");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Option<What> {
        check(&Word { text: text.into(), column: 4, quoted: true }).err()
    }

    #[test]
    fn names_that_the_tools_take_are_taken() {
        for name in ["x", "a/b,c", "a!", "[a", "#a", "é", "LOG", "tcp", "PREROUTING", "a'b", "a\\b"]
        {
            assert_eq!(refusal(name), None, "{name}");
        }
    }

    #[test]
    fn names_that_would_not_read_back_are_refused_at_their_column() {
        for name in
            ["", "a b", "a\u{b}b", "a\u{a0}b", "a\u{1b}b", "a\"b", "-x", "!x", "DROP", "QUEUE"]
        {
            assert_eq!(refusal(name).map(|what| what.column), Some(4), "{name}");
        }
        assert!(refusal(&"x".repeat(29)).is_some());
    }
}
