//! [`nearest`] finds the known name that a misspelt one is closest to; [`edits`] counts in what two names differ.

/// Names that differ in more letters are not taken for each other.
const FAR: usize = 3;

/// The known name that differs least from a word, in letters left out, added, exchanged or turned round with the next
/// one; the first of several. `None` where each differs in more than a third of the word, or by more than three letters.
#[must_use]
pub fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let most = word.chars().count().div_ceil(3).min(FAR);
    let near = known.into_iter().filter_map(|name| Some((edits(word, name)?, name)));
    let near = near.filter(|(edits, _)| *edits <= most).min_by_key(|(edits, _)| *edits);
    near.map(|(_, name)| name)
}

/// Counts the letters to leave out, add, exchange or swap with the next one that turn one word into the other, whatever
/// their case (optimal string alignment); `None` where their lengths alone differ by more than three.
#[must_use]
pub fn edits(from: &str, to: &str) -> Option<usize> {
    let letters = |word: &str| word.to_lowercase().chars().collect::<Vec<_>>();
    let (from, to) = (letters(from), letters(to));
    // Words that long are no names, and would take their product in steps.
    if from.len().abs_diff(to.len()) > FAR {
        return None;
    }
    let mut rows = [Vec::new(), Vec::new(), (0..=to.len()).collect::<Vec<usize>>()];
    for (row, letter) in from.iter().enumerate() {
        rows.rotate_left(1);
        let [before, last, now] = &mut rows;
        now.clear();
        now.push(row + 1);
        for (column, other) in to.iter().enumerate() {
            let changed = last[column] + usize::from(letter != other);
            let mut least = changed.min(last[column + 1] + 1).min(now[column] + 1);
            if row > 0 && column > 0 && *letter == to[column - 1] && from[row - 1] == *other {
                least = least.min(before[column - 1] + 1);
            }
            now.push(least);
        }
    }
    rows[2].last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found() {
        let names = ["lo", "eth0", "eth1", "wlan0", "docker0", "br-lan"];
        for (word, meant) in [
            ("eht0", Some("eth0")),
            ("eth7", Some("eth0")),
            ("ETH1", Some("eth1")),
            ("wlan", Some("wlan0")),
            ("dokcer0", Some("docker0")),
            ("brlan", Some("br-lan")),
            ("ppp0", None),
            ("", None),
            ("a name that is far too long to be one", None),
        ] {
            assert_eq!(nearest(word, names), meant, "{word}");
        }
    }
}
