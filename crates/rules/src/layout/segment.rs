//! A chain in pieces of at most [`SEGMENT`] rules: frozen to be walked and shared, thawed to be changed.
//!
//! A chain of a thousand rules is one blob. A longer one is several, so that a change costs a segment however
//! long the chain is. Segments that were not thawed are shared between the chain before and after a change.

use std::sync::Arc;

use super::code;
use super::index::Lazy;
use crate::model::Rule;

/// Most rules of a segment.
pub(crate) const SEGMENT: usize = 1024;

/// Encoded rules, and the rules they came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segment {
    pub(crate) words: Arc<[u64]>,
    pub(crate) rules: Arc<[Arc<Rule>]>,
}

/// A chain as it is walked: its first segment at hand, the others after it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segments {
    pub(crate) first: Segment,
    pub(crate) long: Option<Arc<Long>>,
    /// What finds rules without a sweep, where that may pay.
    pub(crate) index: Option<Arc<Lazy>>,
}

/// What only a chain of several segments has.
#[derive(Debug)]
pub(crate) struct Long {
    /// The segments after the first one.
    pub(crate) more: Box<[Segment]>,
    /// The marks of each segment, the first one included, which find things in it.
    marks: Box<[Arc<Marks>]>,
}

/// What finds a rule, or a jump, without reading all words.
#[derive(Debug, Default)]
struct Marks {
    /// [`code::hash_of`] each rule.
    hashes: Box<[u32]>,
    /// Chains that its rules jump to, each once.
    jumps: Box<[u32]>,
}

impl Marks {
    fn of(words: &[u64]) -> Self {
        let (mut hashes, mut jumps) = (Vec::new(), Vec::new());
        for rule in code::each(words) {
            hashes.push(code::hash_of(rule));
            jumps.extend(code::operand(rule));
        }
        jumps.sort_unstable();
        jumps.dedup();
        Self { hashes: hashes.into(), jumps: jumps.into() }
    }
}

/// A chain being changed.
#[derive(Debug)]
pub(crate) struct Draft {
    pieces: Vec<Piece>,
    is_v6: bool,
    /// Bytes of the segments that were thawed.
    replaced: usize,
}

#[derive(Debug)]
enum Piece {
    Frozen(Segment, Option<Arc<Marks>>),
    Thawed { words: Vec<u64>, rules: Vec<Arc<Rule>> },
}

impl Segments {
    /// A chain of these rules.
    pub(crate) fn of(rules: &[Arc<Rule>], is_v6: bool) -> Self {
        let mut words = Vec::new();
        let piece = |rules: &[Arc<Rule>]| {
            words.clear();
            rules.iter().for_each(|rule| code::encode(rule, is_v6, |chain| chain, &mut words));
            Piece::Frozen(Segment { words: words.as_slice().into(), rules: rules.into() }, None)
        };
        Draft { pieces: rules.chunks(SEGMENT).map(piece).collect(), is_v6, replaced: 0 }.freeze()
    }

    /// A segment by its number, and those after it.
    #[inline]
    pub(crate) fn from(&self, segment: u32) -> Option<(&Segment, &[Segment])> {
        match segment {
            0 => Some((&self.first, self.more())),
            _ => self.more().get(segment as usize - 1..)?.split_first(),
        }
    }

