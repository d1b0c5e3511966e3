//! Which packets are evaluated at all: `--filter`, `--from`, `--to`, `--count`.
//!
//! Contract: packets left out are neither evaluated nor counted, and connections never see them; frame numbers stay as
//! in the captures. Times are compared after they were made to run forward only.

use dataplane::Moment;
use pktio::Frame;

use crate::error::Error;
use crate::filter::Filter;

/// Which packets are evaluated.
#[derive(Debug, Default)]
pub struct Selection {
    /// Packets that pass this filter.
    pub filter: Option<Filter>,
    /// Packets at this moment or later.
    pub from: Option<Moment>,
    /// Packets before this moment.
    pub to: Option<Moment>,
    /// The first N of the others' choice.
    pub count: Option<u64>,
}

/// What to do with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Evaluate,
    LeaveOut,
    /// Neither this one nor any later one.
    Stop,
}

impl Selection {
    /// Whether every packet is evaluated.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.filter.is_none() && self.from.is_none() && self.to.is_none() && self.count.is_none()
    }

    /// Whether no packet beyond `evaluated` of them will be wanted.
    pub(crate) fn is_full(&self, evaluated: u64) -> bool {
        self.count.is_some_and(|count| evaluated >= count)
    }

    /// What to do with a packet that arrived at `time`; `start` is the time of the first packet.
    pub(crate) fn choose(
        &mut self,
        frame: Frame<'_>,
        time: Option<u64>,
        start: Option<u64>,
        evaluated: u64,
    ) -> Result<Choice, Error> {
        if self.is_full(evaluated) {
            return Ok(Choice::Stop);
        }
        if self.from.is_some() || self.to.is_some() {
            let (Some(time), Some(start)) = (time, start) else { return Ok(Choice::LeaveOut) };
            if self.to.is_some_and(|to| time >= to.nanos(start)) {
                return Ok(Choice::Stop);
            }
            if self.from.is_some_and(|from| time < from.nanos(start)) {
                return Ok(Choice::LeaveOut);
            }
        }
        let passes = match &mut self.filter {
            Some(filter) => filter.accepts(frame)?,
            None => true,
        };
        Ok(if passes { Choice::Evaluate } else { Choice::LeaveOut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pktio::FrameMeta;

    #[test]
    fn a_window_and_a_count_stop_the_reading() {
        let mut selection = Selection {
            from: Some(Moment::After(10)),
            to: Some(Moment::After(20)),
            count: Some(3),
            ..Selection::default()
        };
        let meta = FrameMeta::default();
        let mut choose = |time, evaluated| {
            let frame = Frame { bytes: &[], meta: &meta };
            selection.choose(frame, Some(time), Some(100), evaluated).unwrap()
        };
        assert_eq!(choose(109, 0), Choice::LeaveOut);
        assert_eq!(choose(110, 0), Choice::Evaluate);
        assert_eq!(choose(119, 1), Choice::Evaluate);
        assert_eq!(choose(120, 2), Choice::Stop);
        assert_eq!(choose(119, 3), Choice::Stop);
    }
}
