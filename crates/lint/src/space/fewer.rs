//! Describes a region in as few pieces, and as few words, as possible: what follows from the rest of a piece is left
//! out, and pieces that differ in one part alone are one.

use super::part::Part;
use super::pieces::{Piece, Ranges, joined};
use super::predicates::Space;
use crate::diagram::{Region, TooLarge};

/// A piece as it is put together.
struct Draft {
    parts: Vec<(Part, Ranges)>,
    /// The packets of the piece.
    region: Region,
}

impl Space {
    /// Describes the same packets, of all that may be there, in no more pieces; leaves pieces that depend on tests
    /// which can only be asked as they are.
    ///
    /// # Errors
    /// There is no room.
    pub fn fewer(&mut self, pieces: Vec<Piece>, within: Region) -> Result<Vec<Piece>, TooLarge> {
        if pieces.iter().any(|piece| !piece.answers.is_empty()) {
            return Ok(pieces);
        }
        let mut drafts: Vec<Draft> = Vec::new();
        for piece in pieces {
            let region = self.of_parts(&piece.ranges, within)?;
            let mut draft = Draft { parts: piece.ranges, region };
            self.shorten(&mut draft, within)?;
            self.take(&mut drafts, draft, within)?;
        }
        let full = self.full(within);
        Ok(drafts.into_iter().map(|draft| self.piece(draft.parts, &full)).collect())
    }

    fn of_parts(&mut self, parts: &[(Part, Ranges)], within: Region) -> Result<Region, TooLarge> {
        let all = self.of_ranges(parts)?;
        self.diagrams.and(all, within)
    }

    /// Leaves out what follows from the rest: addresses before their types, ports before protocols.
    fn shorten(&mut self, draft: &mut Draft, within: Region) -> Result<(), TooLarge> {
        for place in (0..draft.parts.len()).rev() {
            let mut parts = draft.parts.clone();
            parts.remove(place);
            if self.of_parts(&parts, within)? == draft.region {
                draft.parts = parts;
            }
        }
        Ok(())
    }

    /// Adds a piece, united with a present one if the two are one.
    fn take(
        &mut self,
        drafts: &mut Vec<Draft>,
        mut draft: Draft,
        within: Region,
    ) -> Result<(), TooLarge> {
        'again: loop {
            for place in 0..drafts.len() {
                if let Some(mut both) = self.united(&drafts[place], &draft, within)? {
                    self.shorten(&mut both, within)?;
                    drafts.remove(place);
                    draft = both;
                    continue 'again;
                }
            }
            drafts.push(draft);
            return Ok(());
        }
    }

    fn united(
        &mut self,
        one: &Draft,
        other: &Draft,
        within: Region,
    ) -> Result<Option<Draft>, TooLarge> {
        let (mut parts, mut lone, mut unequal) = (Vec::new(), 0, 0);
        for (part, ranges) in &one.parts {
            match other.parts.iter().find(|(of, _)| of == part) {
                Some((_, same)) if same == ranges => parts.push((*part, ranges.clone())),
                Some((_, others)) => {
                    unequal += 1;
                    parts.push((*part, joined([&ranges[..], &others[..]].concat())));
                }
                None => lone += 1,
            }
        }
        lone += other
            .parts
            .iter()
            .filter(|(part, _)| !one.parts.iter().any(|(of, _)| of == part))
            .count();
        if unequal > 1 || lone > 2 {
            return Ok(None);
        }
        let region = self.diagrams.or(one.region, other.region)?;
        let is_all = self.of_parts(&parts, within)? == region;
        Ok(is_all.then_some(Draft { parts, region }))
    }
}
