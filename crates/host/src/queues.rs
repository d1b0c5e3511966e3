//! [`Queues`]: what the programs answer that packets are handed to (`-j NFQUEUE`, `-j QUEUE`).
//!
//! Contract: a verdict is the whole answer. A program that accepts a packet hands it back as it came, and sends none of
//! its own.

use std::fmt;

/// What becomes of the packets of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QueueVerdict {
    /// A program accepts them, as they are.
    Accept,
    /// A program drops them.
    Drop,
    /// No program listens: the kernel drops them, or lets them pass where the rule says `--queue-bypass`.
    Nobody,
    /// Nobody told.
    #[default]
    Unknown,
}

/// The verdict of each queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues {
    /// The verdict of queues that are not named.
    others: QueueVerdict,
    /// The verdicts of named queues, by number.
    named: Vec<(u16, QueueVerdict)>,
}

impl QueueVerdict {
    const ALL: [Self; 4] = [Self::Accept, Self::Drop, Self::Nobody, Self::Unknown];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Drop => "drop",
            Self::Nobody => "none",
            Self::Unknown => "unknown",
        }
    }

    /// The one of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }
}

impl Queues {
    /// What these say, each of a queue by its number, or of all that are not named.
    ///
    /// # Errors
    /// Two of them differ about the same: the later one.
    pub fn of(given: &[(Option<u16>, QueueVerdict)]) -> Result<Self, (Option<u16>, QueueVerdict)> {
        for (index, (queue, verdict)) in given.iter().enumerate() {
            if given[..index].iter().any(|(other, said)| other == queue && said != verdict) {
                return Err((*queue, *verdict));
            }
        }
        let others = given.iter().find(|(queue, _)| queue.is_none());
        let named = given.iter().filter_map(|(queue, verdict)| Some(((*queue)?, *verdict)));
        let mut named: Vec<_> = named.collect();
        named.sort_unstable_by_key(|(queue, _)| *queue);
        named.dedup();
        Ok(Self { others: others.map_or_else(Default::default, |(_, verdict)| *verdict), named })
    }

    /// The verdicts of the queues of a range, ends included.
    pub fn within(&self, first: u16, last: u16) -> impl Iterator<Item = QueueVerdict> {
        let named = self.named.iter().filter(move |(queue, _)| (first..=last).contains(queue));
        let count = named.clone().count();
        let has_others = count <= usize::from(last.saturating_sub(first));
        named.map(|(_, verdict)| *verdict).chain(has_others.then_some(self.others))
    }

    /// Returns the given verdicts, each as an option spells it.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let others = Some(self.others).filter(|others| *others != QueueVerdict::Unknown);
        let others = others.map(|others| others.word().to_owned());
        let named = self.named.iter().map(|(queue, verdict)| format!("{queue}={}", verdict.word()));
        others.into_iter().chain(named).collect()
    }
}

/// Reads `VERDICT`, or `NUM=VERDICT` of one queue.
#[must_use]
pub fn parse_verdict(text: &str) -> Option<(Option<u16>, QueueVerdict)> {
    let (queue, word) = match text.split_once('=') {
        None => (None, text),
        Some((number, word)) => {
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            (Some(number.parse().ok().filter(|_| is_number)?), word)
        }
    };
    Some((queue, QueueVerdict::from_word(word)?))
}

/// Prints the verdicts as options spell them: `accept, 3=drop`; nothing where none is given.
impl fmt::Display for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use QueueVerdict::{Accept, Drop, Nobody, Unknown};

    fn queues(texts: &[&str]) -> Queues {
        let given: Vec<_> = texts.iter().map(|text| parse_verdict(text).unwrap()).collect();
        Queues::of(&given).unwrap()
    }

    fn of(queues: &Queues, first: u16, last: u16) -> Vec<QueueVerdict> {
        queues.within(first, last).collect()
    }

    #[test]
    fn a_queue_has_its_own_verdict_or_that_of_all_others() {
        let told = queues(&["3=drop", "accept", "5=none"]);
        assert_eq!(told.to_string(), "accept, 3=drop, 5=none");
        assert_eq!(of(&told, 0, 0), [Accept]);
        assert_eq!(of(&told, 3, 3), [Drop]);
        assert_eq!(of(&told, 3, 4), [Drop, Accept]);
        assert_eq!(of(&told, 0, u16::MAX), [Drop, Nobody, Accept]);
        assert_eq!(of(&queues(&["3=drop"]), 3, 4), [Drop, Unknown]);
        assert_eq!(of(&Queues::default(), 0, 9), [Unknown]);
    }

    #[test]
    fn two_words_on_one_queue_are_refused_unless_they_agree() {
        assert_eq!(of(&queues(&["3=drop", "3=drop"]), 3, 3), [Drop]);
        let two = [(Some(3), Drop), (None, Accept), (Some(3), Accept)];
        assert_eq!(Queues::of(&two), Err((Some(3), Accept)));
        assert_eq!(Queues::of(&[(None, Drop), (None, Unknown)]), Err((None, Unknown)));
    }

    #[test]
    fn what_is_no_verdict_is_refused() {
        for text in ["", "=drop", "3=", "3", "65536=drop", "+3=drop", "a=drop", "Drop", "3=4=drop"]
        {
            assert_eq!(parse_verdict(text), None, "{text}");
        }
    }
}
