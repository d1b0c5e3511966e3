//! Which arrival a frame shows leaving.
//!
//! Contract: at most [`MOST`] arrivals that are alike are looked at. Where there are more and none of these fits, the answer
//! is [`Shows::More`], never that there is none.

use super::alike::{ends_alike, is_arrival, is_onward};
use super::frame::{LONGEST, Way};
use super::print::Print;
use super::remembered::{Entry, Sightings};
use super::table::MOST;

/// What a frame that left shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// The packet of this entry leaving; whether no other one may be meant.
    Arrival(u64, bool),
    /// Perhaps one of more arrivals than are looked at.
    More,
    /// No packet that came.
    None,
}

/// The best of the arrivals that were looked at.
struct Best<'a> {
    found: Option<(u64, &'a Print)>,
    /// Another one with other ends is as good.
    is_tie: bool,
    /// There are more than are looked at.
    has_more: bool,
}

impl Sightings {
    /// The arrival that this frame shows leaving.
    pub(super) fn arrival_of(&mut self, index: u64, print: &Print) -> Shows {
        let Some(&Entry { time, upper, .. }) = self.entry(index) else { return Shows::None };
        let is_any = self.drop_settled(print, time);
        let Best { found, is_tie, has_more } = match is_any {
            true => self.best_of(self.alike(print, false), print, upper, false),
            false => Best { found: None, is_tie: false, has_more: false },
        };
        // Where there are more than are looked at, the one with the same ends may be among the others.
        let may_be_other = has_more && found.is_none_or(|(_, came)| came.ends != print.ends);
        if may_be_other {
            let same = self.by_ends.get(&self.keys.packet(print)).copied();
            if let Some(same) = same.filter(|at| self.is_open(*at, time)) {
                return Shows::Arrival(same, true);
            }
        }
        if let Some((at, _)) = found {
            return Shows::Arrival(at, !is_tie && !may_be_other);
        }
        if let Some(at) = self.superframe_of(print, time) {
            return Shows::Arrival(at, true);
        }
        match self.changed(print, upper, time) {
            Shows::None if has_more => Shows::More,
            changed => changed,
        }
    }

    /// The arrival that it shows leaving if a program changed its payload, on a host whose rules hand packets to some.
    fn changed(&mut self, print: &Print, upper: Option<u32>, time: u64) -> Shows {
        let Some(mut queued) = self.queued.take() else { return Shows::None };
        queued.drop_while(print, |at| !self.is_open(at, time));
        let all = queued.like(print).filter_map(|at| Some((at, self.entry(at)?)));
        let Best { found, is_tie, has_more } = self.best_of(all, print, upper, true);
        let shows = match found {
            Some((at, _)) => Shows::Arrival(at, !is_tie && !has_more),
            None if has_more => Shows::More,
            None => Shows::None,
        };
        self.queued = Some(queued);
        shows
    }

    /// Drops arrivals of the same content of which nothing more is to be learned; false if none is left.
    pub(super) fn drop_settled(&mut self, print: &Print, time: u64) -> bool {
        self.settled(print.content, false, |entry| {
            entry.paired || !is_arrival(entry) || time.saturating_sub(entry.time) > LONGEST
        })
    }

    /// The arrival with most alike; where the payload may have been changed, two ends are, and it went one hop.
    fn best_of<'a>(
        &self,
        mut all: impl Iterator<Item = (u64, &'a Entry)>,
        print: &Print,
        upper: Option<u32>,
        is_changed: bool,
    ) -> Best<'a> {
        let wanted = self.flows.get(&self.keys.ends(&print.ends)).copied();
        let mut best: Option<(u64, &Print, usize)> = None;
        let mut is_tie = false;
        let open = |(_, entry): &(u64, &Entry)| !entry.paired && is_arrival(entry);
        for (at, entry) in all.by_ref().take(MOST).filter(open) {
            let Some(came) = entry.print.as_ref().filter(|came| is_onward(came, print)) else {
                continue;
            };
            let as_before = wanted.is_some_and(|wanted| wanted == self.keys.ends(&came.ends));
            let alike = ends_alike(came, print);
            // Between two ports of a bridge a packet is passed on, to the bridge itself it is given.
            let is_bridged = entry.upper.is_some() && entry.upper == upper && came.ttl == print.ttl;
            if is_changed
                && (alike == 1 && !as_before
                    || !is_bridged && came.ttl != print.ttl.wrapping_add(1))
            {
                continue;
            }
            let score = alike + 8 * usize::from(as_before) + 4 * usize::from(is_bridged);
            // What was not for this host comes after all that was.
            let score = if score > 0 { 2 * score + usize::from(entry.way == Way::In) } else { 0 };
            // Numbers of TCP are enough where both ends are translated, ports and all; forged ones are often 0.
            if score == 0 && print.segment.is_none_or(|segment| segment.sequence == 0) {
                continue;
            }
            match best {
                Some((_, other, most)) if most == score => is_tie |= other.ends != came.ends,
                Some((.., most)) if most > score => {}
                _ => {
                    is_tie = false;
                    best = Some((at, came, score));
                }
            }
        }
        Best { found: best.map(|(at, came, _)| (at, came)), is_tie, has_more: all.next().is_some() }
    }

    /// Whether an arrival may still be seen leaving.
    pub(super) fn is_open(&self, index: u64, time: u64) -> bool {
        self.entry(index).is_some_and(|entry| {
            is_arrival(entry) && !entry.paired && time.saturating_sub(entry.time) <= LONGEST
        })
    }

    /// The arrived segment of which this one is a part.
    fn superframe_of(&self, print: &Print, time: u64) -> Option<u64> {
        let part = print.segment.filter(|part| part.len > 0)?;
        let is_v6 = print.ends.source.is_ipv6();
        let upto = part.key(is_v6);
        let from = (is_v6, part.acknowledgement, 0);
        let (_, at) = self.segments.range(from..=upto).next_back()?;
        let entry = self.entry(*at)?;
        let came = entry.print.as_ref()?;
        let fits = came.segment.is_some_and(|whole| whole.holds(part.sequence))
            && is_arrival(entry)
            && is_onward(came, print)
            && (ends_alike(came, print) > 0 || self.goes_as(came, print))
            && time.saturating_sub(entry.time) <= LONGEST;
        fits.then_some(*at)
    }

    /// Whether packets of the flow that came are known to leave as that one.
    fn goes_as(&self, came: &Print, left: &Print) -> bool {
        let flow = self.flows.get(&self.keys.ends(&left.ends));
        flow == Some(&self.keys.ends(&came.ends))
    }
}
