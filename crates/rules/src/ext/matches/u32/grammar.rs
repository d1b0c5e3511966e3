//! The expression of `--u32`: tests joined by `&&`, each `place=ranges`.
//!
//! At most 10 tests, of at most 10 numbers in a place and 10 ranges each, and no shift beyond 31, which
//! Linux 6.18 refuses (measured); blanks may stand before numbers and operators. Source:
//! iptables-extensions(8), "u32"; `XT_U32_MAXSIZE`.

use super::test::{Operator, Test};
use crate::value;

const MAX: usize = 10;

/// What was expected, and where in the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) offset: usize,
    pub(super) expected: &'static str,
}

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Vec<Test>, Wrong> {
    let mut cursor = Cursor { text, at: 0 };
    let mut tests = vec![cursor.test()?];
    while !cursor.is_at_end() {
        if !cursor.takes("&&") {
            return Err(cursor.wrong("\",\" or \"&&\""));
        }
        tests.push(cursor.test()?);
    }
    if tests.len() > MAX {
        return Err(cursor.wrong("at most 10 tests"));
    }
    Ok(tests)
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn wrong(&self, expected: &'static str) -> Wrong {
        Wrong { offset: self.at, expected }
    }

    /// The text after any blanks.
    fn rest(&mut self) -> &str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let blank = |c: char| c.is_ascii_whitespace() || c == '\x0b';
        let trimmed = rest.trim_start_matches(blank);
        self.at = self.text.len() - trimmed.len();
        trimmed
    }

    fn is_at_end(&mut self) -> bool {
        self.rest().is_empty()
    }

    fn takes(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn test(&mut self) -> Result<Test, Wrong> {
        let start = self.number()?;
        let mut steps = Vec::new();
        while !self.takes("=") {
            let found = Operator::ALL.into_iter().find(|(text, _)| self.takes(text));
            let Some((_, operator)) = found else {
                return Err(self.wrong("an operator & << >> @ or \"=\""));
            };
            let number = self.number()?;
            if matches!(operator, Operator::Left | Operator::Right) && number > 31 {
                return Err(self.wrong("a shift of 0-31 before this"));
            }
            steps.push((operator, number));
            if steps.len() >= MAX {
                return Err(self.wrong("at most 10 numbers in a place"));
            }
        }
        Ok(Test { start, steps: steps.into(), ranges: self.ranges()?.into() })
    }

    fn ranges(&mut self) -> Result<Vec<(u32, u32)>, Wrong> {
        let mut ranges = Vec::new();
        loop {
            let low = self.number()?;
            let high = if self.takes(":") { self.number()? } else { low };
            ranges.push((low, high));
            if ranges.len() > MAX {
                return Err(self.wrong("at most 10 ranges"));
            }
            if !self.takes(",") {
                return Ok(ranges);
            }
        }
    }

    /// A number in C notation: it ends at the first character that cannot belong to it.
    fn number(&mut self) -> Result<u32, Wrong> {
        let rest = self.rest();
        let hex = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"));
        let (prefix, digits, radix) = match hex {
            Some(digits) => (2, digits, 16),
            None if rest.starts_with('0') => (0, rest, 8),
            None => (0, rest, 10),
        };
        let len = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
        let number = rest.get(..prefix + len).and_then(value::u32);
        match number {
            Some(number) => {
                self.at += prefix + len;
                Ok(number)
            }
            None => Err(self.wrong("a number of 32 bits")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(text: &str) -> String {
        let tests = parse(text).unwrap();
        tests.iter().map(Test::text).collect::<Vec<_>>().join("&&")
    }

    #[test]
    fn expressions_read_and_print() {
        assert_eq!(
            print("0 >> 28 = 4 && 8 & 0xFF0000 >> 16=6, 17"),
            "0x0>>0x1c=0x4&&0x8&0xff0000>>0x10=0x6,0x11"
        );
        assert_eq!(print("0>>22&0x3C@ 4 @0<<010=1 : 2"), "0x0>>0x16&0x3c@0x4@0x0<<0x8=0x1:0x2");
    }

    #[test]
    fn what_is_wrong_is_named_where_it_is() {
        let offset = |text| parse(text).unwrap_err().offset;
        assert_eq!(offset(""), 0);
        assert_eq!(offset("0"), 1);
        assert_eq!(offset("0="), 2);
        assert_eq!(offset("=1"), 0);
        assert_eq!(offset("0<1=2"), 1);
        assert_eq!(offset("0=1&2"), 3);
        assert_eq!(offset("0=1&&"), 5);
        assert_eq!(offset("0=08"), 3);
        assert_eq!(offset("0x100000000=0"), 0);
        assert_eq!(offset("-1=0"), 0);
        assert_eq!(offset("0=1,é"), 4);
        assert_eq!(offset("0>>32=1"), 5);
    }

    #[test]
    fn ten_of_each_is_the_most() {
        let list = |item: &str, join: &str, n| vec![item; n].join(join);
        assert!(parse(&list("0=0", "&&", 10)).is_ok());
        assert!(parse(&list("0=0", "&&", 11)).is_err());
        assert!(parse(&format!("{}=0", list("1", "@", 10))).is_ok());
        assert!(parse(&format!("{}=0", list("1", "@", 11))).is_err());
        assert!(parse(&format!("0={}", list("1", ",", 10))).is_ok());
        assert!(parse(&format!("0={}", list("1", ",", 11))).is_err());
    }
}
