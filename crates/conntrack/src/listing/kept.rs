//! [`Kept`]: what tamis writes of a flow beyond what `conntrack -L` prints, so that it goes on after a restart as if
//! there had been none.
//!
//! `status=` has its bits ([`Status`]), `packets=` and `bytes=` what each direction counted, `labels=` its 128 labels,
//! `stream=` the seconds until an answered flow of UDP is a stream, `master-helper=` the helper of the flow that
//! expected it, `doubt=` what is not known of it, `tags=` the verification tags of SCTP, `seqadj=` how far the numbers
//! of each direction moved (`POSITION/BEFORE/AFTER`). Windows of TCP are not written: frames may have passed by another
//! way meanwhile, so they are not enforced, as after `conntrack -I`.

use std::fmt;
use std::str::FromStr;

use crate::flow::{Counters, Doubt};
use crate::helper::Helper;
use crate::key::Direction;
use crate::shift::Shifts;
use crate::status::Status;

/// What only tamis writes of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Kept {
    /// As its other words have it where there is none.
    pub(crate) status: Option<Status>,
    pub(crate) counters: [Counters; 2],
    pub(crate) labels: [u64; 2],
    /// Seconds until an answered flow of UDP is a stream.
    pub(crate) stream: u64,
    pub(crate) master_helper: Helper,
    pub(crate) doubt: Doubt,
    /// Verification tags of SCTP.
    pub(crate) tags: [u32; 2],
    pub(crate) shifts: Shifts,
}

const DOUBTS: [(&str, Doubt); 2] = [("existence", Doubt::Existence), ("history", Doubt::History)];

impl Kept {
    /// Takes an assignment that follows a direction, and ignores any other word.
    pub(super) fn take(
        &mut self,
        direction: Direction,
        name: &str,
        text: &str,
    ) -> Result<(), &'static str> {
        let [original, reply] = &mut self.counters;
        let counters = if direction == Direction::Original { original } else { reply };
        match name {
            "packets" => counters.packets = number(text, "packets=NUMBER")?,
            "bytes" => counters.bytes = number(text, "bytes=NUMBER")?,
            "status" => {
                self.status = Some(Status::kept(hex(text, "status=0xBITS")? as u32));
            }
            "labels" => {
                let labels = hex(text, "labels=0xBITS")?;
                self.labels = [labels as u64, (labels >> 64) as u64];
            }
            "stream" => self.stream = number(text, "stream=SECONDS")?,
            "master-helper" => self.master_helper = Helper::named(text),
            "doubt" => {
                let found = DOUBTS.into_iter().find(|(word, _)| *word == text);
                self.doubt = found.ok_or("doubt=existence or doubt=history")?.1;
            }
            "tags" => self.tags = parts(text, ',').ok_or("tags=TAG,TAG")?,
            "seqadj" => self.shifts = shifts(text).ok_or("seqadj=MOVE,MOVE")?,
            _ => {}
        }
        Ok(())
    }
}

/// Writes the words that follow the directions.
impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(status) = self.status {
            write!(f, " status={:#x}", status.bits())?;
        }
        if self.labels != [0; 2] {
            let [low, high] = self.labels.map(u128::from);
            write!(f, " labels={:#x}", high << 64 | low)?;
        }
        if self.stream > 0 {
            write!(f, " stream={}", self.stream)?;
        }
        if self.master_helper != Helper::None {
            write!(f, " master-helper={}", self.master_helper.name())?;
        }
        if let Some((word, _)) = DOUBTS.into_iter().find(|(_, doubt)| *doubt == self.doubt) {
            write!(f, " doubt={word}")?;
        }
        if self.tags != [0; 2] {
            write!(f, " tags={},{}", self.tags[0], self.tags[1])?;
        }
        if self.shifts != Shifts::default() {
            let [original, reply] =
                [Direction::Original, Direction::Reply].map(|way| self.shifts.of(way).numbers());
            let [one, other] = [original, reply].map(|[at, old, new]| format!("{at}/{old}/{new}"));
            write!(f, " seqadj={one},{other}")?;
        }
        Ok(())
    }
}

fn number<T: FromStr>(text: &str, expected: &'static str) -> Result<T, &'static str> {
    text.parse().map_err(|_| expected)
}

fn hex(text: &str, expected: &'static str) -> Result<u128, &'static str> {
    let digits = text.strip_prefix("0x").ok_or(expected)?;
    u128::from_str_radix(digits, 16).map_err(|_| expected)
}

/// Reads `N` numbers, separated by `between`.
fn parts<const N: usize>(text: &str, between: char) -> Option<[u32; N]> {
    let parts: Option<Vec<u32>> = text.split(between).map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

fn shifts(text: &str) -> Option<Shifts> {
    let (original, reply) = text.split_once(',')?;
    Some(Shifts::from_numbers([parts(original, '/')?, parts(reply, '/')?]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::Listing;
    use proptest::prelude::*;

    fn bits() -> impl Strategy<Value = Status> {
        any::<u32>().prop_map(Status::kept)
    }

    fn kept() -> impl Strategy<Value = Kept> {
        let helpers =
            vec!["", "ftp", "tftp", "netbios-ns", "amanda", "irc", "pptp", "RAS", "other"];
        let helper = prop::sample::select(helpers).prop_map(Helper::named);
        let doubt = prop::sample::select(vec![Doubt::None, Doubt::Existence, Doubt::History]);
        let counters = any::<[u64; 4]>().prop_map(|[packets, bytes, back, back_bytes]| {
            [Counters { packets, bytes }, Counters { packets: back, bytes: back_bytes }]
        });
        let numbers = (any::<[u32; 2]>(), any::<[[u32; 3]; 2]>(), any::<u64>());
        (bits(), counters, any::<[u64; 2]>(), helper, doubt, numbers).prop_map(
            |(status, counters, labels, master_helper, doubt, (tags, moves, stream))| Kept {
                status: Some(status),
                counters,
                labels,
                stream,
                master_helper,
                doubt,
                tags,
                shifts: Shifts::from_numbers(moves),
            },
        )
    }

    proptest! {
        #[test]
        fn every_word_is_read_as_it_was_written(kept in kept(), mark: u32, zones: [u16; 2]) {
            let line = "udp 17 9 src=1.2.3.4 dst=1.2.3.5 sport=1 dport=2 src=1.2.3.5 dst=1.2.3.4 sport=2 dport=1";
            let mut listing = Listing::parse(line).unwrap();
            listing.at = Some(1);
            let flow = &mut listing.flows[0];
            (flow.kept, flow.mark) = (Some(kept), mark);
            flow.original = flow.original.in_zone(zones[0]);
            flow.reply = flow.reply.in_zone(zones[1]);
            let (read, refused) = Listing::parse_kept(&listing.to_string()).unwrap();
            prop_assert_eq!(refused, []);
            prop_assert_eq!(read, listing);
        }
    }
}
