//! Options whose value is one of a few words, or a comma list of them.

use crate::error::What;
use crate::ext::Given;

/// The meaning of a word, which must be spelt as it stands.
pub(crate) fn one_of<T: Copy>(given: &Given<'_>, words: &[(&str, T)]) -> Result<T, What> {
    let found = words.iter().find(|(word, _)| *word == given.text());
    found.map(|(_, meaning)| *meaning).ok_or_else(|| given.expected(list(words)))
}

/// The meaning of a word in any case of letters.
pub(crate) fn one_in_any_case<T: Copy>(given: &Given<'_>, words: &[(&str, T)]) -> Result<T, What> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(given.text()));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| given.expected(list(words)))
}

/// The bits of a comma list of words, each in any case and abbreviated at will.
pub(crate) fn bits(given: &Given<'_>, words: &[(&str, u8)]) -> Result<u8, What> {
    given.text().split(',').try_fold(0, |bits, part| {
        let starts = |word: &str| {
            word.get(..part.len()).is_some_and(|start| start.eq_ignore_ascii_case(part))
        };
        match words.iter().find(|(word, _)| !part.is_empty() && starts(word)) {
            Some((_, bit)) => Ok(bits | bit),
            None => Err(given.expected(format!("a comma list of {}", list(words)))),
        }
    })
}

/// The words of some bits, in the order of the table.
pub(crate) fn text(bits: u8, words: &[(&str, u8)]) -> String {
    let set: Vec<&str> =
        words.iter().filter(|(_, bit)| bits & bit != 0).map(|(word, _)| *word).collect();
    set.join(",")
}

fn list<T>(words: &[(&str, T)]) -> String {
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    names.join(" or ")
}