    /// All segments.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Segment> {
        std::iter::once(&self.first).chain(self.more())
    }

    /// The segments after the first one.
    #[inline]
    pub(crate) fn more(&self) -> &[Segment] {
        self.long.as_deref().map_or(&[], |long| &long.more)
    }

    /// Number of rules.
    pub(crate) fn len(&self) -> usize {
        self.iter().map(|segment| segment.rules.len()).sum()
    }

    /// All rules.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.iter().flat_map(|segment| segment.rules.iter())
    }

    /// Returns the chain as a draft to be changed; nothing is copied yet.
    pub(crate) fn thaw(&self, is_v6: bool) -> Draft {
        let marks = self.long.iter().flat_map(|long| long.marks.iter().cloned().map(Some));
        let pieces = self.iter().cloned().zip(marks.chain(std::iter::repeat(None)));
        let pieces = pieces.filter(|(segment, _)| !segment.rules.is_empty());
        Draft {
            pieces: pieces.map(|(segment, marks)| Piece::Frozen(segment, marks)).collect(),
            is_v6,
            replaced: 0,
        }
    }

    /// Chains that the rules jump to; of a short chain as often as they do.
    pub(crate) fn jumps(&self) -> Vec<u32> {
        match &self.long {
            None => code::each(&self.first.words).filter_map(code::operand).collect(),
            Some(long) => long.marks.iter().flat_map(|marks| marks.jumps.iter().copied()).collect(),
        }
    }
}

impl Draft {
    /// Bytes of the chain as it was that the one being made does not share.
    pub(crate) fn replaced(&self) -> usize {
        self.replaced
    }

    /// Number of rules.
    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(Piece::len).sum()
    }

    /// All rules.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules_from(0)
    }

    /// The rules from this number on.
    pub(crate) fn rules_from(&self, number: usize) -> impl Iterator<Item = &Arc<Rule>> {
        let (piece, at) = self.find(number);
        self.pieces.iter().skip(piece).flat_map(|piece| piece.rules()).skip(at)
    }

    /// Chains that the rules jump to.
    pub(crate) fn jumps(&self) -> Vec<u32> {
        let jumps = |piece: &Piece| match piece {
            Piece::Frozen(_, Some(marks)) => marks.jumps.to_vec(),
            _ => code::each(piece.words()).filter_map(code::operand).collect(),
        };
        self.pieces.iter().flat_map(jumps).collect()
    }

    /// Takes rules out and puts others in their place; see [`super::Layout::splice`].
    pub(crate) fn splice(&mut self, at: usize, delete: usize, insert: &[Arc<Rule>]) {
        let mut left = delete;
        while left > 0 {
            let (piece, from) = self.find(at);
            let Some(found) = self.pieces.get_mut(piece) else { break };
            let here = left.min(found.len() - from);
            if here == 0 {
                break;
            }
            self.replaced += found.frozen_bytes();
            found.splice(from, here, &[], self.is_v6);
            if found.len() == 0 {
                self.pieces.remove(piece);
            }
            left -= here;
        }
        if insert.is_empty() {
            return;
        }
        let (mut piece, mut from) = self.find(at);
        // Behind the last rule of a full segment starts the next one.
        if piece == self.pieces.len() && piece > 0 && self.pieces[piece - 1].len() < SEGMENT {
            piece -= 1;
            from = self.pieces[piece].len();
        }
        if piece == self.pieces.len() {
            self.pieces.push(Piece::Thawed { words: Vec::new(), rules: Vec::new() });
            from = 0;
        }
        let at_end = from == self.pieces[piece].len();
        self.replaced += self.pieces[piece].frozen_bytes();
        self.pieces[piece].splice(from, 0, insert, self.is_v6);
        if self.pieces[piece].len() > SEGMENT {
            let parts = self.pieces.remove(piece).split(at_end);
            self.pieces.splice(piece..piece, parts);
        }
    }

    /// The piece that holds the rule of this number, and its number in there; the end where there is none.
    fn find(&self, number: usize) -> (usize, usize) {
        let mut left = number;
        for (index, piece) in self.pieces.iter().enumerate() {
            if left < piece.len() {
                return (index, left);
            }
            left -= piece.len();
        }
        (self.pieces.len(), 0)
    }

    /// Returns the number of the first encoded rule with this hash that `is` accepts.
    pub(crate) fn position(
        &self,
        hash: u32,
        mut is: impl FnMut(&[u64], &Arc<Rule>) -> bool,
    ) -> Option<usize> {
        let mut before = 0;
        for piece in &self.pieces {
            let hashes = piece.hashes();
            if hashes.is_none_or(|hashes| hashes.contains(&hash)) {
                let mut rules = code::each(piece.words()).zip(piece.rules());
                let found =
                    rules.position(|(words, rule)| code::hash_of(words) == hash && is(words, rule));
                if let Some(found) = found {
                    return Some(before + found);
                }
            }
            before += piece.len();
        }
        None
    }

    /// The chain, to be walked.
    pub(crate) fn freeze(self) -> Segments {
        let is_long = self.pieces.len() > 1;
        let (mut segments, mut marks) = (Vec::new(), Vec::new());
        for piece in self.pieces {
            let (segment, known) = piece.freeze();
            if is_long {
                marks.push(known.unwrap_or_else(|| Arc::new(Marks::of(&segment.words))));
            }
            segments.push(segment);
        }
        let mut segments = segments.into_iter();
        let first = segments.next().unwrap_or_default();
        let long = || Arc::new(Long { more: segments.collect(), marks: marks.into() });
        Segments { first, long: is_long.then(long), index: None }
    }
}

