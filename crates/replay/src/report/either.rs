//! Drops that one of several rules, policies or other reasons decided: which one is not known.

use dataplane::{DropReason, Either};
use rules::eval::By;

use super::{Count, Report};
use crate::decider::Decider;

impl Report {
    /// What may have dropped packets where one of several did, most packets first, in words.
    pub(crate) fn top_either(&self) -> Vec<(Either, String, Count)> {
        self.top_either_that(true)
    }

    /// The same of what drops, or of what accepts.
    pub(crate) fn top_either_that(&self, drops: bool) -> Vec<(Either, String, Count)> {
        let those = self.either.iter().filter(|((family, either), _)| {
            let file = self.file(*family);
            let is_drop = match either.last {
                DropReason::Rule(at) => file.is_some_and(|file| file.drops(&By::Rule(at))),
                DropReason::Policy { table, chain } => {
                    file.is_some_and(|file| file.drops(&By::Policy { table, chain }))
                }
                _ => true,
            };
            is_drop == drops
        });
        let mut top: Vec<_> = those
            .map(|((family, either), count)| {
                let place = Decider::Either(*family, *either);
                let place = place.place(&self.config.host, |family| self.file(family));
                (*either, place.text, *count)
            })
            .collect();
        top.sort_by(|(_, a, more), (_, b, less)| {
            less.packets.cmp(&more.packets).then_with(|| a.cmp(b))
        });
        top
    }
}
