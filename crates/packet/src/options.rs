//! The option list that IPv4 and TCP headers share: type, length, body, with two one-byte options.
//!
//! Source: RFC 791 section 3.1, RFC 9293 section 3.1.

/// End of the option list.
pub const END: u8 = 0;
/// No operation: one byte of padding.
pub const NO_OPERATION: u8 = 1;

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderOption<'a> {
    /// Option type.
    pub kind: u8,
    /// What follows the option's type and length bytes; empty for [`NO_OPERATION`].
    pub body: &'a [u8],
}

/// An option whose length is below 2 or runs past the header: the rest of the list cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadOption;

/// The options of a header up to [`END`], which is not among them. The first malformed one ends the
/// walk, and every step takes at least one byte, so the walk is bounded by the header.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    rest: &'a [u8],
    /// The header is shorter than it says: told after the bytes that are there.
    cut: bool,
}

impl<'a> Options<'a> {
    /// The options in `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, cut: false }
    }

    /// A list that cannot be read at all: its only item is [`BadOption`].
    pub(crate) fn unreadable() -> Self {
        Self { rest: &[], cut: true }
    }

    fn with_len(&mut self, kind: u8) -> Result<HeaderOption<'a>, BadOption> {
        let option = std::mem::take(&mut self.rest);
        let len = option.get(1).copied().map_or(0, usize::from);
        let body = option.get(2..len).ok_or(BadOption)?;
        self.rest = option.get(len..).unwrap_or_default();
        Ok(HeaderOption { kind, body })
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<HeaderOption<'a>, BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some((&kind, after)) = self.rest.split_first() else {
            return std::mem::take(&mut self.cut).then_some(Err(BadOption));
        };
        match kind {
            END => {
                self.rest = &[];
                None
            }
            NO_OPERATION => {
                self.rest = after;
                Some(Ok(HeaderOption { kind, body: &[] }))
            }
            _ => Some(self.with_len(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_end_at_the_list_end() {
        let options: Vec<_> = Options::new(&[1, 148, 4, 0, 0, 0, 9, 9]).collect();
        let nop = HeaderOption { kind: 1, body: &[] };
        assert_eq!(options, [Ok(nop), Ok(HeaderOption { kind: 148, body: &[0, 0] })]);
    }

    #[test]
    fn the_first_bad_option_is_the_last_item() {
        for bad in [[7, 1, 0, 0], [7, 5, 0, 0], [1, 1, 1, 7], [7, 0, 1, 1]] {
            let mut options = Options::new(&bad);
            assert_eq!(options.by_ref().last(), Some(Err(BadOption)), "{bad:?}");
            assert_eq!(options.next(), None);
        }
        assert_eq!(Options::unreadable().collect::<Vec<_>>(), [Err(BadOption)]);
    }
}
