//! Which lines of two rules texts the other one does not have.
//!
//! Contract: lines are paired by what they say, table by table, the first with the first; of the pairs the
//! longest run that stands in the same order in both is kept, because the order of rules decides. Counters,
//! comments and blank lines say nothing. Takes n log n steps, whatever the texts.

use std::collections::{HashMap, HashSet, VecDeque};

/// Numbers of lines, from 1.
pub(super) type Lines = HashSet<u32>;

/// Lines that only the old text has, and lines that only the new one has.
pub(super) fn edits(old: &str, new: &str) -> (Lines, Lines) {
    let (old, new) = (said(old), said(new));
    let mut places: HashMap<Said<'_>, VecDeque<usize>> = HashMap::new();
    for (at, (_, said)) in new.iter().enumerate() {
        places.entry(*said).or_default().push_back(at);
    }
    let pairs: Vec<(usize, usize)> = old
        .iter()
        .enumerate()
        .filter_map(|(at, (_, said))| Some((at, places.get_mut(said)?.pop_front()?)))
        .collect();
    let mut only_old: Lines = old.iter().map(|(line, _)| *line).collect();
    let mut only_new: Lines = new.iter().map(|(line, _)| *line).collect();
    for pair in longest_rising(&pairs) {
        only_old.remove(&old[pair.0].0);
        only_new.remove(&new[pair.1].0);
    }
    (only_old, only_new)
}

/// A table, and a line of it without its counters.
type Said<'t> = (&'t str, &'t str);

/// The lines that say something, with their numbers.
fn said(text: &str) -> Vec<(u32, Said<'_>)> {
    let mut table = "";
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_counters(line.trim());
        if line.starts_with('*') {
            table = line;
        }
        if !line.is_empty() && !line.starts_with('#') {
            lines.push((number, (table, line)));
        }
    }
    lines
}

/// `[1:60] -A …` and `:FORWARD DROP [1:60]` without the numbers.
fn without_counters(line: &str) -> &str {
    if line.starts_with(':') {
        return line.rsplit_once(" [").map_or(line, |(before, _)| before);
    }
    let counted = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    counted.map_or(line, |(_, rule)| rule)
}

/// The longest run of pairs that rises on both sides; the left side rises by itself.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // Of all runs of a length found so far, the one with the lowest end: its last pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, right)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *right);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let last = ends.last().copied();
    std::iter::successors(last, |at| before[*at]).map(|at| pairs[at]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(lines: Lines) -> Vec<u32> {
        let mut lines: Vec<u32> = lines.into_iter().collect();
        lines.sort_unstable();
        lines
    }

    fn between(old: &str, new: &str) -> (Vec<u32>, Vec<u32>) {
        let (old, new) = edits(old, new);
        (sorted(old), sorted(new))
    }

    #[test]
    fn counters_and_comments_are_no_edit() {
        let old = "# at noon\n*filter\n:FORWARD DROP [1:2]\n[3:4] -A FORWARD -j ACCEPT\nCOMMIT\n";
        let new = "*filter\n:FORWARD DROP [0:0]\n\n-A FORWARD -j ACCEPT\nCOMMIT\n";
        assert_eq!(between(old, new), (vec![], vec![]));
    }

    #[test]
    fn a_rule_that_changed_is_one_line_on_both_sides() {
        let old = "*filter\n-A a -p tcp -j DROP\n-A a -j DROP\n";
        let new = "*filter\n-A a -p udp -j DROP\n-A a -j DROP\n";
        assert_eq!(between(old, new), (vec![2], vec![2]));
    }

    #[test]
    fn a_rule_that_moved_is_an_edit_because_order_decides() {
        assert_eq!(between("-A a\n-A b\n-A c\n", "-A c\n-A a\n-A b\n"), (vec![3], vec![1]));
    }

    #[test]
    fn the_same_words_in_another_table_are_an_edit() {
        let (old, new) = ("*nat\n-A a\n*filter\n-A b\n", "*nat\n*filter\n-A a\n-A b\n");
        assert_eq!(between(old, new), (vec![2], vec![3]));
    }

    /// As long as the longest common subsequence, by its textbook definition.
    fn longest_common(old: &[&str], new: &[&str]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for line in old {
            let above = row.clone();
            for (at, other) in new.iter().enumerate() {
                let matched = if line == other { above[at] + 1 } else { 0 };
                row[at + 1] = matched.max(above[at + 1]).max(row[at]);
            }
        }
        row[new.len()]
    }

    proptest! {
        #[test]
        fn what_is_left_is_the_same_text(old in "([a-e]\n){0,9}", new in "([a-e]\n){0,9}") {
            let (gone, came) = edits(&old, &new);
            let kept = |text: &str, only: &Lines| -> Vec<String> {
                let lines = (1..).zip(text.lines()).filter(|(line, _)| !only.contains(line));
                lines.map(|(_, text)| text.to_owned()).collect()
            };
            prop_assert_eq!(kept(&old, &gone), kept(&new, &came));
        }

        #[test]
        fn of_lines_that_differ_as_many_are_kept_as_can_be(
            old in Just(vec!["a", "b", "c", "d", "e", "f"]).prop_shuffle(),
            new in Just(vec!["a", "b", "c", "d", "x", "y"]).prop_shuffle(),
        ) {
            let (gone, _) = edits(&old.join("\n"), &new.join("\n"));
            prop_assert_eq!(old.len() - gone.len(), longest_common(&old, &new));
        }
    }
}
