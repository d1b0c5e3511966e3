//! [`Options`]: the options of one extension as its text has them, taken one by one.

use rules::save;

/// An option: whether `!` stands before it, its name, and its values.
type Said = (bool, String, Vec<String>);

/// Options that were not taken yet.
#[derive(Debug)]
pub(super) struct Options(Vec<Said>);

impl Options {
    /// Splits the text of an extension.
    ///
    /// # Errors
    /// A quote is not closed, or a value stands alone.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let words =
            save::words(text, 1).map_err(|_| format!("{text}: a quote that is not closed"))?;
        let (mut options, mut invert): (Vec<Said>, bool) = (Vec::new(), false);
        for word in words {
            match &*word.text {
                "!" if !word.quoted => invert = true,
                name if name.starts_with("--") && !word.quoted => {
                    options.push((std::mem::take(&mut invert), name.to_owned(), Vec::new()));
                }
                value => {
                    let last = options.last_mut().ok_or_else(|| format!("{value}: of what?"))?;
                    last.2.push(value.to_owned());
                }
            }
        }
        Ok(Self(options))
    }

    /// Takes an option with its first value, which is empty where it has none.
    pub(super) fn take(&mut self, name: &str) -> Option<(bool, String)> {
        let (invert, values) = self.take_all(name)?;
        Some((invert, values.into_iter().next().unwrap_or_default()))
    }

    /// Takes an option with all its values.
    pub(super) fn take_all(&mut self, name: &str) -> Option<(bool, Vec<String>)> {
        let at = self.0.iter().position(|(_, one, _)| one == name)?;
        let (invert, _, values) = self.0.remove(at);
        Some((invert, values))
    }

    /// Nothing is left that was not translated.
    ///
    /// # Errors
    /// An option is left.
    pub(super) fn end(self) -> Result<(), String> {
        self.0.first().map_or(Ok(()), |(_, name, _)| Err(format!("{name}: not translated")))
    }
}

/// Adds an option to a text.
pub(super) fn say(text: &mut String, invert: bool, option: &str) {
    text.push_str(if invert { " ! " } else { " " });
    text.push_str(option);
}

/// A number in decimal or hexadecimal.
///
/// # Errors
/// It is none.
pub(super) fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|why| format!("{text}: {why}"))
}

/// A number of 16 bits, or of 8 by [`u8::try_from`].
///
/// # Errors
/// It is none, or too large.
pub(super) fn small<N: TryFrom<u32>>(text: &str) -> Result<N, String> {
    N::try_from(number(text)?).map_err(|_| format!("{text}: too large"))
}

/// `low:high` or one number; an end that is not there is the least or the most.
///
/// # Errors
/// An end is no number.
pub(super) fn range(text: &str) -> Result<(u16, u16), String> {
    let Some((low, high)) = text.split_once(':') else {
        let one = small(text)?;
        return Ok((one, one));
    };
    let end = |text: &str, open| if text.is_empty() { Ok(open) } else { small(text) };
    Ok((end(low, 0)?, end(high, u16::MAX)?))
}

/// A range as text.
pub(super) fn range_text(low: u16, high: u16) -> String {
    if low == high { low.to_string() } else { format!("{low}:{high}") }
}

/// The bits of names apart by commas.
///
/// # Errors
/// A name is not among them.
pub(super) fn bits(text: &str, names: &[(&str, u32)]) -> Result<u32, String> {
    text.split(',').try_fold(0, |bits, word| {
        let found = names.iter().find(|(name, _)| *name == word);
        found.map(|(_, bit)| bits | bit).ok_or_else(|| format!("{word}: not translated"))
    })
}

/// The names of bits; `none` where there is none.
///
/// # Errors
/// A bit has no name.
pub(super) fn bit_names(bits: u32, names: &[(&str, u32)], none: &str) -> Result<String, String> {
    let set: Vec<_> = names.iter().filter(|(_, bit)| *bit != 0 && bits & bit == *bit).collect();
    let left = set.iter().fold(bits, |left, (_, bit)| left & !bit);
    let words: Vec<_> = set.iter().map(|(name, _)| *name).collect();
    match (left, &words[..]) {
        (0, []) => Ok(none.to_owned()),
        (0, words) => Ok(words.join(",")),
        _ => Err(format!("bits {left:#x}: not known")),
    }
}
