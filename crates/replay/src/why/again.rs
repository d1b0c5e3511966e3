//! The paths of packets that a replay has come to name: its captures are read once more.
//!
//! Contract: every packet before the last named one is evaluated again, by one worker, as the replay did; of the
//! captures at most [`FRAMES`] are read. A path that does not end as the replay's did is not shown. Captures that
//! cannot be read twice tell none.

use std::collections::HashMap;
use std::sync::Arc;

use dataplane::Evaluator;
use packet::visible;

use super::packets::of_frame;
use super::past::Past;
use super::story::Story;
use crate::batch::Batch;
use crate::error::Error;
use crate::lane::Rules;
use crate::report::Report;
use crate::report::examples::{End, PathOf};
use crate::source::{Numbers, Source};

/// Packets that are evaluated once more at most.
const FRAMES: u64 = 1 << 21;
/// Lines of a path; what is between its beginning and its end is left out beyond that.
const LINES: usize = 80;

/// The paths of the packets that are named, each with its end.
///
/// # Errors
/// A capture cannot be read.
pub(crate) fn paths(
    rules: Rules<'_>,
    source: &mut Source<'_, '_>,
    numbers: &Numbers,
    named: &HashMap<u64, End>,
) -> Result<HashMap<u64, PathOf>, Error> {
    let mut told = HashMap::new();
    if named.is_empty() || source.may_wait() {
        return Ok(told);
    }
    let files: Arc<_> = rules.files.into();
    let pairs = rules.config.pair && rules.new.is_none();
    let mut evaluator = Evaluator::new(rules.program);
    let (mut batch, mut past) = (Batch::default(), Past::default());
    let (mut left, mut frames) = (named.len(), 0);
    while left > 0 && frames < FRAMES && source.next(&mut batch)? {
        frames += batch.arrived.len() as u64;
        for frame in batch.frames() {
            let number = frame.arrived.number;
            if let Some(end) = named.get(&number) {
                let story = of_frame(frame, pairs, &mut evaluator, &files, None, &mut past);
                left = left.saturating_sub(1);
                if End::of(&story.end) == Some(*end) {
                    told.insert(number, story.into_path(numbers.clone()));
                }
            } else if let (Some(link), None) = (frame.link(), frame.skip()) {
                let arrival = frame.arrival(link, pairs);
                let observer = past.next(arrival.number, arrival.time);
                evaluator.handle(frame.bytes, &arrival, observer);
            }
        }
    }
    Ok(told)
}

impl Story {
    /// Returns the path alone; `numbers` name other packets in it.
    fn into_path(self, numbers: Numbers) -> PathOf {
        let story = Self { report: Report { numbers, ..self.report }, ..self };
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = story.write_path(&mut text, false);
        PathOf { family: story.end.family, text: shortened(&visible::text(&text)) }
    }
}

/// Shortens a text to [`LINES`] lines, of the beginning and the end.
fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let Some(over) = lines.len().checked_sub(LINES).filter(|over| *over > 0) else {
        return lines.join("\n");
    };
    let (first, rest) = lines.split_at(LINES / 2);
    let (left_out, last) = rest.split_at(over);
    let between = format!("  … {} lines are left out", left_out.len());
    let lines = first.iter().copied().chain([&*between]).chain(last.iter().copied());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_keep_their_two_ends() {
        let lines = |range: std::ops::Range<usize>| {
            range.map(|line| line.to_string()).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(shortened(&lines(0..80)), lines(0..80));
        let text = shortened(&lines(0..100));
        assert_eq!(text.lines().count(), 81);
        assert!(text.starts_with("0\n1\n") && text.ends_with("\n98\n99"));
        assert!(text.contains("39\n  … 20 lines are left out\n60\n"));
    }
}