impl Default for Piece {
    fn default() -> Self {
        Self::Frozen(Segment::default(), None)
    }
}

impl Piece {
    fn len(&self) -> usize {
        self.rules().len()
    }

    /// What it holds that somebody else may hold, too.
    fn frozen_bytes(&self) -> usize {
        match self {
            Self::Frozen(segment, _) => size_of_val(&*segment.words) + size_of_val(&*segment.rules),
            Self::Thawed { .. } => 0,
        }
    }

    fn rules(&self) -> &[Arc<Rule>] {
        match self {
            Self::Frozen(segment, _) => &segment.rules,
            Self::Thawed { rules, .. } => rules,
        }
    }

    fn splice(&mut self, at: usize, delete: usize, insert: &[Arc<Rule>], is_v6: bool) {
        let (mut words, mut rules) = std::mem::take(self).thaw();
        let from = if at == rules.len() { words.len() } else { code::offset_of(&words, at) };
        let to = from + code::offset_of(&words[from..], delete);
        let mut new = Vec::with_capacity(insert.len() * 8);
        for rule in insert {
            code::encode(rule, is_v6, |chain| chain, &mut new);
        }
        words.splice(from..to, new);
        rules.splice(at..at + delete, insert.iter().cloned());
        *self = Self::Thawed { words, rules };
    }

    fn thaw(self) -> (Vec<u64>, Vec<Arc<Rule>>) {
        match self {
            Self::Frozen(segment, _) => (segment.words.to_vec(), segment.rules.to_vec()),
            Self::Thawed { words, rules } => (words, rules),
        }
    }

    /// Splits it into parts that are not too long: filled up for a chain that grows at its end, even for a chain that
    /// grows within.
    fn split(self, fill: bool) -> Vec<Self> {
        let (words, rules) = self.thaw();
        let parts = rules.len().div_ceil(SEGMENT);
        let size = if fill { SEGMENT } else { rules.len().div_ceil(parts) };
        let mut words = words.as_slice();
        let part = |rules: &[Arc<Rule>]| {
            let (mine, after) = words.split_at(code::offset_of(words, rules.len()));
            words = after;
            Self::Thawed { words: mine.to_vec(), rules: rules.to_vec() }
        };
        rules.chunks(size).map(part).collect()
    }

    fn freeze(self) -> (Segment, Option<Arc<Marks>>) {
        match self {
            Self::Frozen(segment, marks) => (segment, marks),
            Self::Thawed { words, rules } => {
                (Segment { words: words.into(), rules: rules.into() }, None)
            }
        }
    }

    fn words(&self) -> &[u64] {
        match self {
            Self::Frozen(segment, _) => &segment.words,
            Self::Thawed { words, .. } => words,
        }
    }

    fn hashes(&self) -> Option<&[u32]> {
        match self {
            Self::Frozen(_, Some(marks)) => Some(&marks.hashes),
            _ => None,
        }
    }
}
